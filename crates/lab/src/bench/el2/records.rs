//! What it costs that EL2 records what it does ([`crate::trace`]).

use super::case::Seen;
use super::events::{self, KINDS, Kind, Traced};
use crate::dataset::{Dataset, Unit};
use crate::quantity::real;
use crate::results::{Check, Goal, Outcome};

/// Most instructions that a record may cost.
pub const MOST: f64 = 12.0;

/// Medians of a kind of visit, in instructions.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    kind: Kind,
    silent: Option<u32>,
    recording: Option<u32>,
}

impl Recorded {
    /// Returns what was measured with so many events, for each kind.
    pub fn all(seen: &[Seen], events: u64) -> Vec<Self> {
        let one = |&kind: &Kind| {
            let median = |traced| kind.median(&events::visits(&kind, seen, events, traced));
            Self { kind, silent: median(Traced::No), recording: median(Traced::Yes) }
        };
        KINDS.iter().map(one).collect()
    }

    /// Returns what the records of a visit cost in all.
    fn cost(&self) -> Option<f64> {
        let [silent, recording] = [self.silent?, self.recording?].map(|n| real(n.into()));
        Some(recording - silent)
    }

    /// Returns what all records of one visit of each kind cost, in the mean; none if something is
    /// missing.
    pub fn mean(all: &[Self]) -> Option<f64> {
        let costs: Option<f64> = all.iter().map(Self::cost).sum();
        let records: u32 = all.iter().map(|one| one.kind.records).sum();
        Some(costs? / real(records.into()))
    }

    /// Demands that a record costs no more than it may.
    pub fn judge(all: &[Self], outcome: &mut Outcome) {
        let name = "a record of the trace, mean";
        outcome.check(Check::new(name, Self::mean(all), "instructions", Goal::AtMost(MOST)));
    }

    /// Returns all kinds as a table.
    pub fn data(all: &[Self]) -> Dataset {
        let instructions = Unit::Instructions;
        Dataset::of("records", "Instructions at EL2, without and with a trace", all)
            .name("kind", |one| one.kind.name)
            .head("")
            .column("silent", instructions, |one| one.silent)
            .head("without")
            .column("recording", instructions, |one| one.recording)
            .head("with")
            .name("records", |one| one.kind.records)
            .column("each", instructions, |one| {
                one.cost().map(|cost| cost / real(one.kind.records.into()))
            })
            .head("a record")
            .done()
    }

    /// Returns an example, for tests: each record costs so much.
    #[cfg(test)]
    pub fn example(each: u32) -> Vec<Self> {
        let one = |&kind: &Kind| Self {
            kind,
            silent: Some(100),
            recording: Some(100 + each * kind.records),
        };
        KINDS.iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_that_cost_too_much_are_noticed() {
        for (each, failing) in [(12, false), (13, true)] {
            let mut outcome = Outcome::new("x");
            Recorded::judge(&Recorded::example(each), &mut outcome);
            assert_eq!(outcome.exit_code(false), u8::from(failing), "{each}");
        }
        assert_eq!(Recorded::mean(&Recorded::all(&[], 1)), None);
    }
}
