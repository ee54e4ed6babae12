//! Carrying out what policies say ([`sched::policy`]).
//!
//! A policy is asked when a vCPU that displaces others has the core: its
//! registers are on the hardware by then, and its guest is next. Which vCPUs it
//! displaces was worked out at the start; a core none of whose vCPUs has a
//! policy with a say finds a zero, and that is all it pays.

use crate::arch::{context, cpu, gic, timer};
use crate::pcpu::Pcpu;
use crate::shared::{IDLE, PLACES, VMS};
use crate::vcpu::Vcpu;
use abi::status::Exit;
use abi::system::System;
use core::sync::atomic::Ordering;
use sched::policy::{self, Kind, Mode, Policy, Rank, Side, Then, View};
use sched::{Duration, Instant, Members, Message, Params, Priority, VcpuId};

/// How long a vCPU may stay in its kernel when it is a sibling's turn: it may
/// hold a lock for which that one would spin. The shortest quantum there is.
const SIBLINGS_WAIT_NS: u64 = abi::system::MIN_QUANTUM_NS;

/// Whether this machine can do what the policies need.
///
/// # Errors
/// What is wrong, in words.
pub fn verify(system: &System) -> Result<(), &'static str> {
    for vm in system.vms() {
        let kind = Kind::from_number(vm.policy).ok_or("a VM has an unknown migration policy")?;
        if kind.policy().needs().views && !cpu::has_xnx() {
            return Err("a VM's migration policy needs FEAT_XNX, which this core has not");
        }
    }
    Ok(())
}

/// A vCPU's policy.
pub fn of(system: &System, id: usize) -> &'static dyn Policy {
    kind_of(system, id).policy()
}

/// Unknown numbers have been refused by [`verify`].
fn kind_of(system: &System, id: usize) -> Kind {
    Kind::from_number(system.vms[usize::from(system.vcpus[id].vm)].policy).unwrap_or_default()
}

fn rank(system: &System, id: usize) -> Rank {
    let vcpu = &system.vcpus[id];
    let vm = usize::from(vcpu.vm);
    let realtime = system.vms[vm].is(abi::system::vm_flags::REALTIME);
    Rank { vm, priority: vcpu.priority, realtime }
}

impl Pcpu {
    /// Two vCPUs of one VM may come to take turns here.
    pub fn learn_siblings(&mut self) {
        let system = self.system;
        for (index, vm) in system.vms().iter().enumerate() {
            let here = self
                .scheduler
                .vcpus()
                .filter(|id| usize::from(system.vcpus[usize::from(id.0)].vm) == index);
            if here.count() > 1 {
                self.may_wait |= vm.stage2_pa[0] != vm.stage2_pa[1];
                cpu::trap_wait_for_event();
            }
        }
    }

    /// Works out who displaces a vCPU that belongs here.
    pub fn learn_displacers(&mut self, id: usize) {
        let (system, kind) = (self.system, kind_of(self.system, id));
        if matches!(kind, Kind::None | Kind::Partition) {
            return;
        }
        for other in 0..system.header.vcpu_count as usize {
            if policy::displaces(rank(system, other), rank(system, id), kind) {
                self.displaced_by[other] |= 1 << id;
            }
        }
        self.concerned |= 1 << id;
        self.may_wait |= kind.policy().delays(Mode::Kernel);
    }

    /// This vCPU has the core and is on the hardware: decides who goes or comes
    /// because of it.
    #[inline(never)]
    pub fn migrate(&mut self, current: VcpuId) {
        let losers = self.displaced_by[usize::from(current.0)];
        let free = self.displaced & !losers;
        if free != 0 {
            self.release(free);
        }
        if losers != 0 {
            for id in Members(losers & !self.displaced) {
                self.displace(VcpuId(id as u8));
            }
            self.reschedule = false;
        }
    }

    /// Another vCPU has the core of this one.
    fn displace(&mut self, id: VcpuId) {
        let slot = usize::from(id.0);
        let Some(vcpu) = self.vcpus[slot].as_deref() else { return };
        if !vcpu.on || self.working >> slot & 1 == 1 {
            return;
        }
        let idle =
            if self.tell_idle { IDLE.load(Ordering::Relaxed) & !(1 << self.index) } else { 0 };
        match vcpu.when_displaced(self.scheduler.is_ready(id), idle != 0) {
            Then::Stay => {}
            Then::Leave => self.depart(id, self.refuge_of(slot)),
            Then::LeaveUntilFree => {
                self.displaced |= 1 << slot;
                self.depart(id, self.refuge_of(slot));
            }
            Then::LeaveForIdle => {
                self.displaced |= 1 << slot;
                self.depart(id, idle.trailing_zeros() as usize);
            }
            Then::StopOthers => {
                self.displaced |= 1 << slot;
                self.set_awaited(id, true);
            }
        }
    }

    /// The core is free for these vCPUs again.
    #[inline(never)]
    pub fn release(&mut self, free: u64) {
        self.displaced &= !free;
        for id in Members(free) {
            let owner = PLACES[id].find();
            if owner != self.index {
                self.tell(owner, Message::Recalls, id, false);
            } else {
                self.set_awaited(VcpuId(id as u8), false);
            }
        }
    }

    fn refuge_of(&self, id: usize) -> usize {
        usize::from(self.system.vcpus[id].refuge)
    }

    /// An interrupt came for a vCPU of this core: if that lies displaced, its
    /// policy may want it to leave after all.
    #[inline(never)]
    pub fn interrupted(&mut self, id: VcpuId) {
        let slot = usize::from(id.0);
        let Ok(current) = usize::try_from(self.status.current) else { return };
        let lies_displaced = self.displaced_by.get(current).is_some_and(|set| set >> slot & 1 == 1);
        let Some(vcpu) = self.vcpus[slot].as_deref().filter(|_| lies_displaced) else { return };
        if vcpu.policy.interrupted() == Then::Leave {
            self.depart(id, self.refuge_of(slot));
        }
    }

    /// The loaded vCPU was about to execute what its view does not let it.
    /// Answers whether its policy takes care of that; else it is a fault.
    #[inline(never)]
    pub fn cross(&mut self) -> bool {
        let mode = context::guest_mode();
        let Some(vcpu) = self.loaded.as_deref_mut() else { return false };
        match (vcpu.view, mode) {
            (View::UserOnly, Mode::Kernel) | (View::KernelOnly, Mode::User) => {}
            _ => return false,
        }
        vcpu.status.exits[Exit::Crossing as usize] += 1;
        let (id, slot) = (vcpu.id, usize::from(vcpu.id.0));
        let to = match vcpu.policy.crossed(mode) {
            // It has left its kernel: who waits for that need not any longer.
            Side::Here => {
                self.reschedule = true;
                return self.delaying.is_some_and(|(delayer, _)| delayer == id);
            }
            Side::Base => self.base_of(slot),
            Side::Refuge => self.refuge_of(slot),
        };
        self.depart(id, to);
        true
    }

    /// Whether `next`, who should have the core, waits for the loaded vCPU. That
    /// one's time runs out even if who waits goes away meanwhile and others
    /// come: else it might never give way.
    #[inline(never)]
    pub fn waits(&mut self, next: Option<VcpuId>, now: Instant) -> bool {
        let yields = core::mem::take(&mut self.yields);
        let limit_ns = next.filter(|_| !yields).and_then(|next| self.delay_limit_ns(next));
        if let (Some(limit_ns), Some(vcpu)) = (limit_ns, self.loaded.as_deref()) {
            let id = vcpu.id;
            let until = self.delaying.map_or_else(
                || now.after(Duration(timer::ns_to_ticks(limit_ns))),
                |(_, until)| until,
            );
            if now < until {
                if self.delaying.is_none() {
                    self.delaying = Some((id, until));
                    self.set_loaded_view(View::KernelOnly);
                }
                self.scheduler.let_finish(id);
                self.set_mask(gic::MASK_NOTHING);
                self.arm(Some(until));
                return true;
            }
        }
        if let Some((id, _)) = self.delaying
            && !(next == Some(id) && self.is_loaded(id) && context::guest_mode() == Mode::Kernel)
        {
            self.delaying = None;
            self.end_delay(id);
        }
        false
    }

    /// How long `next` waits for the loaded vCPU at most; none: not at all.
    fn delay_limit_ns(&self, next: VcpuId) -> Option<u64> {
        let vcpu = self.loaded.as_deref()?;
        let slot = usize::from(vcpu.id.0);
        let goes_on = vcpu.id != next
            && self.loaded_is_current()
            && self.scheduler.is_ready(vcpu.id)
            && self.working >> slot & 1 == 0;
        if !goes_on || !vcpu.has_views {
            return None;
        }
        let mode = context::guest_mode();
        if self.displaced_by[usize::from(next.0)] >> slot & 1 == 1 {
            let limit_ns = self.system.vms[vcpu.vm].delay_limit_ns;
            return vcpu.policy.delays(mode).then_some(limit_ns);
        }
        let sibling = usize::from(self.system.vcpus[usize::from(next.0)].vm) == vcpu.vm;
        (sibling && mode == Mode::Kernel).then_some(SIBLINGS_WAIT_NS)
    }

    /// The loaded vCPU spins: if a sibling was preempted here in its kernel, what
    /// that one holds may be what this one spins for.
    pub fn yield_to_lock_holder(&mut self) {
        let Some((me, vm)) = self.loaded.as_deref().map(|vcpu| (vcpu.id, vcpu.vm)) else { return };
        for slot in self.vcpus_of(vm) {
            let id = VcpuId(slot as u8);
            let holds = |vcpu: &Vcpu| context::mode_of(vcpu.general.pstate) == Mode::Kernel;
            if id != me
                && self.vcpus[slot].as_deref().is_some_and(holds)
                && self.scheduler.hurry(id)
            {
                self.yields = true;
                self.reschedule = true;
                return;
            }
        }
    }

    /// Nobody waits for this vCPU any longer.
    fn end_delay(&mut self, id: VcpuId) {
        let (system, at_base) = (self.system, self.base_of(usize::from(id.0)) == self.index);
        if let Some(vcpu) = self.vcpu(id) {
            let view = vcpu.usual_view(at_base);
            vcpu.set_view(system, view);
            vcpu.space.enter();
        }
        // Nobody was loaded since, so this is about its VM.
        cpu::flush_guest_tlb_and_stage2();
    }

    fn set_loaded_view(&mut self, view: View) {
        let system = self.system;
        if let Some(vcpu) = self.loaded.as_deref_mut() {
            vcpu.set_view(system, view);
            vcpu.space.enter();
            cpu::flush_guest_tlb_and_stage2();
        }
    }

    /// The siblings of a vCPU stop because it cannot run, or go on.
    fn set_awaited(&mut self, id: VcpuId, awaited: bool) {
        let Some((vm, index)) = self.vcpu(id).map(|vcpu| (vcpu.vm, vcpu.index)) else { return };
        let (bit, set) = (1 << index, &VMS[vm].awaited);
        let before = if awaited {
            set.fetch_or(bit, Ordering::AcqRel)
        } else {
            set.fetch_and(!bit, Ordering::AcqRel)
        };
        let changed = if awaited { before == 0 } else { before == bit };
        if changed {
            for core in (0..self.system.board.pcpu_count as usize).filter(|&c| c != self.index) {
                self.tell(core, Message::Gangs, vm, false);
            }
            self.follow_gang(vm);
        }
    }

    /// Lets this core's vCPUs of a VM run, or not.
    pub fn follow_gang(&mut self, vm: usize) {
        let awaited = VMS[vm].awaited.load(Ordering::Acquire) != 0;
        for slot in self.vcpus_of(vm) {
            let (id, bit) = (VcpuId(slot as u8), 1 << slot);
            if !self.owns(id) || (self.stopped & bit != 0) == awaited {
                continue;
            }
            if awaited {
                self.stop_for_sibling(id);
            } else {
                self.go_on_with_siblings(id);
            }
        }
    }

    fn stop_for_sibling(&mut self, id: VcpuId) {
        let bit = 1 << id.0;
        // The one that is displaced itself stays as it is.
        if self.displaced & bit != 0 || self.working & bit != 0 {
            return;
        }
        if !self.vcpu(id).is_some_and(|vcpu| vcpu.on) {
            return;
        }
        self.scheduler.depart(id);
        self.stopped |= bit;
        self.reschedule = true;
    }

    /// Whether there is something to do its guest finds out.
    fn go_on_with_siblings(&mut self, id: VcpuId) {
        self.let_schedule(id);
        self.wake(id);
        self.reschedule = true;
    }

    /// A stopped vCPU is the scheduler's again, asleep.
    pub fn let_schedule(&mut self, id: VcpuId) {
        let bit = 1 << id.0;
        if self.stopped & bit != 0 {
            self.stopped &= !bit;
            // It was taken before.
            let _ = self.scheduler.arrive(id, params(self.system, usize::from(id.0)), false);
        }
    }
}

/// What the scheduler knows of a vCPU.
pub fn params(system: &System, id: usize) -> Params {
    let table = &system.vcpus[id];
    let quantum = Duration(timer::ns_to_ticks(table.quantum_ns).max(1));
    Params { priority: Priority(table.priority), quantum }
}
