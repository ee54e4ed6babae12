//! Taking a vCPU off the hardware and putting another on.

use super::Pcpu;
use crate::arch::gic::virtual_interface::{self, After};
use crate::arch::{context, cpu, timer};
use crate::bug::bug;
use crate::shared::{VMS, siblings};
use crate::vcpu::{Loaded, Parked};
use core::sync::atomic::Ordering;
use sched::{Message, VcpuId};
use vgic::interface::CpuInterface;
use vgic::{Effects, Gic};

impl Pcpu {
    /// Replaces the loaded vCPU. Inlined, as every switch comes by. Returns true if it has interrupts
    /// that are not listed: that may take long, so EL2's timer has to be set before.
    #[inline(always)]
    pub(super) fn switch_to(&mut self, id: VcpuId) -> bool {
        self.save_loaded();
        let Some(next) = self.roster.take_parked(id) else {
            bug!("a vCPU has the core that another core owns");
            return false;
        };
        self.load(next)
    }

    /// Takes the loaded vCPU's registers off the hardware, if there is one; none takes
    /// its place for now.
    pub fn unload(&mut self) {
        self.save_loaded();
        self.interface.switch_off();
    }

    /// Takes the loaded vCPU's registers off the hardware, if there is one: all but floating
    /// point, which stays where it is until another vCPU uses it.
    fn save_loaded(&mut self) {
        // Cores that have just begun, or rested, have none.
        let Some(loaded) = self.roster.take_loaded() else { return };
        let (mut vcpu, unloading) = loaded.save(self.interface);
        self.follow_up(vcpu.id(), vcpu.vm(), unloading.after);
        if unloading.timer_held {
            // The next guest's timer is the same physical interrupt.
            self.redistributor.set_timer_inactive();
        }
        if vcpu.leaves_work() {
            self.tidy_after(&mut vcpu);
        }
        self.roster.park(vcpu);
    }

    /// Does what a vCPU that has left the hardware leaves to be done.
    #[cold]
    #[inline(never)]
    fn tidy_after(&mut self, vcpu: &mut Parked) {
        if vcpu.counts_cycles() {
            vcpu.monitors().pause();
        }
        if vcpu.config().may_cause_errors() {
            self.end_errors(Some(vcpu.id()));
        }
    }

    /// Ends a system error that pends while no guest runs.
    #[cold]
    #[inline(never)]
    pub(super) fn end_error_of_loaded(&mut self) {
        self.end_errors(self.roster.loaded_id());
    }

    /// Completes what this core has executed. If that has caused a system error, ends the error and
    /// stops the VM of the vCPU that was the last to be loaded. Without one the error came from the
    /// boot loader or firmware, and is only counted.
    #[inline(never)]
    pub fn end_errors(&mut self, last: Option<VcpuId>) {
        if !cpu::ends_error() {
            return;
        }
        match last {
            Some(id) => {
                // Another guest may wait for this core, so the VM's coordinator writes the line.
                let vm = self.vm_of(id);
                VMS[vm].erred.store(true, Ordering::Relaxed);
                self.ask_coordinator(vm, Message::VmsFailed);
            }
            None => self.ledger.count_spurious(),
        }
    }

    /// Puts a vCPU on the hardware, which must hold none. Inlined, as every switch
    /// comes by. Returns true if it has interrupts that are not listed.
    #[inline(always)]
    fn load(&mut self, mut vcpu: Parked) -> bool {
        vcpu.enter_space();
        let (id, vm) = (vcpu.id(), vcpu.vm());
        if vcpu.has_extras() {
            if vcpu.debugs() {
                vcpu.load_debug();
            }
            if vcpu.counts_cycles() {
                vcpu.monitors().go_on();
            }
            if self.roster.follows_sibling(vm, id) {
                // Another sibling's view may be another one too.
                if vcpu.differs_in_view() {
                    cpu::flush_guest_tlb_and_stage2();
                } else {
                    cpu::flush_guest_tlb();
                }
            }
        }
        context::open_float(self.roster.owns_float(id));
        let mut vcpu = vcpu.load(self.interface);
        self.load_timer(&mut vcpu);
        vcpu.end_wait();
        let has_news = vcpu.has_news();
        self.roster.has_loaded(vcpu);
        has_news
    }

    /// Lists what was posted to a vCPU while it was not loaded.
    #[inline(never)]
    pub(super) fn list_news(&mut self, id: VcpuId) {
        if self.jobs.before_guest().has(id) || cpu::interrupt_pending() {
            // An interrupt has come, maybe while the timer's was listed: that one is next.
            self.jobs.list_later(id);
            self.need_resched = true;
        } else {
            self.with_interface(|interface, gic, hw| interface.sync(gic, hw));
        }
    }

    /// Puts a vCPU's virtual timer on the hardware. If it is due already, injects its
    /// interrupt at once, instead of waiting for the physical one. Inlined, as every switch
    /// comes by.
    #[inline(always)]
    fn load_timer(&mut self, vcpu: &mut Loaded) {
        vcpu.load_timer();
        if vcpu.timer_is_held() {
            self.redistributor.set_timer_active();
        } else if timer::loaded_is_asserted() {
            self.redistributor.set_timer_active();
            let intid = timer::VIRTUAL_INTID;
            // EL2's timer is not set yet.
            let listing = vcpu.with_interface(self.interface, true, |interface, gic, hw| {
                interface.inject(gic, hw, intid, intid)
            });
            self.note_listed(vcpu.id(), listing);
            self.follow_up(vcpu.id(), vcpu.vm(), listing.after);
        }
    }

    /// Calls `act`, which may change the loaded vCPU's list registers and returns how many
    /// interrupts it has listed. Does nothing if no vCPU is loaded: a maintenance interrupt may
    /// have been on its way when the last one was unloaded.
    pub fn with_interface(
        &mut self,
        act: impl FnOnce(&mut CpuInterface, &Gic, &mut virtual_interface::Loaded) -> usize,
    ) {
        // What is asked for may be for the sake of another vCPU.
        self.with_interface_at_exit(self.need_resched, act);
        cpu::synchronize();
    }

    /// Calls `act`, an access of the loaded vCPU to a device, which may change its list registers
    /// and returns how many interrupts it has listed, and what the device has posted: those that
    /// this concerns are notified together with those that the list registers concern.
    pub fn with_device(
        &mut self,
        act: impl FnOnce(&mut CpuInterface, &mut virtual_interface::Loaded) -> (usize, Effects),
    ) {
        let hardware = self.interface;
        let Some(vcpu) = self.roster.loaded_mut() else {
            return bug!("a device is accessed, and no vCPU is loaded");
        };
        let mut effects = Effects::default();
        let listing = vcpu.with_interface(hardware, false, |interface, _, list_registers| {
            let (listed, posted) = act(interface, list_registers);
            effects = posted;
            listed
        });
        let (id, vm) = (vcpu.id(), vcpu.vm());
        self.note_listed(id, listing);
        cpu::synchronize();
        self.note_unfinished(id, listing.after);
        effects.notify |= listing.after.notify();
        self.notify(vm, effects);
    }

    /// Like [`Self::with_interface`]; but which list registers are empty is certain only after
    /// the guest has run, or after the next synchronization. `awaited`: see
    /// [`virtual_interface::Loaded::new`].
    #[inline(always)]
    pub(super) fn with_interface_at_exit(
        &mut self,
        awaited: bool,
        act: impl FnOnce(&mut CpuInterface, &Gic, &mut virtual_interface::Loaded) -> usize,
    ) {
        let hardware = self.interface;
        // It may have been unloaded since the interrupt came.
        let Some(vcpu) = self.roster.loaded_mut() else { return };
        let listing = vcpu.with_interface(hardware, awaited, act);
        let (id, vm) = (vcpu.id(), vcpu.vm());
        self.note_listed(id, listing);
        self.follow_up(id, vm, listing.after);
    }

    /// Does what a change of a vCPU's list registers has left to be done.
    #[inline(always)]
    fn follow_up(&mut self, id: VcpuId, vm: usize, after: After) {
        if !after.is_nothing() {
            self.follow_up_on(id, vm, after);
        }
    }

    #[inline(never)]
    fn follow_up_on(&mut self, id: VcpuId, vm: usize, after: After) {
        // What was listed just now must not pass for emptied, should the vCPU be unloaded next.
        cpu::synchronize();
        self.note_unfinished(id, after);
        self.notify_siblings(vm, siblings(after.notify()));
    }

    /// Has the rest of a vCPU's interrupts listed before its guest runs, if that has stopped.
    fn note_unfinished(&mut self, id: VcpuId, after: After) {
        if after.is_unfinished() {
            self.jobs.list_later(id);
            self.need_resched = true;
            // Whatever comes next is no longer delayed by what came before.
            self.entered = timer::now();
        }
    }

    /// Loads the floating-point registers of the loaded vCPU, which uses them for the first
    /// time since another vCPU did.
    #[inline(never)]
    pub fn switch_float(&mut self) {
        context::open_float_now();
        let Some(id) = self.roster.loaded_id() else {
            return bug!("floating point is used without a loaded vCPU");
        };
        if self.roster.owns_float(id) {
            return;
        }
        if let Some(previous) = self.roster.give_float(id) {
            previous.save_float();
        }
        if let Some(vcpu) = self.roster.loaded() {
            vcpu.load_float();
        }
    }
}
