//! What a guest says about preemption: that it holds a lock, or waits for one.

use super::Pcpu;
use crate::arch::timer;
use crate::bug::bug;
use crate::vcpu::Vcpu;
use abi::service::{INVALID_PARAMETER, NOT_SUPPORTED};
use core::sync::atomic::Ordering;
use notes::each;
use sched::policy::Request;
use sched::{Member, VcpuId};

impl Pcpu {
    /// Records that the guest of the loaded vCPU asks that it not be preempted, or no longer asks:
    /// then a vCPU that waits for that gets the core. Returns the answer to that call.
    pub fn hold_off(&mut self, asks: bool) -> i64 {
        let Some(vcpu) = self.roster.loaded_mut() else {
            bug!("a call without a loaded vCPU");
            return NOT_SUPPORTED;
        };
        if vcpu.config().request() != Request::Call {
            return NOT_SUPPORTED;
        }
        vcpu.hold(asks);
        let id = vcpu.id();
        self.need_resched |= !asks && self.kernel_wait.is_for(id);
        0
    }

    /// Gives the turn of the loaded vCPU up to a sibling that is ready here, or the core to a vCPU
    /// that waits for this one. Returns the answer to that call.
    pub fn give_up_turn(&mut self) -> i64 {
        let Some(vcpu) = self.roster.loaded() else {
            bug!("a call without a loaded vCPU");
            return NOT_SUPPORTED;
        };
        if !vcpu.config().may_yield() {
            return NOT_SUPPORTED;
        }
        let (id, siblings) = (vcpu.id(), self.vcpus_of(vcpu.vm()));
        if self.scheduler.yield_turn(id, siblings, timer::now()) {
            // It is in its kernel, and no sibling is to wait for that.
            self.kernel_wait.yields();
            self.need_resched = true;
        }
        self.need_resched |= self.kernel_wait.is_for(id);
        0
    }

    /// Marks the loaded vCPU as real-time (1), or no longer (0). Returns the answer to that call.
    #[inline(never)]
    pub fn mark_loaded(&mut self, mark: u64) -> i64 {
        let Some(id) = self.roster.loaded_id() else {
            bug!("a call without a loaded vCPU");
            return NOT_SUPPORTED;
        };
        if !self.system.vcpu(id.number()).is_markable() {
            return NOT_SUPPORTED;
        }
        if mark > 1 {
            return INVALID_PARAMETER;
        }
        self.mark(id, mark == 1);
        0
    }

    /// Marks a vCPU that may be marked, or ends that. Real-time vCPUs that make way for it leave, or
    /// come back, when it has the core next.
    #[inline(never)]
    pub(super) fn mark(&mut self, id: VcpuId, marked: bool) {
        notes::needs::<{ each::MARK }>();
        self.displacement.mark(id, marked);
        self.need_resched |= self.scheduler.mark(id, marked, timer::now());
    }

    /// Tells the guest which of its vCPUs on this core share it, because this one, which has a line
    /// of preemption, is about to come or has left.
    #[cold]
    #[inline(never)]
    pub(super) fn tell_crowd(&mut self, vcpu: &Vcpu, comes: bool) {
        notes::needs::<{ each::LINE }>();
        let others = || self.vcpus_of(vcpu.vm()).filter(|&id| self.roster.owns(id));
        let crowded = |count: usize| u32::from(count > 1);
        let count = others().count() + usize::from(comes);
        let say = |vcpu: &Vcpu, word: u32| {
            if let Some(line) = vcpu.config().line() {
                line.overcommitted.store(word, Ordering::Relaxed);
            }
        };
        if comes {
            say(vcpu, crowded(count));
        }
        let ids = self.vcpus_of(vcpu.vm());
        for id in ids {
            if let Some(other) = self.roster.get(id) {
                say(other, crowded(count));
            }
        }
    }
}
