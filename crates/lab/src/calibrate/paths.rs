//! The paths that are measured.

use crate::looks::Exception;
use Exception::{Irq, Synchronous};

/// What the guest takes for itself in a path of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// Two reads of the counter around an instruction: path `own`.
    Entry,
    /// A round in which the counter is read: path `own-gap`.
    Gap,
}

impl Own {
    /// The name of its path, and how many of it are in each repetition.
    pub const fn path(self) -> (&'static str, u64) {
        match self {
            Self::Entry => ("own", 1),
            Self::Gap => ("own-gap", 64),
        }
    }
}

/// A path.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// One of [`system::calibration::PATHS`].
    pub name: &'static str,
    /// What the probe calls the act that provokes it.
    pub act: &'static str,
    /// The exception by which EL2 is entered.
    pub exception: Exception,
    /// The core where it is.
    pub pcpu: usize,
    /// Visits by that exception on that core that the act makes each time.
    pub each_time: u64,
    /// All of these are timed; else the longest of them is.
    pub is_all: bool,
    /// The visits are of two lengths, in parts that are others where times are measured than where instructions are
    /// counted: only the longest are the same.
    pub has_two_lengths: bool,
    /// What the guest takes for itself.
    pub own: Own,
}

const fn path(name: &'static str, act: &'static str, exception: Exception) -> Path {
    Path {
        name,
        act,
        exception,
        pcpu: 0,
        each_time: 1,
        is_all: false,
        has_two_lengths: false,
        own: Own::Entry,
    }
}

impl Path {
    const fn gap(self) -> Self {
        Self { own: Own::Gap, ..self }
    }

    const fn elsewhere(self) -> Self {
        Self { pcpu: 1, ..self }
    }

    const fn longest_of(self, each_time: u64) -> Self {
        Self { each_time, ..self }
    }

    const fn of_two_lengths(self) -> Self {
        Self { has_two_lengths: true, ..self }
    }

    const fn all_of(self, each_time: u64) -> Self {
        Self { each_time, is_all: true, ..self }
    }
}

/// All paths, in the order in which they are measured. A section and a mutex are used once more each time, so
/// that the visits that are timed are no first ones of a period.
pub const PATHS: [Path; 16] = [
    path("departure", "departure", Irq).gap().longest_of(2),
    path("null", "null", Synchronous),
    path("gic-read", "gic-read", Synchronous),
    path("gic-write", "gic-write", Synchronous).all_of(2),
    path("sgi-self", "sgi-self", Synchronous),
    path("sgi-core", "sgi-core", Synchronous).longest_of(2),
    path("sgi-other", "doorbell", Synchronous),
    path("doorbell", "doorbell", Irq).elsewhere().gap(),
    path("timer", "timer", Irq).gap(),
    path("wake", "switch", Irq).gap(),
    path("sleep", "switch", Synchronous).gap(),
    path("gcs", "gcs", Synchronous).all_of(4),
    path("mutex", "mutex", Synchronous).all_of(4),
    // Where the scheduler decides anew.
    path("replenish", "replenish", Irq).gap().of_two_lengths(),
    // Where another core's task waits.
    path("pass-on", "grant", Synchronous).longest_of(4).of_two_lengths(),
    path("grant", "grant", Irq).elsewhere().gap(),
];

/// Returns the acts.
pub fn acts() -> Vec<&'static str> {
    let mut acts: Vec<_> = PATHS.iter().map(|path| path.act).collect();
    acts.dedup();
    acts
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn bounds_know_each_path() {
        let here: BTreeSet<_> = PATHS.iter().map(|path| path.name).collect();
        let there: BTreeSet<_> = system::calibration::PATHS.iter().map(|(name, _)| *name).collect();
        assert_eq!(here, there);
        assert_eq!(acts().len(), 13);
    }
}
