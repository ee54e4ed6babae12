//! What a test asks a core, and what must hold when all its guests sleep.

use super::Pcpu;
use sched::{Instant, State, VcpuId};

impl Pcpu {
    /// Returns true if this core owns a vCPU.
    pub fn owns(&self, id: VcpuId) -> bool {
        self.roster.owns(id)
    }

    /// Stops if something is left to do on this core, though all its guests sleep with
    /// their timers off.
    pub fn check_rest(&self, now: Instant) {
        assert!(self.jobs.pending().is_empty(), "jobs of {:?} are left", self.jobs.pending());
        self.coordination.check_rest();
        for id in self.owned() {
            let VcpuId(number) = id;
            let has_work = self.scheduler.state(id) != Some(State::Sleeping);
            assert!(!has_work, "vCPU {number} is ready, and does not run");
            assert!(!self.scheduler.is_held_back(id), "vCPU {number} is held back for ever");
            let Some(vcpu) = self.roster.parked(id) else { continue };
            if vcpu.is_on() {
                assert!(vcpu.wakes_at() > now, "vCPU {number} sleeps beyond its timer");
                assert!(!vcpu.has_news(), "vCPU {number} sleeps though it is interrupted");
            }
        }
    }
}
