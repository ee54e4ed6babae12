//! vCPUs of a VM that run together or not at all.
//!
//! The cores agree through one word for each VM: which of its vCPUs could run and
//! are displaced. While there is any, each core's scheduler holds the others back.

use super::Pcpu;
use crate::arch::timer;
use crate::shared::VMS;
use core::sync::atomic::Ordering;
use sched::{Message, VcpuId, VcpuSet};

impl Pcpu {
    /// The siblings of a vCPU stop because it cannot run, or go on.
    pub(super) fn set_stalled(&mut self, id: VcpuId, stalled: bool) {
        // One that is on its way here was never waited for: those that are do not move.
        let Some(vcpu) = self.roster.get(id) else { return };
        let (vm, bit) = (vcpu.vm(), 1 << vcpu.index());
        let set = &VMS[vm].stalled;
        let before = if stalled {
            set.fetch_or(bit, Ordering::AcqRel)
        } else {
            set.fetch_and(!bit, Ordering::AcqRel)
        };
        let changed = if stalled { before == 0 } else { before == bit };
        if changed {
            self.tell_others(Message::Coscheduled, vm, false);
            self.follow_siblings(vm);
        }
    }

    /// Lets this core's vCPUs of a VM run, or not.
    pub(super) fn follow_siblings(&mut self, vm: usize) {
        let stalled = VMS[vm].stalled.load(Ordering::Acquire) != 0;
        for id in self.vcpus_of(vm) {
            if !self.roster.owns(id) || self.scheduler.is_held_back(id) == stalled {
                continue;
            }
            if stalled {
                self.stop_for_sibling(id);
            } else {
                self.go_on_with_siblings(id);
            }
        }
    }

    /// Holds a vCPU back while a sibling of it is displaced.
    fn stop_for_sibling(&mut self, id: VcpuId) {
        // A vCPU that is displaced itself does not run anyway, and goes on as soon as its
        // core is free.
        let current = self.ledger.current();
        let losers = current.map_or(VcpuSet::EMPTY, |current| self.displacement.losers(current));
        if (self.displacement.awaited() | losers | self.jobs.pending()).has(id) {
            return;
        }
        if self.roster.get(id).is_some_and(|vcpu| vcpu.is_on()) {
            self.scheduler.hold_back(id);
            self.need_resched = true;
        }
    }

    /// Lets a vCPU run again that was held back.
    fn go_on_with_siblings(&mut self, id: VcpuId) {
        let ready = self.scheduler.release(id);
        if ready && let Some(vcpu) = self.roster.get(id) {
            vcpu.account().can_run(timer::now());
        }
        self.need_resched = true;
    }
}
