//! vCPUs that were woken before their timers fire.

use sched::{Instant, VcpuId, VcpuSet};

/// The vCPUs that were woken early: for the scheduler they are ready, while their guests
/// still wait in WFI.
#[derive(Default)]
pub struct TimerAdvance {
    early: VcpuSet,
}

impl TimerAdvance {
    /// Makes the part; no vCPU was woken early.
    #[must_use]
    pub const fn new() -> Self {
        Self { early: VcpuSet::EMPTY }
    }

    /// Returns the vCPUs that were woken early.
    #[must_use]
    #[inline]
    pub fn early(&self) -> VcpuSet {
        self.early
    }

    /// Records that a vCPU is woken before its timer fires.
    pub fn begin(&mut self, id: VcpuId) {
        self.early.insert(id);
    }

    /// Records that a vCPU runs its guest, or sleeps again. Returns true if it was woken early.
    pub fn end(&mut self, id: VcpuId) -> bool {
        let was_early = self.early.has(id);
        self.early.remove(id);
        was_early
    }

    /// Asserts what stands at the type. `ready`: what the scheduler may let run.
    #[cfg(any(test, feature = "checked"))]
    pub fn check(&self, ready: VcpuSet) {
        assert!(self.early.is_within(ready), "a vCPU was woken early and is not ready");
    }
}

/// Returns when to wake a sleeping vCPU whose timer fires at `deadline`; none if the timer has
/// fired, or is off.
#[must_use]
pub fn wakes_at(deadline: Instant, advance_ticks: u64, now: Instant) -> Option<Instant> {
    let comes = deadline > now && deadline != Instant(u64::MAX);
    comes.then(|| Instant(deadline.0.saturating_sub(advance_ticks)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vcpu_is_early_until_it_runs_or_sleeps() {
        let (mut advance, id) = (TimerAdvance::new(), VcpuId(3));
        assert!(!advance.end(id));
        advance.begin(id);
        advance.check(VcpuSet::of(id));
        assert!(advance.early().has(id) && advance.end(id));
        assert!(advance.early().is_empty());
        advance.check(VcpuSet::EMPTY);
    }

    #[test]
    fn only_a_timer_that_is_still_to_fire_is_advanced() {
        let now = Instant(100);
        assert_eq!(wakes_at(Instant(130), 20, now), Some(Instant(110)));
        assert_eq!(wakes_at(Instant(110), 20, now), Some(Instant(90)), "at once");
        assert_eq!(wakes_at(Instant(100), 20, now), None);
        assert_eq!(wakes_at(Instant(u64::MAX), 20, now), None);
    }
}
