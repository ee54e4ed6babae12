//! What a system has, as the checked build of EL2 says when it starts.

use crate::each;
use core::sync::atomic::{AtomicUsize, Ordering};

/// As long as nothing is said, there may be any number.
static COUNTS: [AtomicUsize; each::COUNT] = [const { AtomicUsize::new(usize::MAX) }; each::COUNT];

/// Says how many there are of something.
pub fn there_are(of: u32, count: usize) {
    COUNTS[of as usize].store(count, Ordering::Relaxed);
}

/// Stops where something happens for which there is no reason in this system.
pub fn check(of: u32) {
    assert!(
        COUNTS[of as usize].load(Ordering::Relaxed) > 0,
        "what happens needs something that no system without it has ({of})"
    );
}
