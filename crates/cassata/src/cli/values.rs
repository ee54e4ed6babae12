//! Parsers of option values.

use vtime::rate::ClockRate;

/// A clock rate in MHz, within what the instrument can do.
pub(super) fn clock_rate(text: &str) -> Result<ClockRate, String> {
    let rate = text.parse().ok().and_then(ClockRate::from_mhz);
    rate.ok_or_else(|| format!("must be a whole number from 1 to {}", ClockRate::MAX_MHZ))
}
