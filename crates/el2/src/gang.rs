//! vCPUs of a VM that run together or not at all.
//!
//! The cores agree through one word for each VM: which of its vCPUs could run and
//! are displaced. While there is any, each core takes the others out of its
//! scheduler.

use crate::pcpu::Pcpu;
use crate::policies::params;
use crate::shared::VMS;
use core::sync::atomic::Ordering;
use sched::{Message, VcpuId};

impl Pcpu {
    /// The siblings of a vCPU stop because it cannot run, or go on.
    pub fn set_awaited(&mut self, id: VcpuId, awaited: bool) {
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
        // Those that are displaced themselves stay as they are: they do not run,
        // and would lose their turns.
        let current = usize::try_from(self.status.current).ok();
        let losers = current.and_then(|id| self.displaced_by.get(id)).copied().unwrap_or(0);
        if (self.displaced | losers | self.working) & bit != 0 {
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
