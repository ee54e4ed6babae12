//! Parsers of option values.

use lab::gaps::THRESHOLDS_NS;
use vtime::rate::ClockRate;
use vtime::stall::Stall;

/// A clock rate in MHz, within what the instrument can do.
pub(super) fn clock_rate(text: &str) -> Result<ClockRate, String> {
    let rate = text.parse().ok().and_then(ClockRate::from_mhz);
    rate.ok_or_else(|| format!("must be a whole number from 1 to {}", ClockRate::MAX_MHZ))
}

/// A stall of a core, `1@200ms:500us`.
pub(super) fn stall(text: &str) -> Result<Stall, String> {
    Stall::read(text, system::time::parse)
}

/// What a gap is longer than, nanoseconds.
pub(super) fn gap_threshold(text: &str) -> Result<u64, String> {
    let ns = system::time::parse(text)?;
    let wrong = || "must be from 1us to 10s".to_owned();
    THRESHOLDS_NS.contains(&ns).then_some(ns).ok_or_else(wrong)
}
