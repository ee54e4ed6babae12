//! Figures among words: `name=value`.

use std::str::FromStr;

/// Returns the value of `name=value` among words.
pub(super) fn field<'a>(words: &'a str, name: &str) -> Option<&'a str> {
    words.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

/// Returns the number in `name=number` among words.
pub(super) fn number<T: FromStr>(words: &str, name: &str) -> Option<T> {
    field(words, name)?.parse().ok()
}
