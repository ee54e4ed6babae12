//! Time as the scheduler sees it: ticks of one monotonic clock.
//!
//! At EL2 a tick is one of the generic counter, in the simulator a nanosecond;
//! the scheduler only compares, adds and subtracts.

/// A point in time, in ticks since the clock began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(pub u64);

/// A length of time, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration(pub u64);

impl Duration {
    /// Longer than any other.
    pub const MAX: Self = Self(u64::MAX);
}

impl Instant {
    /// The end of time.
    pub const NEVER: Self = Self(u64::MAX);

    /// Returns the instant `later` ticks after this one; the end of time when that is
    /// beyond it.
    #[must_use]
    pub const fn after(self, later: Duration) -> Self {
        Self(self.0.saturating_add(later.0))
    }

    /// Returns the time that has passed since `earlier`; none when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}
