//! Keys that had another name in earlier versions: a description that still uses one
//! is refused, and told what to write instead.

use crate::time;
use toml::de::DeValue;

/// Old names and new ones.
const RENAMED: &[(&str, &str)] = &[
    ("consolidation_window_us", "consolidation_window"),
    ("delay_limit_us", "delay_limit"),
    ("migration", "migration_policy"),
    ("quantum_us", "quantum"),
    ("timer_lead_us", "timer_advance"),
];

/// Returns what to write instead of `word = value` in a table that knows the keys
/// `known`; `None` if none of them was ever called so.
pub(super) fn hint(word: &str, value: &DeValue<'_>, known: &[&str]) -> Option<String> {
    let (_, new) = RENAMED.iter().find(|(old, new)| *old == word && known.contains(new))?;
    Some(match rewritten(word, value) {
        Some(value) => format!("it is called `{new}` now: write `{new} = \"{value}\"`"),
        None => format!("it is called `{new}` now"),
    })
}

/// Returns the value as a string for the new key. Keys that ended in `_us` had numbers
/// of microseconds; times are strings with a unit now.
fn rewritten(word: &str, value: &DeValue<'_>) -> Option<String> {
    if !word.ends_with("_us") {
        return value.as_str().map(str::to_owned);
    }
    let number = value.as_integer()?;
    let us = u64::from_str_radix(number.as_str(), number.radix()).ok()?;
    us.checked_mul(1000).map(time::text)
}
