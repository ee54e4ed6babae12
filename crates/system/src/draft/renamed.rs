//! Keys that had another name in earlier versions: a description that still uses one
//! is refused, and told what to write instead.

use super::server::EXAMPLE;
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

/// Keys whose values stand elsewhere now: the old key, a key by which the table that had it
/// is known, and where they are.
const MOVED: &[(&str, &str, &str)] = &[
    ("budget", "server", "the vCPU's `server` has the `budget` now"),
    ("budgets", "vm", "each vCPU has its own `server` now"),
    ("period", "server", "the vCPU's `server` has the `period` now"),
];

/// Returns what to write instead of `word = value` in a table that knows the keys
/// `known`; `None` if none of them was ever called so.
pub(super) fn hint(word: &str, value: &DeValue<'_>, known: &[&str]) -> Option<String> {
    let was = |(old, key): (&str, &str)| old == word && known.contains(&key);
    if let Some((.., place)) = MOVED.iter().find(|(old, key, _)| was((*old, *key))) {
        return Some(format!("{place}: write `server = {EXAMPLE}` for a vCPU"));
    }
    let (_, new) = RENAMED.iter().find(|(old, new)| was((*old, *new)))?;
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
