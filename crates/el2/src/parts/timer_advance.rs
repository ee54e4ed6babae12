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

/// Ways differ a little: an adapted advance is longer by this part of one.
const MARGIN: u64 = 8;
/// An advance that is too long loses this part of that with each activation: one that was needed is
/// kept for some hundred. A power of two.
const FORGETS: u64 = 256;

/// Returns the advance of a vCPU after an activation whose way to its guest took `way`, all in ticks:
/// enough for that, at most `at_most`, and what activations before needed is forgotten slowly.
#[must_use]
pub fn adapted(advance: u64, way: u64, at_most: u64) -> u64 {
    let needed = (way + way / MARGIN).min(at_most);
    let forgotten = (advance.saturating_sub(needed) + FORGETS - 1) >> FORGETS.ilog2();
    needed.max(advance - forgotten)
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
    fn an_advance_becomes_what_ways_need_and_follows_a_longer_one_at_once() {
        let mut advance = 4_000;
        for _ in 0..3_000 {
            advance = adapted(advance, 900, 4_000);
        }
        assert_eq!(advance, 1_012);
        assert_eq!(adapted(advance, 2_400, 4_000), 2_700);
        assert_eq!(adapted(2_700, 900, 4_000), 2_693, "and forgets it slowly");
        assert_eq!(adapted(2_500, 9_000, 4_000), 4_000, "not above what it may be");
        assert_eq!(adapted(4_000, u64::MAX / 2, 4_000), 4_000);
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
