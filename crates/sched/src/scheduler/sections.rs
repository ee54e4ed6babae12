//! Global critical sections and ceilings.

use super::{Scheduler, VcpuId};
use crate::Instant;
use crate::ceiling::Ceiling;

impl Scheduler {
    /// Records that a task of this vCPU holds one more global resource: the vCPU is at its
    /// ceiling, above every vCPU that is not, and may overrun if its server allows that
    /// (`vmpcp_start_gcs`, RTSS 2014, Section III-C).
    pub fn enter_gcs(&mut self, id: VcpuId, now: Instant) {
        let Some(at) = self.find(id) else { return };
        self.charge(now);
        self.make_special(at);
        let sections = &mut self.extras.sections[usize::from(id.0)];
        *sections = sections.saturating_add(1);
        self.extras.raised |= 1 << at;
        self.look_at_budget(at, now);
    }

    /// Records that a task of this vCPU has given a global resource back
    /// (`vmpcp_finish_gcs`, RTSS 2014, Section III-C).
    pub fn exit_gcs(&mut self, id: VcpuId, now: Instant) {
        let Some(at) = self.find(id).filter(|_| self.in_gcs(id)) else { return };
        self.charge(now);
        let sections = &mut self.extras.sections[usize::from(id.0)];
        *sections -= 1;
        if *sections == 0 {
            self.extras.raised &= !(1 << at);
        }
        self.look_at_budget(at, now);
    }

    /// Returns true if a task of this vCPU holds a global resource.
    #[must_use]
    pub fn in_gcs(&self, id: VcpuId) -> bool {
        self.extras.sections.get(usize::from(id.0)).is_some_and(|&sections| sections > 0)
    }

    /// Returns a vCPU's priority, at its ceiling or not; none when it is not here.
    #[must_use]
    pub fn ceiling(&self, id: VcpuId) -> Option<Ceiling> {
        let at = self.find(id)?;
        Some(Ceiling { gcs: self.in_gcs(id), priority: self.entries[at].priority })
    }
}
