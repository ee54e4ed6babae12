//! Moving vCPUs between cores.
//!
//! Migration moves the owning reference ([`crate::shared::hand_over`]). The *base* of a vCPU is the
//! core that its description names. [`displacement`](super::displacement) and
//! [`visitors`](super::visitors) decide whether it leaves, and where it goes.
//!
//! Every core that may come to own a vCPU has it in its scheduler from the start. On a core
//! that does not own it, it sleeps and nothing wakes it, so that arriving and leaving are as
//! cheap as waking and sleeping.
//!
//! vCPUs are halted at their bases: a visitor goes back to its base first, and a vCPU that
//! was on its way when its VM was stopped is switched off where it arrives.

use super::Pcpu;
use super::budgets::book_throttle;
use super::virtio;
use crate::arch::gic::Doorbell;
use crate::arch::{context, cpu, gic, statics, timer};
use crate::bug::bug;
use crate::shared::hand_over::HandOver;
use crate::shared::{BOARD, Sibling, VMS};
use crate::status::trace::Kind;
use crate::vcpu::{Parked, Vcpu};
use abi::MAX_VCPUS;
use abi::system::MAX_SPIS;
use core::sync::atomic::Ordering;
use notes::{Bounded, each};
use sched::{Member, Message, Received, VcpuId, VcpuSet};

statics! {
    /// By vCPU, while it is between two cores.
    static HAND_OVERS: [HandOver<Vcpu>; MAX_VCPUS] = [const { HandOver::new() }; MAX_VCPUS];
}

impl Pcpu {
    /// Sends a vCPU back to its base, which has recalled it, or to where it was asked to be, unless it
    /// has a job here.
    pub(super) fn send_back(&mut self, id: VcpuId) {
        notes::needs::<{ each::MIGRANT }>();
        let to = self.wanted_at(id);
        if !self
            .roster
            .get(id)
            .is_some_and(|vcpu| vcpu.is_on() || !vcpu.config().moves_on_request())
        {
            // It has left, or goes when it is switched on.
            return;
        }
        // A vCPU with a job comes back when the job is done.
        if !self.jobs.has(id) && BOARD.may_return(self.index, to) {
            if self.timer_advance.early().has(id) {
                self.fall_asleep_again(id);
                self.go_on_later(Message::Recalls, id.number(), Doorbell::Ordinary);
                return;
            }
            if !self.take_off(id) || cpu::interrupt_pending() {
                self.depart_later(id);
            } else {
                self.hand_over_parked(id, to);
            }
        }
    }

    /// Has a vCPU that does not have the core depart before any guest runs, in a piece of its own.
    pub(super) fn depart_later(&mut self, id: VcpuId) {
        self.jobs.depart_later(VcpuSet::of(id));
        self.need_resched = true;
    }

    /// Hands a vCPU over to another core, if this core owns it.
    pub(super) fn depart(&mut self, id: VcpuId, to: usize) {
        if self.take_off(id) {
            self.hand_over_parked(id, to);
        } else {
            self.depart_later(id);
        }
    }

    /// Takes the core from a vCPU that is to leave, if it has that, and takes it off the hardware, if it
    /// is loaded. Returns false if an interrupt has come in between: then it is loaded still.
    #[inline(never)]
    #[must_use]
    pub(super) fn take_off(&mut self, id: VcpuId) -> bool {
        notes::needs::<{ each::MIGRANT }>();
        if self.roster.is_loaded(id) {
            if self.loaded_is_current() {
                let now = timer::now();
                self.scheduler.charge_running(now);
                self.free_core(now);
                if cpu::interrupt_pending() {
                    return false;
                }
            }
            // It may have been loaded just now: what was listed must not pass for emptied.
            cpu::synchronize();
            self.unload();
        }
        true
    }

    /// Does what [`Self::hand_over`] does, out of line, where no real-time guest waits for it.
    #[inline(never)]
    pub(super) fn hand_over_parked(&mut self, id: VcpuId, to: usize) {
        self.hand_over(id, to);
    }

    /// Hands a vCPU that is not loaded over to another core, if this core owns it: a vCPU that
    /// is recalled may have left already. A real-time guest may wait for this.
    #[inline(always)]
    pub(super) fn hand_over(&mut self, id: VcpuId, to: usize) {
        notes::needs::<{ each::MIGRANT }>();
        let Some(mut vcpu) = self.roster.take_parked(id) else { return };
        if self.roster.owns_float(id) {
            self.save_float_of(&mut vcpu);
        }
        let back = to == vcpu.config().base();
        if vcpu.config().has_views() {
            vcpu.set_usual_view(back);
        }
        if self.visitors.present().has(id) {
            self.visitor_left(id);
        }
        vcpu.leaves(self.scheduler.set_away(id));
        if vcpu.config().takes_along() {
            self.send_along(&mut vcpu, to);
        }
        // A real-time vCPU may have its base again: then it may have to leave at once, and
        // not when that guest sleeps next.
        let urgent = back && vcpu.config().leaves_when_displaced();
        #[cfg(test)]
        assert!(is_on(to), "a vCPU is handed to a core that is off");
        self.trace.note_now(Kind::Migrate, id, to as u32);
        HAND_OVERS[id.number()].put(vcpu.give_away());
        self.need_resched = true;
        if BOARD.hand_over(id, to) {
            self.ring(to, Doorbell::urgent(urgent));
        }
    }

    /// Receives a vCPU that another core has handed over to this one.
    pub(super) fn receive(&mut self, id: VcpuId) {
        notes::needs::<{ each::MIGRANT }>();
        let Some(vcpu) = HAND_OVERS[id.number()].take() else {
            return bug!("a vCPU arrives that is not on its way");
        };
        let mut vcpu = Parked::new(vcpu);
        let config = vcpu.config();
        let (vm, base, takes_along) = (config.vm(), config.base(), config.takes_along());
        let moves_on_request = config.moves_on_request();
        // From here on a core that has something for the vCPU tells this one; what was left
        // before is looked at below.
        let received = BOARD.received(id, self.index, base, config.is_relocatable());
        // Its VM was stopped since it was switched on. A vCPU that is off is tested, too: if it
        // has asked for the stop, `POWER` has it as on until it is halted.
        let stale = vcpu.epoch() != VMS[vm].epoch.load(Ordering::Acquire);
        // It was being switched off when it was recalled.
        let is_releasing = vcpu.is_releasing();
        let news = vcpu.has_news() || virtio::may_wait(vm, vcpu.index());
        let on = vcpu.is_on() && !stale;
        self.scheduler.come_back(id, vcpu.left_ready());
        if takes_along {
            self.take_back(&mut vcpu);
        }
        vcpu.account().count_migration(self.index);
        self.trace.note_now(Kind::Arrive, id, 0);
        self.roster.park(vcpu);
        self.need_resched = true;
        let wanted_at = self.wanted_at(id);
        // It may have been asked to go on while it was on its way.
        let mut goes_on = moves_on_request && on && BOARD.may_return(self.index, wanted_at);
        match received {
            Received::AtBase => {
                self.displacement.returned(id);
            }
            // It is no visitor: it stays until it is asked.
            Received::Visitor { .. } if moves_on_request => {}
            Received::Visitor { wanted } => {
                self.visitor_came(id);
                goes_on = wanted && BOARD.may_return(self.index, base);
            }
            Received::Consolidated => {
                if self.consolidation.is_target_of(base) {
                    self.consolidate();
                }
            }
        }
        if !on {
            self.receive_off(id, stale, is_releasing, goes_on);
        } else if goes_on {
            self.hand_over_parked(id, wanted_at);
        } else {
            // A guest that sleeps and has no new interrupts sleeps on.
            if news {
                self.deliver_after_a_look(id);
            }
            // It may hold a lock for which siblings spin.
            self.yield_to(id);
        }
    }

    /// Goes on with a vCPU that has come and is off, or is of a life that has ended (`stale`), or
    /// was being switched off.
    #[cold]
    #[inline(never)]
    fn receive_off(&mut self, id: VcpuId, stale: bool, is_releasing: bool, goes_back: bool) {
        let is_done = !(stale || is_releasing) || !cpu::interrupt_pending() && self.offline(id);
        if goes_back || is_done && !self.is_halted_here(id) {
            self.hand_over_parked(id, self.base_of(id));
        } else if is_done {
            self.record_halted(id);
            if cpu::interrupt_pending() {
                // The message has a request to switch it on looked at, too.
                self.offline_later(id);
            } else {
                self.accept_power_on(id);
            }
        }
        if !is_done {
            // A request to switch it on is looked at when all is given back.
            self.offline_later(id);
            if stale {
                self.halt_later(self.vm_of(id));
            }
        }
    }

    /// Sends what a vCPU takes along to the core to which it is handed over.
    #[cold]
    #[inline(never)]
    fn send_along(&mut self, vcpu: &mut Vcpu, to: usize) {
        notes::needs::<{ each::MIGRANT }>();
        if vcpu.config().has_devices() {
            self.reroute(vcpu.vm(), to);
        }
        if vcpu.config().line().is_some() {
            self.tell_crowd(vcpu, false);
        }
        let (id, now) = (vcpu.id(), timer::now());
        self.scheduler.take_account(id, now, vcpu.packed_budget());
        let is_spent = vcpu.packed_budget().as_ref().is_some_and(|budget| budget.left().0 == 0);
        if is_spent && vcpu.left_ready() {
            book_throttle(vcpu, &mut self.trace, now);
        }
    }

    /// Takes what a vCPU has taken along that has come to this core.
    #[cold]
    #[inline(never)]
    fn take_back(&mut self, vcpu: &mut Vcpu) {
        notes::needs::<{ each::MIGRANT }>();
        let config = vcpu.config();
        if config.has_devices() && config.base() == self.index {
            self.reroute(config.vm(), self.index);
        }
        if config.line().is_some() {
            self.tell_crowd(vcpu, true);
        }
        let id = vcpu.id();
        let packed = vcpu.packed_budget();
        if let Some(budget) = packed {
            self.scheduler.set_server(id, budget, timer::now());
            *packed = None;
        }
    }

    /// Records a vCPU that is off as halted, if this core is its base or the consolidation
    /// target of its base. From any other core, sends it to its base.
    pub(super) fn halt_at_base(&mut self, id: VcpuId) {
        if self.is_halted_here(id) {
            self.record_halted(id);
        } else {
            self.hand_over_parked(id, self.base_of(id));
        }
    }

    /// Returns true if a vCPU that is off is recorded as halted when it is on this core.
    fn is_halted_here(&self, id: VcpuId) -> bool {
        let base = self.base_of(id);
        base == self.index || self.consolidation.is_target_of(base)
    }

    fn record_halted(&mut self, id: VcpuId) {
        let Some(vcpu) = self.roster.get(id) else {
            return bug!("a vCPU is halted that another core owns");
        };
        let (vm, index) = (vcpu.vm(), vcpu.index());
        VMS[vm].halted.insert(Sibling(index), Ordering::AcqRel);
        self.tell_coordinator_of_halted(vm);
    }

    fn save_float_of(&mut self, vcpu: &mut Vcpu) {
        context::open_float_now();
        vcpu.save_float();
        self.roster.forget_float();
        // The FP registers belong to no vCPU now. The loaded vCPU traps on first use and
        // restores its own.
        context::open_float(false);
    }

    /// Routes the device interrupts of a VM that this core coordinates to the core to which
    /// its first vCPU has gone: here they would stay pending while a real-time guest runs.
    fn reroute(&self, vm: usize, to: usize) {
        if self.coordinator_of(vm) != self.index {
            return;
        }
        let affinity = self.system.board.pcpu_mpidr[to];
        for intid in self.interrupts_of(vm) {
            gic::send_to(self.system.board.gicd_pa, intid, affinity);
        }
    }

    /// Clears the device interrupts of a VM that is halted: one that its guest had not ended,
    /// because it routed it to no vCPU, would stay active and never come again.
    pub(super) fn clear_interrupts(&self, vm: usize) {
        for intid in self.interrupts_of(vm) {
            gic::clear(self.system.board.gicd_pa, intid);
        }
    }

    /// Returns the physical interrupts of a VM's devices.
    fn interrupts_of(&self, vm: usize) -> impl Iterator<Item = u32> + use<> {
        let spis = &self.system.spis[..self.system.header.spi_count as usize];
        spis.iter()
            .one_for::<{ each::DEVICE_INTERRUPT }, MAX_SPIS>()
            .filter(move |spi| usize::from(spi.vm) == vm)
            .map(|spi| spi.physical)
    }
}

/// Returns true if a core was not powered down.
#[cfg(test)]
fn is_on(core: usize) -> bool {
    crate::arch::fake::machine::with(|machine| machine.cores[core].on)
}
