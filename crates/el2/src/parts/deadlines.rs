//! What EL2's timer is set to.

use sched::Instant;

/// The deadline that does not come.
pub const NEVER: Instant = Instant(u64::MAX);

/// EL2's timer is set to the earliest deadline, or never fires. It is written only when
/// that changes.
pub struct Deadlines {
    armed: Instant,
    /// What it was set to before it was shortened.
    before: Instant,
}

impl Deadlines {
    /// Makes the part for a timer that never fires.
    #[must_use]
    pub const fn new() -> Self {
        Self { armed: NEVER, before: NEVER }
    }

    /// Records when the timer has to fire next. Returns that if the timer has to be written.
    #[must_use]
    #[inline(always)]
    pub fn set(&mut self, first: Instant) -> Option<Instant> {
        self.before = first;
        self.change(first)
    }

    /// Records that the timer has to fire at this instant, too, until it is set anew. Returns that if
    /// the timer has to be written.
    #[must_use]
    pub fn add(&mut self, also: Instant) -> Option<Instant> {
        self.set(self.before.min(also))
    }

    /// Records that the timer has to fire at this instant at the latest. Returns what to set it
    /// to, if it has to be written.
    #[must_use]
    #[inline(always)]
    pub fn shorten(&mut self, end: Instant) -> Option<Instant> {
        self.change(end.min(self.before))
    }

    /// Takes back that the timer was to fire earlier. Returns what to set it to, if it has to be
    /// written.
    #[must_use]
    #[inline(always)]
    pub fn restore(&mut self) -> Option<Instant> {
        self.change(self.before)
    }

    #[inline(always)]
    fn change(&mut self, first: Instant) -> Option<Instant> {
        if first == self.armed {
            return None;
        }
        self.armed = first;
        Some(first)
    }

    /// Stops if the timer fires later than it would have without a shortened deadline.
    #[cfg(any(test, feature = "checked"))]
    pub fn check(&self) {
        assert!(self.armed <= self.before, "a deadline was shortened, and is later by that");
    }

    /// Returns when the timer fires next.
    #[cfg(any(test, feature = "checked"))]
    #[must_use]
    pub fn armed(&self) -> Instant {
        self.armed
    }

    /// Records that the timer fired, or was reset. Returns what to set it to: never.
    #[must_use]
    pub fn fired(&mut self) -> Instant {
        *self = Self::new();
        NEVER
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_shortened_and_restored() {
        let mut deadlines = Deadlines::new();
        assert_eq!(deadlines.set(Instant(7)), Some(Instant(7)));
        assert_eq!(deadlines.shorten(Instant(9)), None);
        assert_eq!(deadlines.shorten(Instant(3)), Some(Instant(3)));
        assert_eq!(deadlines.shorten(Instant(5)), Some(Instant(5)), "another section");
        deadlines.check();
        assert_eq!(deadlines.restore(), Some(Instant(7)));
        assert_eq!(deadlines.restore(), None);
        assert_eq!(
            (deadlines.add(Instant(8)), deadlines.add(Instant(6))),
            (None, Some(Instant(6)))
        );
        assert_eq!(deadlines.shorten(Instant(3)), Some(Instant(3)));
        assert_eq!(deadlines.restore(), Some(Instant(6)), "what was added stays");
    }

    #[test]
    fn the_timer_is_written_only_when_its_deadline_changes() {
        let mut deadlines = Deadlines::new();
        assert_eq!(deadlines.set(NEVER), None);
        assert_eq!(deadlines.set(Instant(7)), Some(Instant(7)));
        assert_eq!(deadlines.set(Instant(7)), None);
        assert_eq!(deadlines.fired(), NEVER);
        assert_eq!(
            deadlines.set(Instant(7)),
            Some(Instant(7)),
            "it fired, so it has to be set again"
        );
    }
}
