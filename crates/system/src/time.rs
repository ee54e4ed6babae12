//! Lengths of time as people write them.

use std::ops::RangeInclusive;

/// Reads "3ms", "1.1 ms", "250us", "2s" or "40ns"; returns nanoseconds.
///
/// # Errors
/// What is wrong with it, in words.
pub fn parse(text: &str) -> Result<u64, String> {
    let digits = |c: char| c.is_ascii_digit() || c == '.';
    let (number, unit) = text.split_at(text.len() - text.trim_start_matches(digits).len());
    let places = match unit.trim_start() {
        "ns" => 0,
        "us" | "µs" => 3,
        "ms" => 6,
        "s" => 9,
        "" => return Err("a time has a unit: ns, us, ms or s".to_owned()),
        other => return Err(format!("`{other}` is not a unit of time")),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || part.contains('.') {
        return Err("a time begins with a number".to_owned());
    }
    if part.len() > places {
        return Err("a time finer than a nanosecond".to_owned());
    }
    let digits = format!("{whole}{part:0<places$}");
    digits.parse().map_err(|_| "a time beyond 2^64 nanoseconds".to_owned())
}

/// Writes a time in the largest unit that has a whole number of it, as [`parse`]
/// reads it.
#[must_use]
pub fn text(ns: u64) -> String {
    match ns {
        0 => "0us".to_owned(),
        _ if ns.is_multiple_of(1_000_000_000) => format!("{}s", ns / 1_000_000_000),
        _ if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
        _ if ns.is_multiple_of(1_000) => format!("{}us", ns / 1_000),
        _ => format!("{ns}ns"),
    }
}

/// Writes which times are allowed, for a hint.
pub(crate) fn range(allowed: &RangeInclusive<u64>) -> String {
    format!("from \"{}\" to \"{}\"", text(*allowed.start()), text(*allowed.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_unit_and_fractions() {
        let times =
            [("3ms", 3_000_000), ("1.1 ms", 1_100_000), ("40ns", 40), ("2s", 2_000_000_000)];
        for (text, ns) in times {
            assert_eq!(parse(text), Ok(ns), "{text}");
        }
        assert_eq!(parse("0.25us"), Ok(250));
    }

    #[test]
    fn writes_what_it_reads() {
        for time in ["0us", "40ns", "1500ns", "250us", "3ms", "1100us", "2s"] {
            assert_eq!(text(parse(time).unwrap()), time);
        }
    }

    #[test]
    fn refuses_what_is_no_time() {
        for text in ["", "ms", "3", "3 m", "1.5ns", "1.2.3ms", "-1ms", ".5ms", "99999999999s"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
