//! How long a core has idled, as other cores see it.

use crate::arch::atomic::AtomicU64;
use core::sync::atomic::Ordering;
use sched::{Duration, Instant};

/// The mark of a core that does not rest.
const AWAKE: u64 = u64::MAX;

/// How long one core has idled; that core writes it. Another core that reads it while it
/// changes finds less than that, never more.
pub struct Rest {
    /// Ticks of finished rests.
    finished: AtomicU64,
    /// When the present rest began.
    since: AtomicU64,
}

impl Rest {
    /// Makes the words of a core that has not idled yet.
    pub const fn new() -> Self {
        Self { finished: AtomicU64::new(0), since: AtomicU64::new(AWAKE) }
    }

    /// Begins a rest of this core.
    pub fn begin(&self, now: Instant) {
        self.since.store(now.0, Ordering::Relaxed);
    }

    /// Ends the rest of this core.
    pub fn end(&self, now: Instant) {
        let rested = now.since(Instant(self.since.swap(AWAKE, Ordering::Relaxed)));
        self.finished.fetch_add(rested.0, Ordering::Release);
    }

    /// Returns how long the core has idled by `now`, the present rest included.
    pub fn idled(&self, now: Instant) -> Duration {
        let finished = self.finished.load(Ordering::Acquire);
        let present = now.since(Instant(self.since.load(Ordering::Relaxed)));
        Duration(finished + present.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_rests_and_the_present_one_are_counted() {
        let rest = Rest::new();
        assert_eq!(rest.idled(Instant(100)), Duration(0), "it has not rested yet");
        rest.begin(Instant(100));
        assert_eq!(rest.idled(Instant(130)), Duration(30));
        rest.end(Instant(140));
        assert_eq!(rest.idled(Instant(170)), Duration(40), "it runs since");
        rest.begin(Instant(200));
        assert_eq!(rest.idled(Instant(201)), Duration(41));
    }
}
