//! A core's own clock: instructions since an anchor.

use crate::rate::ClockRate;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// The counter value from which translated code calls back. A core's counter
/// is set as far below it as the core may run.
pub const TRIP: u64 = 1 << 62;

/// What a core's own thread keeps of its clock.
///
/// Only that thread writes. Others read for statistics: they may be a few
/// instructions behind, but see the words of one moment, for the words of two give
/// times that never were (a sequence lock; Boehm 2012, "Can Seqlocks Get Along With
/// Programming Language Memory Models?"). Hence every access is relaxed, between the
/// fences of [`Slot::change`] and [`Slot::observe`].
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Slot {
    /// Odd while the words below, or the core's counter, are being changed.
    version: AtomicU64,
    /// Instructions before the current allotment.
    retired: AtomicU64,
    /// Counter value at which the current allotment began.
    allotted_from: AtomicU64,
    /// A virtual time, and the instructions retired by then.
    anchor_ns: AtomicU64,
    anchor_instructions: AtomicU64,
    /// The core may have armed a timer since it last checked in.
    armed: AtomicBool,
}

impl Slot {
    /// Does what changes the slot, or the core's counter beyond what translated code
    /// adds to it. Called by the core's own thread.
    pub fn change(&self, change: impl FnOnce()) {
        let version = self.version.load(Relaxed);
        self.version.store(version.wrapping_add(1), Relaxed);
        fence(Release);
        change();
        self.version.store(version.wrapping_add(2), Release);
    }

    /// Returns a copy of the slot and the core's counter, both of one moment between
    /// two changes. Called by any thread.
    pub fn observe(&self, counter: impl Fn() -> u64) -> (Self, u64) {
        loop {
            let version = self.version.load(Acquire);
            let seen = (self.copy(), counter());
            fence(Acquire);
            if version.is_multiple_of(2) && self.version.load(Relaxed) == version {
                return seen;
            }
            // The core's thread may be the one without a processor.
            std::thread::yield_now();
        }
    }

    fn copy(&self) -> Self {
        let word = |word: &AtomicU64| AtomicU64::new(word.load(Relaxed));
        Self {
            version: AtomicU64::default(),
            retired: word(&self.retired),
            allotted_from: word(&self.allotted_from),
            anchor_ns: word(&self.anchor_ns),
            anchor_instructions: word(&self.anchor_instructions),
            armed: AtomicBool::new(self.armed.load(Relaxed)),
        }
    }

    /// Instructions retired, given the core's counter.
    ///
    /// Within a block the counter may fall: a block is counted when it begins
    /// and the part behind an instruction that sees time is taken off again.
    pub fn instructions(&self, counter: u64) -> u64 {
        let since = counter.wrapping_sub(self.allotted_from.load(Relaxed));
        self.retired.load(Relaxed).wrapping_add(since)
    }

    /// The core's own time in ns, given its counter.
    pub fn time_ns(&self, counter: u64, rate: ClockRate) -> u64 {
        let since = self.instructions(counter).wrapping_sub(self.anchor_instructions.load(Relaxed));
        self.anchor_ns.load(Relaxed) + rate.nanoseconds(since)
    }

    /// Lets the core's time go on from `at_ns`, after a sleep.
    pub fn anchor(&self, counter: u64, at_ns: u64) {
        self.anchor_instructions.store(self.instructions(counter), Relaxed);
        self.anchor_ns.store(at_ns, Relaxed);
    }

    /// Begins a new allotment up to `limit_ns`. Returns what the counter must
    /// be set to.
    #[must_use]
    pub fn allot(&self, counter: u64, limit_ns: u64, rate: ClockRate) -> u64 {
        let instructions = self.instructions(counter);
        let until = rate.instructions(limit_ns.saturating_sub(self.anchor_ns.load(Relaxed)));
        let since = instructions.wrapping_sub(self.anchor_instructions.load(Relaxed));
        self.restart(instructions, TRIP - until.saturating_sub(since).min(TRIP))
    }

    /// Ends the allotment, so that the next block checks in. Returns what the
    /// counter must be set to.
    #[must_use]
    pub fn trip(&self, counter: u64) -> u64 {
        self.restart(self.instructions(counter), TRIP)
    }

    fn restart(&self, instructions: u64, counter: u64) -> u64 {
        self.retired.store(instructions, Relaxed);
        self.allotted_from.store(counter, Relaxed);
        counter
    }

    /// Notes that the core may have armed a timer.
    pub fn arm(&self) {
        self.armed.store(true, Relaxed);
    }

    /// Returns true if the core may have armed a timer since the last call.
    pub fn take_armed(&self) -> bool {
        self.armed.load(Relaxed) && self.armed.swap(false, Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn trips_with_the_block_that_crosses_the_limit() {
        let slot = Slot::default();
        let mut counter = slot.allot(0, 100, ClockRate::DEFAULT);
        counter += 99;
        assert!(counter < TRIP);
        counter += 7;
        assert!(counter >= TRIP);
        assert_eq!(slot.time_ns(counter, ClockRate::DEFAULT), 106);
    }

    #[test]
    fn an_arming_write_inside_a_block_keeps_the_count() {
        let slot = Slot::default();
        let mut counter = slot.allot(0, 100, ClockRate::DEFAULT);
        counter += 10; // a block of ten
        counter -= 6; // of which six follow the access
        assert_eq!(slot.time_ns(counter, ClockRate::DEFAULT), 4);
        counter = slot.trip(counter);
        counter += 6;
        assert_eq!(slot.time_ns(counter, ClockRate::DEFAULT), 10);
        assert!(counter >= TRIP);
    }

    proptest! {
        #[test]
        fn no_instruction_is_lost_or_counted_twice(
            mhz in 1..4000_u32,
            blocks in prop::collection::vec((1..64_u64, 0..2000_u64, any::<bool>()), 1..200),
        ) {
            let rate = ClockRate::from_mhz(mhz).unwrap();
            let slot = Slot::default();
            let (mut counter, mut total, mut time) = (slot.allot(0, 0, rate), 0, 0);
            for (block, ahead_ns, sleep) in blocks {
                counter += block;
                total += block;
                prop_assert_eq!(slot.instructions(counter), total);
                let now = slot.time_ns(counter, rate);
                prop_assert!(now >= time);
                time = now;
                if sleep {
                    time += 17;
                    slot.anchor(counter, time);
                }
                let limit = time + ahead_ns;
                counter = slot.allot(counter, limit, rate);
                prop_assert_eq!(slot.instructions(counter), total);
                let budget = TRIP - counter;
                prop_assert!(slot.time_ns(counter + budget, rate) >= limit);
            }
        }
    }
}
