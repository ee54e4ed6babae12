//! How often a vCPU was raised by calls of its siblings.
//!
//! A call from another core costs the vCPU's core an interrupt, whatever runs there. So there
//! is a limit to them in each period of the vCPU's server, which the caller counts.

use crate::arch::atomic::{AtomicU32, AtomicU64};
use core::sync::atomic::Ordering;
use sched::{Duration, Instant};

/// Most calls of START_GCS that are not finished.
const DEEPEST: u32 = 255;

/// See the module.
pub struct Sections {
    begun: AtomicU32,
    /// Calls from other cores, and above [`COUNT_BITS`] the period that they were made in.
    calls: AtomicU64,
}

/// Bits of `calls` that count.
const COUNT_BITS: u32 = 24;
const COUNT: u64 = (1 << COUNT_BITS) - 1;

/// A call that is refused: too many were begun, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misuse;

impl Sections {
    /// Makes the state of a vCPU that was not raised.
    #[must_use]
    pub const fn new() -> Self {
        Self { begun: AtomicU32::new(0), calls: AtomicU64::new(0) }
    }

    /// Returns true if a section was begun and not finished.
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.begun.load(Ordering::Relaxed) > 0
    }

    /// Begins a section. Returns true if no other one was begun.
    ///
    /// # Errors
    /// When too many are.
    #[inline]
    pub fn begin(&self) -> Result<bool, Misuse> {
        self.change(|begun| (begun < DEEPEST).then(|| begun + 1)).map(|begun| begun == 0)
    }

    /// Ends a section. Returns true if it was the last one.
    ///
    /// # Errors
    /// When none was begun.
    #[inline]
    pub fn finish(&self) -> Result<bool, Misuse> {
        self.change(|begun| begun.checked_sub(1)).map(|begun| begun == 1)
    }

    /// Forgets all sections: the vCPU is switched off.
    pub fn reset(&self) {
        self.begun.store(0, Ordering::Relaxed);
    }

    /// Counts a call from another core. Returns false if there were as many as there may be in
    /// this period; the first one begins at `first`, and what is before counts as part of it.
    #[must_use]
    pub fn count_call(&self, most: u32, period: Duration, first: Instant, now: Instant) -> bool {
        let period = now.since(first).0.checked_div(period.0).unwrap_or(0) << COUNT_BITS;
        let count = |calls: u64| {
            let so_far = if calls & !COUNT == period { calls & COUNT } else { 0 };
            (so_far < u64::from(most).min(COUNT)).then_some(period | (so_far + 1))
        };
        self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count).is_ok()
    }

    #[inline]
    fn change(&self, step: impl Fn(u32) -> Option<u32>) -> Result<u32, Misuse> {
        self.begun.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step).map_err(|_| Misuse)
    }
}

impl Default for Sections {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_nest() {
        let sections = Sections::new();
        assert_eq!(sections.finish(), Err(Misuse));
        assert_eq!(sections.begin(), Ok(true));
        assert_eq!((sections.begin(), sections.finish()), (Ok(false), Ok(false)));
        assert!(sections.is_raised());
        assert_eq!((sections.finish(), sections.is_raised()), (Ok(true), false));
        for _ in 0..255 {
            assert!(sections.begin().is_ok());
        }
        assert_eq!(sections.begin(), Err(Misuse));
    }

    #[test]
    fn other_cores_call_so_often_in_a_period() {
        let sections = Sections::new();
        let call = |now| sections.count_call(2, Duration(10), Instant(5), Instant(now));
        assert_eq!(
            [3, 9, 14, 15, 16, 17, 95].map(call),
            [true, true, false, true, true, false, true]
        );
    }
}
