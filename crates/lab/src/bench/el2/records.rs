//! What it costs that EL2 records what it does ([`crate::trace`]).

use super::case::Seen;
use super::events::{self, Build, KINDS, Kind};
use crate::dataset::{Dataset, Unit};
use crate::quantity::real;
use crate::results::{Check, Goal, Outcome};

/// Most instructions that a record may cost.
const MOST: f64 = 12.0;

/// Medians of a kind of visit, in instructions, of builds that differ by the trace alone.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    kind: Kind,
    silent: Option<u32>,
    recording: Option<u32>,
}

impl Recorded {
    /// Returns what was measured with so many events, for each kind whose records are counted.
    pub fn all(seen: &[Seen], events: u64) -> Vec<Self> {
        let one = |&kind: &Kind| {
            let median = |build| kind.typical(&events::visits(&kind, seen, events, build), events);
            Self { kind, silent: median(Build::Parts), recording: median(Build::Tracing) }
        };
        KINDS.iter().filter(|kind| kind.records > 0).map(one).collect()
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

    /// Demands that a record costs no more than it may, in the mean over all kinds of visits.
    pub fn judge(all: &[Self], outcome: &mut Outcome) {
        let name = format!("a record of the trace, mean over {} kinds of visits", all.len());
        outcome.check(Check::new(&name, Self::mean(all), "instructions", Goal::AtMost(MOST)));
    }

    /// Returns what a record costs in visits of this kind, in the mean.
    fn each(&self) -> Option<f64> {
        Some(self.cost()? / real(self.kind.records.into()))
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
            .column("each", instructions, |one| one.each())
            .head("a record")
            .digits(2)
            .done()
    }

    /// What the book quotes.
    pub fn quoted(all: &[Self]) -> String {
        let text = |value: Option<f64>| value.map_or_else(|| "-".into(), |n| format!("{n:.2}"));
        let above = all.iter().filter(|one| one.each().is_some_and(|each| each > MOST));
        format!(
            "What records of a trace add to a visit, medians in instructions, in builds that have all parts \
             else:\n\n{}\n\
             A record costs {} instructions in the mean over all kinds (goal: at most {MOST}); in {} \
             of {} kinds it costs more than that.",
            Self::data(all).table().markdown(),
            text(Self::mean(all)),
            above.count(),
            all.len()
        )
    }

    /// Returns an example, for tests: each record costs so much.
    #[cfg(test)]
    pub fn example(each: u32) -> Vec<Self> {
        let one = |&kind: &Kind| Self {
            kind,
            silent: Some(100),
            recording: Some(100 + each * kind.records),
        };
        KINDS.iter().filter(|kind| kind.records > 0).map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_above_the_goal_are_told_where_the_mean_is_not() {
        let mut all = Recorded::example(11);
        all[0].recording = all[0].silent.map(|silent| silent + 13 * all[0].kind.records);
        let mut outcome = Outcome::new("x");
        Recorded::judge(&all, &mut outcome);
        assert_eq!(outcome.exit_code(false), 0);
        assert_eq!(outcome.checks()[0].name, "a record of the trace, mean over 13 kinds of visits");
        let quoted = Recorded::quoted(&all);
        assert!(quoted.contains("| 100 | 126 | 2 | 13.00 |"), "{quoted}");
        assert!(
            quoted.contains("in the mean over all kinds") && quoted.contains("in 1 of 13 kinds")
        );
    }

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
