//! How long it takes until a mutex that one core gives back is had on another.

use super::case::{Case, Seen, Trial};
use super::migration::QUANTUM_NS;
use crate::dataset::{Dataset, Unit};
use crate::observe::Distribution;
use crate::quantity::real;
use crate::results::{Check, Goal, Outcome};

/// Grants whose times are taken.
pub const TIMED: u64 = 500;
/// Longest grant, from the call that gives the mutex back until the waiter has its interrupt,
/// microseconds.
pub const MOST_US: f64 = 2.5;

/// Grants to a vCPU that sleeps on another core, where another VM runs. Times are ticks of
/// [`crate::machine::VirtualTime::COUNTER_HZ`].
#[derive(Clone, Debug, Default)]
pub struct Grant {
    /// Until the waiter takes its interrupt.
    interrupted: Distribution,
    /// Until its task goes on.
    held: Distribution,
}

/// Returns the boot that times so many grants.
pub fn case(events: u64) -> Case {
    Case::Probe(Trial {
        system: "grant".into(),
        label: "-timed".into(),
        edits: Vec::new(),
        quantum_ns: Some(QUANTUM_NS),
        events,
    })
}

impl Grant {
    /// Returns what the boots tell of it.
    pub fn of(seen: &[Seen], events: u64) -> Self {
        let seen = super::of(seen, &case(events));
        seen.map_or_else(Self::default, |seen| Self {
            interrupted: seen.response.clone(),
            held: seen.dispatch.clone(),
        })
    }

    /// Returns the times.
    pub fn data(&self) -> Dataset {
        let until = [
            ("until the waiter takes its interrupt", &self.interrupted),
            ("until its task goes on", &self.held),
        ];
        Dataset::of("grant", "Grant of a mutex to a vCPU that sleeps on another core", until)
            .name("until", |(until, _)| *until)
            .head("")
            .summary(Unit::Microseconds, |_| super::US, |(_, times)| Some(*times))
            .done()
    }

    /// Holds them to their goal.
    pub fn judge(&self, outcome: &mut Outcome, events: u64) {
        let name = "grant of a mutex to a vCPU that sleeps on another core, longest";
        let longest = self.interrupted.max().map(|ticks| f64::from(ticks) * super::US);
        outcome.check(Check::new(name, longest, "us", Goal::AtMost(MOST_US)));
        let (name, all) = ("timed grants counted", real(events));
        outcome.check(Check::new(name, real(self.held.count()), "times", Goal::Between(all, all)));
    }

    /// Says it in a sentence, for the page.
    pub fn caption() -> String {
        format!(
            "A vCPU gives a mutex back for which one waits that sleeps on another core, while \
             another VM has that core ({TIMED} times): a call, a doorbell, a switch and an \
             interrupt. The probe's own vector and handler are in it."
        )
    }

    #[cfg(test)]
    pub fn example(ticks: u32) -> Self {
        let mut times = Distribution::default();
        times.record_many(ticks, TIMED);
        Self { interrupted: times.clone(), held: times }
    }
}
