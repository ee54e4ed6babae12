//! Sizes as people write them.

/// Reads "512M", "64K", "1G", "2MiB" or plain bytes; the units are powers of
/// 1024.
///
/// # Errors
/// What is wrong with it, in words.
pub fn parse(text: &str) -> Result<u64, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim_start() {
        "" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        other => return Err(format!("`{other}` is not a unit of size")),
    };
    if number.is_empty() {
        return Err("a size begins with a number".to_owned());
    }
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| "a size beyond 64 bits".to_owned())
}

/// Writes a size with the largest unit that divides it.
#[must_use]
pub fn show(bytes: u64) -> String {
    let units = [(30, "G"), (20, "M"), (10, "K")];
    let fits = |&&(shift, _): &&(u32, &str)| bytes > 0 && bytes.trailing_zeros() >= shift;
    match units.iter().find(fits) {
        Some((shift, unit)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        for bytes in [0, 1, 1023, 1 << 10, 3 << 20, 1 << 30, 5 << 30, (1 << 30) + 1] {
            assert_eq!(parse(&show(bytes)), Ok(bytes));
        }
        assert_eq!(parse("64 KiB"), Ok(65536));
    }

    #[test]
    fn refuses_what_is_no_size() {
        for text in ["", "M", "12m", "1.5G", "-1", "99999999999G", "1 0"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
