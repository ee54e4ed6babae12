//! How far EL2 went without looking whether an interrupt is pending, beside how far it goes at most
//! (`cassata bound`).

use crate::quantity::real;
use crate::results::{Check, Goal, Outcome};
use bound::report::Report;
use std::fmt::{self, Display};
use vtime::stats::{Statistics, VcpuStatistics};

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
    let entries = pcpu.range.as_ref()?.by_entry.iter();
    let entries = entries.filter(|(entry, _)| exception.enters_at(entry));
    entries.map(|(_, tally)| tally.stretch).max()
}

/// Checks that what was counted in these runs keeps to what was computed for their systems. An
/// exception that never came is not judged.
pub fn judge<'a>(
    outcome: &mut Outcome,
    runs: impl IntoIterator<Item = &'a Statistics>,
    computed: &Report,
) {
    let pcpus: Vec<_> = runs.into_iter().flat_map(|counts| &counts.vcpus).collect();
    for exception in Exception::ALL {
        let seen = pcpus.iter().filter_map(|pcpu| longest(exception, pcpu)).max();
        let name = exception.to_string();
        let figure = computed.figures.iter().find(|figure| figure.name == name);
        let most = figure.and_then(|figure| figure.deaf).filter(|deaf| deaf.bounded);
        if let Some((seen, most)) = seen.zip(most) {
            let name = format!("{name}, longest without a look: its computed bound");
            let goal = Goal::Between(1.0, real(most.instructions));
            outcome.check(Check::new(&name, real(seen), "instructions", goal));
        }
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
            let mut outcome = Outcome::new("x");
            judge(&mut outcome, [&counts], &computed);
            assert_eq!((outcome.checks().len(), outcome.holds()), (1, holds), "{stretch}");
        }
    }
}
