//! Quantities as people read them.

use std::time::Duration;

/// Three significant digits and a unit: `9.21 µs`.
pub fn duration(time: Duration) -> String {
    let ns = time.as_nanos();
    if ns < 1_000 {
        return format!("{ns} ns");
    }
    let seconds = time.as_secs_f64();
    let (value, unit) = match ns {
        0..1_000_000 => (seconds * 1e6, "µs"),
        1_000_000..1_000_000_000 => (seconds * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    let digits = match value {
        ..10.0 => 2,
        10.0..100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

/// Nanoseconds; the most that there are if there are more.
#[must_use]
pub fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A positive number of seconds, fractions allowed, as an option's value.
///
/// # Errors
/// When it is none; says what it must be.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| "must be more than 0 seconds, and less than for ever".to_owned())
}

/// Thousands set apart: `12,001`.
pub fn count(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

/// A share from 0.0 to 1.0 as `37.5 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A number without needless digits: `12`, `0.25`.
pub fn number(value: f64) -> String {
    if value.fract() == 0.0 {
        return format!("{value:.0}");
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns a count as a number to calculate with, exact up to 2^53.
pub fn real(count: u64) -> f64 {
    count as f64
}

/// Bytes in the largest binary unit that divides them: `512 MiB`.
pub fn bytes(size: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let whole = units.into_iter().find(|(shift, _)| size > 0 && size.is_multiple_of(1 << shift));
    whole.map_or_else(|| format!("{size} B"), |(shift, unit)| format!("{} {unit}", size >> shift))
}

/// The size of a file, rounded: `33.5 MiB`.
pub fn file_size(size: u64) -> String {
    format!("{:.1} MiB", size as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits() {
        let text = |ns| duration(Duration::from_nanos(ns));
        assert_eq!(text(0), "0 ns");
        assert_eq!(text(999), "999 ns");
        assert_eq!(text(9_212), "9.21 µs");
        assert_eq!(text(92_120), "92.1 µs");
        assert_eq!(text(921_200), "921 µs");
        assert_eq!(text(1_500_000_000), "1.50 s");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!([0, 999, 1_000, 12_345_678].map(count), ["0", "999", "1,000", "12,345,678"]);
        assert_eq!(file_size(35_090_432), "33.5 MiB");
        assert_eq!(percent(0.375), "37.5 %");
        assert_eq!([3.0, 0.25, 1.0 / 3.0].map(number), ["3", "0.25", "0.333"]);
        assert_eq!(
            [512 << 20, 1 << 30, 1536, 100].map(bytes),
            ["512 MiB", "1 GiB", "1536 B", "100 B"]
        );
    }
}
