//! How far EL2 went without looking whether an interrupt is pending, beside how far it goes at most
//! (`cassata bound`).

use crate::quantity::real;
use crate::results::{Check, Goal};
use bound::report::Report;
use std::fmt::{self, Display};
use vtime::stats::{Statistics, VcpuStatistics};
use vtime::visits::Tally;

/// Exceptions from a guest, by their offset in the vector table (Arm ARM
/// D1.3.1, "lower Exception level, AArch64").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exception {
    /// Calls, traps, aborts.
    Synchronous = 0x400,
    /// Interrupts.
    Irq = 0x480,
}

/// The vector table is aligned to its size.
const VECTORS_SIZE: u64 = 0x800;

impl Exception {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Synchronous, Self::Irq];

    /// Returns true if `entry`, hexadecimal, is where the exception comes in.
    #[must_use]
    pub fn enters_at(self, entry: &str) -> bool {
        let address = entry.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
        address.is_some_and(|address| address % VECTORS_SIZE == self as u64)
    }

    /// Returns what was counted of visits by it on a core.
    pub fn tallies(self, pcpu: &VcpuStatistics) -> impl Iterator<Item = &Tally> {
        let entries = pcpu.range.iter().flat_map(|range| &range.by_entry);
        entries.filter(move |(entry, _)| self.enters_at(entry)).map(|(_, tally)| tally)
    }
}

/// As `cassata bound` names it.
impl Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Synchronous => "synchronous",
            Self::Irq => "interrupt",
        })
    }
}

/// Returns the longest stretch without a look that a core was seen to execute in visits by this
/// exception, instructions; none if there was no visit.
#[must_use]
pub fn longest(exception: Exception, pcpu: &VcpuStatistics) -> Option<u64> {
    exception.tallies(pcpu).map(|tally| tally.stretch).max()
}

/// How far EL2 went without a look in visits by an exception, and how far it goes at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The exception.
    pub exception: Exception,
    /// The longest that was seen, instructions.
    pub seen: u64,
    /// The longest that is possible, instructions.
    pub most: u64,
}

impl Stretch {
    /// Returns those of what was counted in runs of one system. Not those of an exception that never
    /// came, and not those that have no bound, as in the checked build.
    pub fn all<'a>(runs: impl IntoIterator<Item = &'a Statistics>, computed: &Report) -> Vec<Self> {
        let pcpus: Vec<_> = runs.into_iter().flat_map(|counts| &counts.vcpus).collect();
        let of = |exception: Exception| {
            let seen = pcpus.iter().filter_map(|pcpu| longest(exception, pcpu)).max()?;
            let name = exception.to_string();
            let figure = computed.figures.iter().find(|figure| figure.name == name)?;
            let most = figure.deaf.filter(|deaf| deaf.bounded)?.instructions;
            Some(Self { exception, seen, most })
        };
        Exception::ALL.into_iter().filter_map(of).collect()
    }

    /// Returns the check that it keeps to its bound.
    pub fn check(&self) -> Check {
        let name = format!("{}, longest without a look: its computed bound", self.exception);
        Check::new(&name, real(self.seen), "instructions", Goal::Between(1.0, real(self.most)))
    }

    /// Returns what is wrong with it, if it does not keep to its bound.
    #[must_use]
    pub fn objection(&self) -> Option<String> {
        let Self { exception, seen, most } = self;
        (seen > most).then(|| {
            format!(
                "after the exception `{exception}` EL2 went {seen} instructions without a look, and \
                 {most} are the most that is possible"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bound::report::{Figure, Instructions};
    use serde_json::json;

    #[test]
    fn vectors_are_told_by_their_offset() {
        for (entry, synchronous, irq) in [
            ("0x40200c00", true, false),
            ("0x40210480", false, true),
            ("0x40200c04", false, false),
            ("40200c00", false, false),
        ] {
            assert_eq!(Exception::Synchronous.enters_at(entry), synchronous, "{entry}");
            assert_eq!(Exception::Irq.enters_at(entry), irq, "{entry}");
        }
    }

    /// The boot, which enters elsewhere, has no bound.
    #[test]
    fn a_stretch_that_is_longer_than_computed_fails() {
        let tally = |stretch: u64| {
            json!({ "visits": 1, "instructions": 9_000, "longest": 9_000, "stretch": stretch,
                "histogram": [[9_000, 1]] })
        };
        let range = |stretch| {
            json!({ "instructions": 0, "visits": 2, "by_entry": {
                "0x4020085c": tally(8_000), "0x40200c80": tally(stretch),
            } })
        };
        let deaf = Some(Instructions { instructions: 700, bounded: true });
        let figure = Figure {
            name: "interrupt".into(),
            stay: None,
            before_look: None,
            between_looks: None,
            after_look: None,
            deaf,
            path: Vec::new(),
        };
        let computed = Report { figures: vec![figure], ..Report::default() };
        for (stretch, holds) in [(0, false), (700, true), (701, false)] {
            let counts = crate::testing::statistics([(4_000, range(stretch))]);
            let found = Stretch::all([&counts], &computed);
            assert_eq!(found, [Stretch { exception: Exception::Irq, seen: stretch, most: 700 }]);
            assert_eq!(found[0].check().holds(), holds, "{stretch}");
            assert_eq!(found[0].objection().is_some(), stretch > 700);
        }
    }
}
