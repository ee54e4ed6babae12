//! Parsers of option values.

use std::time::Duration;
use vtime::rate::ClockRate;

/// A positive number of seconds, fractions allowed.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| "must be more than 0 seconds, and less than for ever".to_owned())
}

/// A clock rate in MHz, within what the instrument can do.
pub(super) fn clock_rate(text: &str) -> Result<ClockRate, String> {
    let rate = text.parse().ok().and_then(ClockRate::from_mhz);
    rate.ok_or_else(|| format!("must be a whole number from 1 to {}", ClockRate::MAX_MHZ))
}
