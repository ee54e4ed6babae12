//! The vCPUs of a VM run at the same time or not at all.
//!
//! One set for each VM says which of its vCPUs could run and are displaced. While
//! there is one, each core's scheduler holds the other vCPUs of the VM back.

use super::Pcpu;
use crate::arch::gic::Doorbell;
use crate::arch::timer;
use crate::shared::{Sibling, SiblingSet, VMS};
use core::sync::atomic::Ordering;
use notes::each;
use sched::{Message, VcpuId, VcpuSet};

impl Pcpu {
    /// Records whether a vCPU is displaced though it could run, for which its siblings stop.
    pub(super) fn set_stalled(&mut self, id: VcpuId, stalled: bool) {
        notes::needs::<{ each::CANDIDATE }>();
        // Siblings stop only for vCPUs that do not migrate.
        let Some(vcpu) = self.roster.get(id) else { return };
        let (vm, sibling) = (vcpu.vm(), Sibling(vcpu.index()));
        let set = &VMS[vm].stalled;
        let changed = if stalled {
            set.insert(sibling, Ordering::AcqRel).is_empty()
        } else {
            set.remove(sibling, Ordering::AcqRel) == SiblingSet::of(sibling)
        };
        if changed {
            self.tell_places(Message::Coscheduled, vm, Doorbell::Ordinary);
            self.follow_siblings(vm);
        }
    }

    /// Holds this core's vCPUs of a VM back, or lets them run, as the VM's set says.
    pub(super) fn follow_siblings(&mut self, vm: usize) {
        let stalled = !VMS[vm].stalled.load(Ordering::Acquire).is_empty();
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
        notes::needs::<{ each::CANDIDATE }>();
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

    /// Releases a vCPU that was held back.
    fn go_on_with_siblings(&mut self, id: VcpuId) {
        notes::needs::<{ each::CANDIDATE }>();
        let ready = self.scheduler.release(id);
        if ready && let Some(vcpu) = self.roster.get(id) {
            vcpu.account().can_run(timer::now());
        }
        self.need_resched = true;
    }
}
