//! The figures that were recorded, which may fall and may not rise.

use crate::Error;
use crate::report::{Instructions, Report};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// What was missing, without the lines, which move.
    pub missing: BTreeSet<String>,
    /// Call sites of panics.
    pub panics: u64,
    /// Figures by name.
    pub figures: BTreeMap<String, Recorded>,
}

/// A figure that was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// Instructions of the longest stretch without a look.
    pub deaf: Option<Length>,
    /// Instructions of the whole stay.
    pub stay: Option<Length>,
}

/// A length: a number of instructions, or that there is no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Length {
    /// So many at most.
    Instructions(u64),
    /// No bound: something is missing.
    Unbounded(Unbounded),
}

/// The word for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unbounded {
    /// There is none.
    Unbounded,
}

impl From<Instructions> for Length {
    fn from(found: Instructions) -> Self {
        match found.bounded {
            true => Self::Instructions(found.instructions),
            false => Self::Unbounded(Unbounded::Unbounded),
        }
    }
}

impl Record {
    /// Returns what would be recorded of a report.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        let figure = |figure: &crate::report::Figure| {
            let [deaf, stay] = [figure.deaf, figure.stay].map(|found| found.map(Length::from));
            (figure.name.clone(), Recorded { deaf, stay })
        };
        let missing = report.missing.iter().map(|gap| gap.what.clone()).collect();
        let figures = report.figures.iter().map(figure).collect();
        Self { missing, panics: report.panics.sites, figures }
    }

    /// Reads what was recorded.
    ///
    /// # Errors
    /// When it is not well formed.
    pub fn parse(text: &str) -> Result<Self, Error> {
        toml::from_str(text).map_err(|error| Error::Facts(error.to_string()))
    }

    /// Returns the record as text.
    ///
    /// # Errors
    /// When a figure is too large for it.
    pub fn text(&self) -> Result<String, Error> {
        let text = toml::to_string(self).map_err(|error| Error::Facts(error.to_string()))?;
        Ok(format!(
            "# Written by `cassata bound --write`; `cassata bound` fails when a figure rises.\n\n{text}"
        ))
    }

    /// Returns what is worse now than when this was recorded, a line for each.
    #[must_use]
    pub fn objections(&self, now: &Self) -> Vec<String> {
        let gaps = now.missing.difference(&self.missing).map(|gap| format!("new: {gap}"));
        let rises = now.figures.iter().flat_map(|(name, now)| {
            let Some(before) = self.figures.get(name) else {
                return vec![format!("{name}: not recorded; `cassata bound --write` does that")];
            };
            let pairs =
                [("without a look", before.deaf, now.deaf), ("stay", before.stay, now.stay)];
            let risen = pairs.into_iter().filter(|(_, before, now)| now > before);
            let line = |(what, before, now)| {
                format!("{name}, {what}: {}, recorded {}", words(now), words(before))
            };
            risen.map(line).collect()
        });
        let lost = self.figures.keys().filter(|name| !now.figures.contains_key(*name));
        let lost = lost.map(|name| format!("{name}: recorded, and there is no such figure"));
        let panics = (now.panics > self.panics)
            .then(|| format!("call sites of panics: {}, recorded {}", now.panics, self.panics));
        gaps.chain(rises).chain(lost).chain(panics).collect()
    }
}

fn words(length: Option<Length>) -> String {
    match length {
        None => "none".into(),
        Some(Length::Instructions(count)) => count.to_string(),
        Some(Length::Unbounded(_)) => "no bound".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(deaf: Option<Length>, missing: &[&str]) -> Record {
        let figure = ("interrupt".to_owned(), Recorded { deaf, stay: None });
        let missing = missing.iter().map(|&gap| gap.to_owned()).collect();
        Record { missing, panics: 0, figures: [figure].into() }
    }

    #[test]
    fn what_rises_is_objected_to_and_what_falls_is_not() {
        let [low, high] = [100, 101].map(|count| Some(Length::Instructions(count)));
        let open = Some(Length::Unbounded(Unbounded::Unbounded));
        for (before, now, objections) in [
            (low, low, 0),
            (low, high, 1),
            (high, low, 0),
            (high, open, 1),
            (open, high, 0),
            (None, low, 1),
            (low, None, 0),
        ] {
            let found = record(before, &[]).objections(&record(now, &[]));
            assert_eq!(found.len(), objections, "{before:?} {now:?}: {found:?}");
        }
    }

    #[test]
    fn gaps_may_close_and_not_open() {
        let (one, two) = (record(None, &["a"]), record(None, &["a", "b"]));
        assert_eq!(one.objections(&two), ["new: b"]);
        assert!(two.objections(&one).is_empty());
    }

    #[test]
    fn figures_that_come_and_go_are_recorded_anew() {
        let none = Record::default();
        let one = record(None, &[]);
        assert!(none.objections(&one)[0].contains("--write"));
        assert!(one.objections(&none)[0].contains("no such figure"));
    }

    #[test]
    fn panics_may_go_and_not_come() {
        let [few, more] = [1, 2].map(|panics| Record { panics, ..record(None, &[]) });
        assert_eq!(few.objections(&more), ["call sites of panics: 2, recorded 1"]);
        assert!(more.objections(&few).is_empty());
    }

    #[test]
    fn what_is_written_is_read() {
        let open = Some(Length::Unbounded(Unbounded::Unbounded));
        for deaf in [None, open, Some(Length::Instructions(3_000))] {
            let record = record(deaf, &["a gap"]);
            assert_eq!(Record::parse(&record.text().unwrap()).unwrap(), record);
        }
        assert!(Record::parse("figures = 1").is_err());
    }
}
