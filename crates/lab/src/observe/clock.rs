//! What the machine's counter shows now.
//!
//! The counter itself is not in memory; timestamps that EL2 and guests took
//! from it are. Each is a lower bound of the counter at the moment it was read.
//! In real time the counter runs as fast as our own clock, so the greatest
//! difference ever seen between the two is the best estimate of what must be
//! added to ours: it can only be too small, and by no more than the age of the
//! freshest timestamp ever seen. In virtual time the instrument tells where the
//! machine is held, and the counter is known.

use std::time::Duration;

/// Estimates the counter.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// Counter minus our clock, or, in virtual time, the greatest timestamp.
    offset: Option<i128>,
}

impl Clock {
    /// Returns the counter when `timestamp` was visible and our clock stood at `ours`, in ticks,
    /// which is always 0 in virtual time.
    pub(super) fn now(&mut self, timestamp: u64, ours: u64) -> u64 {
        let ours = i128::from(ours);
        let bound = i128::from(timestamp) - ours;
        let offset = self.offset.map_or(bound, |known| known.max(bound));
        self.offset = Some(offset);
        u64::try_from(offset + ours).unwrap_or(0)
    }
}

/// `time` in ticks of a counter that runs at `counter_hz`.
pub(super) fn ticks(time: Duration, counter_hz: u64) -> u64 {
    let ticks = time.as_nanos() * u128::from(counter_hz) / 1_000_000_000;
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HZ: u64 = 1_000_000;

    #[test]
    fn fresh_timestamps_move_the_estimate_and_stale_ones_do_not() {
        let mut clock = Clock::default();
        let mut now = |timestamp, ms| clock.now(timestamp, ticks(Duration::from_millis(ms), HZ));
        assert_eq!(now(5_000, 1), 5_000);
        // Two milliseconds later and nothing new: time passes all the same.
        assert_eq!(now(5_000, 3), 7_000);
        // A fresh one shows that the first was old when it was seen.
        assert_eq!(now(9_500, 4), 9_500);
        assert_eq!(now(9_500, 14), 19_500);
    }

    #[test]
    fn virtual_time_passes_by_timestamps_alone() {
        let mut clock = Clock::default();
        assert_eq!(
            [5_000, 5_000, 6_000].map(|timestamp| clock.now(timestamp, 0)),
            [5_000, 5_000, 6_000]
        );
    }
}
