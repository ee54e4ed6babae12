//! vCPUs wake and sleep, and take turns on the core.

use super::Pcpu;
use crate::arch::context::General;
use crate::arch::timer;
use crate::bug::bug;
use crate::status::trace::{Kind, Trace};
use abi::status::vcpu_state;
use sched::{Instant, VcpuId, Woken};

impl Pcpu {
    /// Makes a sleeping vCPU ready, if this core owns it.
    #[inline(never)]
    pub fn wake(&mut self, id: VcpuId) {
        let Some(vcpu) = self.roster.get(id) else { return };
        match self.scheduler.wake(id) {
            Woken::Nothing => return,
            Woken::Waits => {}
            Woken::Decide => self.need_resched = true,
            Woken::Rises => {
                self.need_resched |= self.scheduler.rises(id, timer::now());
                return;
            }
        }
        let now = timer::now();
        vcpu.account().begin_waiting(now);
        self.trace.note(Kind::Wake, id, 0, now);
    }

    /// Makes a vCPU sleep. `state` is what the status area says of it: sleeping or off.
    #[inline(never)]
    pub fn sleep(&mut self, id: VcpuId, state: u64) {
        let now = timer::now();
        if let Some(vcpu) = self.roster.get(id) {
            vcpu.account().stops_waiting(state, now);
            self.trace.note(Kind::Sleep, id, state as u32, now);
        }
        self.scheduler.sleep(id);
        self.need_resched = true;
    }

    /// Like [`Self::sleep`], for the guest that has asked for it: it ran, so it was not
    /// waiting.
    pub fn loaded_sleeps(&mut self) {
        if let Some(vcpu) = self.roster.loaded_mut() {
            vcpu.account().sleeps();
            self.trace.note(Kind::Sleep, vcpu.id(), vcpu_state::SLEEPING as u32, self.entered);
            self.scheduler.sleep(vcpu.id());
            self.need_resched = true;
        }
    }

    /// Gives the core to a vCPU, or to none, and books the turn that ends by that. Inlined,
    /// as every switch comes by.
    #[inline(always)]
    pub(super) fn give_core(&mut self, next: Option<VcpuId>, now: Instant) {
        // It has the core already.
        let Some(turn) = self.ledger.give(next, now) else { return };
        if let Some(previous) = turn.of {
            let still_ready = self.scheduler.is_ready(previous);
            // A vCPU that is not loaded had its turn for a job.
            let in_kernel =
                if self.roster.is_loaded(previous) { General::kernel_mode() } else { 0 };
            if let Some(vcpu) = self.roster.get(previous) {
                vcpu.account().book(turn.took);
                if still_ready {
                    self.trace.note(Kind::Stop, previous, 1, now);
                    vcpu.account().preempt(in_kernel, now);
                } else {
                    self.trace.note(Kind::Stop, previous, 0, now);
                    if Trace::IS_ON && self.scheduler.has_extras() {
                        self.show_budget_of_stopped(previous, now);
                    }
                }
            }
        }
        if let Some(vcpu) = next.and_then(|id| self.roster.get(id)) {
            vcpu.account().begin_turn(now);
            self.trace.note(Kind::Run, vcpu.id(), 0, now);
        }
    }

    /// Takes the core from the vCPU that has it, out of line, where nothing urgent waits for that.
    #[inline(never)]
    pub(super) fn free_core(&mut self, now: Instant) {
        self.give_core(None, now);
    }

    /// Lets a vCPU run before a sibling that runs here: the sibling may spin until the vCPU
    /// has handled an interrupt, or released a lock.
    pub(super) fn yield_to(&mut self, id: VcpuId) {
        // One that is loaded needs none, and one that has left runs elsewhere.
        let Some(vcpu) = self.roster.parked(id) else { return };
        let vm = vcpu.vm();
        if vcpu.config().is_yielded_to()
            && self.loaded_is_current()
            && self.roster.loaded().is_some_and(|loaded| loaded.vm() == vm)
        {
            self.need_resched |= self.scheduler.yield_to(id);
        }
    }

    /// Puts the loaded vCPU to sleep if nothing is there to wake it, nor will be at once.
    pub fn wait_for_interrupt(&mut self) {
        let Some(vcpu) = self.roster.loaded() else { return bug!("a WFI without a loaded vCPU") };
        if vcpu.has_unlisted() {
            self.with_interface(|interface, gic, hw| interface.sync(gic, hw));
            if self.roster.loaded().is_some_and(|vcpu| vcpu.has_news()) {
                // Not all is listed yet. A WFI may end for no reason.
                return;
            }
        }
        if !self.loaded_has_interrupt() && !self.stays_for_timer() {
            self.loaded_sleeps();
        }
    }
}
