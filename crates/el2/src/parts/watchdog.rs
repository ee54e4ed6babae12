//! Whether other cores still take interrupts.

use sched::{Duration, Instant};

/// A core that is not watched: it is off, was not started, or is reported.
pub const UNWATCHED: Instant = Instant(0);

/// The watchdog as one core has it: twice in its time a timer interrupts the core, which is a sign
/// of life, and then the core looks when the others gave theirs.
///
/// Invariant: a core gives no sign, and writes no lines for another one, in a system without a
/// watchdog; and as long as it gives signs, others know its latest one, unless they have reported it
/// since.
pub struct Watchdog {
    /// From one sign of life to the next; 0: this system has no watchdog.
    period: Duration,
    /// When this core gave its latest sign, or [`UNWATCHED`].
    latest: Instant,
    /// The core that drives the UART hangs, and this one writes the hypervisor's own lines.
    writes_log: bool,
}

impl Watchdog {
    /// Makes the part of a core that is not watched yet. `time`: how long a core may take no
    /// interrupt; 0: there is no watchdog.
    #[must_use]
    pub const fn new(time: Duration) -> Self {
        Self { period: Duration(time.0.div_ceil(2)), latest: UNWATCHED, writes_log: false }
    }

    /// Returns true if this system has a watchdog.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.period.0 > 0
    }

    /// Records that this core gives a sign of life. Returns when it has to give the next one, and
    /// whether it may judge others: one that was late itself may not. All cores may have been
    /// stopped while the counter went on, and the first that goes on would report the rest.
    #[must_use]
    pub fn lives(&mut self, now: Instant) -> (Instant, bool) {
        let judges = !self.hangs(self.latest, now);
        self.latest = now;
        (now.after(self.period), judges)
    }

    /// Records that this core is not to be watched: it is about to be switched off.
    pub fn ends(&mut self) {
        self.latest = UNWATCHED;
    }

    /// Returns true if a core whose latest sign is `seen` has taken no interrupt for the watchdog's
    /// time: it has not taken the one that was due a period after its sign.
    #[must_use]
    pub fn hangs(&self, seen: Instant, now: Instant) -> bool {
        seen != UNWATCHED && now.since(seen).0 > 3 * self.period.0
    }

    /// Makes this core write the hypervisor's own lines.
    pub fn write_log(&mut self) {
        self.writes_log = true;
    }

    /// Returns true if this core writes the hypervisor's own lines for another one. `hangs`: that
    /// one still does; else it writes them itself again.
    #[must_use]
    pub fn writes_log(&mut self, hangs: bool) -> bool {
        self.writes_log &= hangs;
        self.writes_log
    }

    /// Asserts what stands at the type. `known`: what other cores know.
    #[cfg(any(test, feature = "checked"))]
    pub fn check(&self, known: Instant) {
        let watches = self.latest != UNWATCHED;
        assert!(self.is_on() || !watches && !self.writes_log, "there is no watchdog");
        assert!(known == self.latest || known == UNWATCHED, "others know another sign of life");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: u64 = 1_000;

    #[test]
    fn a_core_hangs_when_it_has_not_taken_what_was_due_for_the_whole_time() {
        let mut watchdog = Watchdog::new(Duration(TIME));
        let (next, judges) = watchdog.lives(Instant(100));
        assert_eq!((next, judges), (Instant(100 + TIME / 2), true));
        let seen = Instant(70);
        assert!(!watchdog.hangs(seen, Instant(70 + TIME / 2 + TIME)));
        assert!(watchdog.hangs(seen, Instant(71 + TIME / 2 + TIME)));
        assert!(!watchdog.hangs(Instant(200), Instant(100)), "it gave its sign later");
        watchdog.check(Instant(100));
    }

    #[test]
    fn what_is_not_watched_does_not_hang() {
        let mut watchdog = Watchdog::new(Duration(TIME));
        assert!(!watchdog.hangs(UNWATCHED, Instant(1 << 60)));
        let _ = watchdog.lives(Instant(5));
        watchdog.ends();
        watchdog.check(UNWATCHED);
        assert!(watchdog.lives(Instant(1 << 60)).1, "it was off, which is not late");
    }

    #[test]
    fn a_core_that_was_late_judges_next_time_only() {
        let mut watchdog = Watchdog::new(Duration(TIME));
        let _ = watchdog.lives(Instant(1));
        let (next, judges) = watchdog.lives(Instant(10 * TIME));
        assert!(!judges && watchdog.lives(next).1);
    }

    #[test]
    fn a_core_writes_for_another_one_as_long_as_that_hangs() {
        let mut watchdog = Watchdog::new(Duration(TIME));
        assert!(!watchdog.writes_log(true));
        watchdog.write_log();
        assert!(watchdog.writes_log(true) && watchdog.writes_log(true));
        assert!(!watchdog.writes_log(false) && !watchdog.writes_log(true));
    }

    #[test]
    fn without_a_watchdog_there_are_no_signs() {
        let watchdog = Watchdog::new(Duration(0));
        assert!(!watchdog.is_on());
        watchdog.check(UNWATCHED);
    }
}
