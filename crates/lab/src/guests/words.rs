//! Figures among words, `name=value`, and what is kept of what is said.

use std::str::FromStr;

/// Most things of a kind kept: a guest that never stops talking must not fill us.
const KEPT: usize = 1 << 16;

/// Returns the value of `name=value` among words.
pub(super) fn field<'a>(words: &'a str, name: &str) -> Option<&'a str> {
    words.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

/// Returns the number in `name=number` among words.
pub(crate) fn number<T: FromStr>(words: &str, name: &str) -> Option<T> {
    field(words, name)?.parse().ok()
}

/// Adds one to `all`, of which the older half goes when there are too many.
pub(super) fn keep<T>(all: &mut Vec<T>, one: T) {
    if all.len() == KEPT {
        all.drain(..KEPT / 2);
    }
    all.push(one);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_kept() {
        let mut all = Vec::new();
        (0..=KEPT).for_each(|number| keep(&mut all, number));
        assert_eq!(
            (all.len(), all.first(), all.last()),
            (KEPT / 2 + 1, Some(&(KEPT / 2)), Some(&KEPT))
        );
    }
}
