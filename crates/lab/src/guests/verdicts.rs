//! How the single tests of a suite ended that others wrote.

use std::collections::BTreeMap;
use std::fmt;

/// How a test ended. The later in this order, the worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It holds.
    Passed,
    /// It was left out.
    Skipped,
    /// It does not hold.
    Failed,
}

/// All tests of a suite, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdicts(BTreeMap<String, Verdict>);

impl Verdict {
    /// Reads what [`fmt::Display`] writes.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        [Self::Passed, Self::Skipped, Self::Failed].into_iter().find(|v| v.to_string() == text)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Passed => "passed",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
        })
    }
}

impl Verdicts {
    /// Takes how test `name` ended. Of several tests with one name the worst counts.
    pub(super) fn hear(&mut self, name: &str, verdict: Verdict) {
        let known = self.0.entry(name.into()).or_insert(verdict);
        *known = verdict.max(*known);
    }

    /// Returns how test `name` ended; none if it did not.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Verdict> {
        self.0.get(name).copied()
    }

    /// Returns all tests, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Verdict)> {
        self.0.iter().map(|(name, &verdict)| (name.as_str(), verdict))
    }

    /// Returns how many tests ended so.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.0.values().filter(|&&one| one == verdict).count()
    }
}

#[cfg(test)]
impl<'a> FromIterator<(&'a str, Verdict)> for Verdicts {
    fn from_iter<T: IntoIterator<Item = (&'a str, Verdict)>>(all: T) -> Self {
        Self(all.into_iter().map(|(name, verdict)| (name.into(), verdict)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Failed, Passed, Skipped};
    use super::*;

    #[test]
    fn of_several_with_one_name_the_worst_counts() {
        let mut verdicts = Verdicts::default();
        for verdict in [Passed, Failed, Skipped] {
            verdicts.hear("a", verdict);
        }
        verdicts.hear("b", Passed);
        assert_eq!(verdicts, [("a", Failed), ("b", Passed)].into_iter().collect());
        assert_eq!((verdicts.count(Passed), verdicts.count(Skipped)), (1, 0));
    }

    #[test]
    fn what_is_written_is_read() {
        for verdict in [Passed, Failed, Skipped] {
            assert_eq!(Verdict::of(&verdict.to_string()), Some(verdict));
        }
        assert_eq!(Verdict::of("pass"), None);
    }
}
