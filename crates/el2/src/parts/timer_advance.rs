//! vCPUs that were woken before their timers fire.

use sched::{Instant, VcpuId, VcpuSet};

/// The vCPUs that were woken early: for the scheduler they are ready, while their guests
/// still wait in WFI.
#[derive(Default)]
pub struct TimerAdvance {
    early: VcpuSet,
    /// Those of them that were not on the hardware since.
    on_the_way: VcpuSet,
}

impl TimerAdvance {
    /// Makes the part; no vCPU was woken early.
    #[must_use]
    pub const fn new() -> Self {
        Self { early: VcpuSet::EMPTY, on_the_way: VcpuSet::EMPTY }
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
        self.on_the_way.insert(id);
    }

    /// Records that a vCPU waits before its timer fires, and has been on the hardware all the time.
    pub fn stay(&mut self, id: VcpuId) {
        self.early.insert(id);
    }

    /// Records that a vCPU is on the hardware. Returns true if it is for the first time since it was
    /// woken early.
    #[inline]
    pub fn arrive(&mut self, id: VcpuId) -> bool {
        let arrives = self.on_the_way.has(id);
        self.on_the_way.remove(id);
        arrives
    }

    /// Records that a vCPU runs its guest, or sleeps again. Returns true if it was woken early.
    pub fn end(&mut self, id: VcpuId) -> bool {
        let was_early = self.early.has(id);
        self.early.remove(id);
        self.on_the_way.remove(id);
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

/// Ways differ a little: an adapted advance is longer by this part of one, and by a tick.
const MARGIN: u64 = 8;

/// How long before its virtual timer fires a vCPU gets its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advance {
    /// In these parts of a tick: a counter may have few ticks in all of an advance.
    fine: u64,
}

impl Advance {
    /// Parts of a tick, of which that is the binary logarithm.
    const PARTS: u32 = 8;
    /// An advance that is too long loses this part of what it is too long by with each activation, of which
    /// that is the binary logarithm: what was needed once is kept for some hundred.
    const FORGETS: u32 = 8;

    /// Returns one of so many ticks, below 2^56.
    #[must_use]
    #[inline]
    pub const fn of(ticks: u64) -> Self {
        Self { fine: ticks << Self::PARTS }
    }

    /// Returns it in ticks.
    #[must_use]
    #[inline]
    pub const fn ticks(self) -> u64 {
        self.fine >> Self::PARTS
    }

    /// Returns that after an activation whose way to its guest took `way` ticks, below 2^48: enough for that,
    /// `at_most` ticks, and what activations before needed is forgotten slowly.
    #[must_use]
    pub fn after(self, way: u64, at_most: u64) -> Self {
        let needed = Self::of((way + way / MARGIN + 1).min(at_most)).fine;
        let too_long = self.fine.saturating_sub(needed);
        Self { fine: needed + too_long - (too_long >> Self::FORGETS) }
    }
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
        let after = |advance, way| Advance::of(advance).after(way, 4_000).ticks();
        assert_eq!(after(1_013, 2_400), 2_701);
        assert_eq!(after(2_700, 900), 2_693, "and forgets it slowly");
        assert_eq!(after(2_500, 9_000), 4_000, "not above what it may be");
        assert_eq!(after(4_000, 1 << 47), 4_000);
        assert_eq!(after(1, 0), 1, "one that is nothing would never be adapted again");
    }

    #[test]
    fn what_was_needed_is_forgotten_as_slowly_where_a_tick_is_long() {
        for (at_most, way, needed) in [(4_000, 900, 1_013), (76, 17, 20)] {
            let mut advance = Advance::of(at_most);
            for _ in 0..256 {
                advance = advance.after(way, at_most);
            }
            // A 256th less, 256 times: 37 % of what it is too long by are left.
            let left = (advance.ticks() - needed) as f64 / (at_most - needed) as f64;
            assert!((0.34..0.40).contains(&left), "{left}");
            for _ in 0..3_000 {
                advance = advance.after(way, at_most);
            }
            assert_eq!(advance.ticks(), needed);
        }
    }

    #[test]
    fn a_way_ends_once() {
        let id = VcpuId(3);
        let mut advance = TimerAdvance::new();
        assert!(!advance.arrive(id));
        advance.begin(id);
        assert!(advance.arrive(id) && !advance.arrive(id));
        advance.begin(id);
        assert!(advance.end(id) && !advance.arrive(id), "it sleeps again, and never arrived");
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
