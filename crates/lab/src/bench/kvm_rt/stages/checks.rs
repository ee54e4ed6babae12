//! What is demanded of the marks, and what the paper says of loads.

use super::All;
use super::fold::{RESPONSE, STAGES};
use super::machine::FINE_QUANTUM_NS;
use super::report::{Added, LONGEST, MEAN, interrupts};
use crate::quantity::real;
use crate::results::{Check, Goal};

/// How much longer a response must be at worst under a load so that the load *hurts*.
const HURTS: f64 = 2.0;
/// The part of what a load adds that is most of it.
const MOST: f64 = 0.5;
/// Indices of stages.
const RAISE: usize = 0;
const SCHEDULING: usize = 3;

impl All {
    pub fn checks(&self) -> Vec<Check> {
        let mut all = self.premises();
        for added in self.added().iter().filter(|added| added.with.route.shares_the_core()) {
            all.extend(statements(added));
        }
        all
    }

    /// That every interrupt was taken apart, and that its stages are what FreeRTOS measured.
    fn premises(&self) -> Vec<Check> {
        let off = |elsewhere: bool| {
            let some = self
                .measurements
                .iter()
                .filter(|s| s.case.route.is_raised_elsewhere() == elsewhere);
            some.map(|seen| seen.off_ns).max().map(real)
        };
        let told: f64 = self.measurements.iter().map(|seen| real(seen.activations)).sum();
        let apart: f64 = self.measurements.iter().map(interrupts).sum();
        let some = !self.measurements.is_empty();
        let quantum = Goal::AtMost(real(FINE_QUANTUM_NS));
        let names = [
            "stages' sum off FreeRTOS's own measurement: timers",
            "stages' sum off FreeRTOS's own measurement: devices and other cores",
        ];
        let missing = "interrupts of which marks are missing";
        let mut all = vec![
            Check::new(missing, some.then_some(told - apart), "", Goal::Exactly(0.0)).as_premise(),
            Check::new(names[0], off(false), "ns", Goal::Exactly(0.0)).as_premise(),
        ];
        if self.planned.iter().any(|case| case.route.is_raised_elsewhere()) {
            all.push(Check::new(names[1], off(true), "ns", quantum).as_premise());
        }
        all
    }
}

/// What the paper says of a load on the guest's core (Sections 3.2 and 5.4): it delays the guest at the stage of
/// scheduling, and by regions in which interrupts are off; the longest response suffers, the mean little.
fn statements(added: &Added) -> [Check; 4] {
    let way = added.with.route.words();
    let rows = [&added.with, &added.without];
    let ratio = |figure: super::report::Figure| {
        let [with, without] = rows.map(|row| (figure.of)(&row.response));
        with.zip(without).map(|(with, without)| with / without)
    };
    let stages = added.to_longest();
    let stages = &stages[..RESPONSE];
    let all: f64 = stages.iter().filter(|ns| **ns > 0.0).sum();
    // Of nothing that is added, no stage is a part.
    let part = |stage: usize| Some(if all > 0.0 { stages[stage].max(0.0) / all } else { 0.0 });
    let check = |what: &str, value, goal| {
        Check::new(&format!("{way}: {what}"), value, "", goal).as_statement()
    };
    [
        check("longest response under load, without being 1", ratio(LONGEST), Goal::AtLeast(HURTS)),
        check("mean response under load, without being 1", ratio(MEAN), Goal::AtMost(HURTS)),
        check(
            &format!(
                "part of `{}` (4) in what load adds to the longest response",
                STAGES[SCHEDULING].0
            ),
            part(SCHEDULING),
            Goal::AtLeast(MOST),
        ),
        check(
            &format!("part of `{}` (interrupts off) in it", STAGES[RAISE].0),
            part(RAISE),
            Goal::AtLeast(MOST),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::case::{Case, Load, Route};
    use super::super::fold::{COUNT, Found};
    use super::super::run::{Kind, Seen};
    use super::*;
    use crate::answer::Answer;
    use crate::observe::Distribution;

    fn distribution(values: &[u32]) -> Distribution {
        let mut all = Distribution::default();
        values.iter().for_each(|&value| all.record(value));
        all
    }

    fn seen(load: Load, scheduling_ns: u32, off_ns: u64) -> Seen {
        let longest = |stage| if stage == SCHEDULING { scheduling_ns } else { 100 };
        let stage = |stage| distribution(&[100, longest(stage)]);
        let kind = Kind {
            found: Found::Guest(1),
            switched: true,
            departed: false,
            stages: (0..COUNT).map(stage).collect(),
            response: distribution(&[600, 500 + scheduling_ns]),
            of_longest: (0..COUNT).map(longest).collect(),
        };
        let case = Case { route: Route::Advance, load, activations: 2 };
        Seen { case, real_s: 0.0, virtual_s: 0.0, kinds: vec![kind], off_ns, activations: 2 }
    }

    fn all(measurements: Vec<Seen>) -> All {
        let planned: Vec<_> = measurements.iter().map(|seen| seen.case).collect();
        All { all: planned.len(), planned, measurements, failures: Vec::new() }
    }

    #[test]
    fn the_paper_agrees_where_a_load_delays_by_scheduling() {
        let found = all(vec![seen(Load::Idle, 100, 0), seen(Load::Hackbench, 900, 0)]);
        let verdicts: Vec<_> = found.checks().iter().map(Check::verdict).collect();
        // The longest is 1400 beside 600, the mean 1000, and all that is added is scheduling.
        assert_eq!(verdicts, ["holds", "holds", "agrees", "agrees", "agrees", "differs"]);
        let same = all(vec![seen(Load::Idle, 100, 0), seen(Load::Hackbench, 100, 0)]);
        let verdicts: Vec<_> = same.checks().iter().map(Check::verdict).collect();
        assert_eq!(verdicts, ["holds", "holds", "differs", "agrees", "differs", "differs"]);
    }

    #[test]
    fn the_parts_of_what_is_added_are_of_the_longest_response() {
        let mut with = seen(Load::Hackbench, 900, 0);
        // Another interrupt has the longest `raise`, which is none of the longest response.
        with.kinds[0].stages[RAISE].record(5_000);
        let found = all(vec![seen(Load::Idle, 100, 0), with]);
        let verdicts: Vec<_> = found.checks().iter().map(Check::verdict).collect();
        assert_eq!(verdicts[4..], ["agrees", "differs"]);
        let added = &found.added()[0];
        assert_eq!(added.to_longest()[..4], [0.0, 0.0, 0.0, 800.0]);
        assert_eq!(added.stages(LONGEST)[..4], [4_900.0, 0.0, 0.0, 800.0]);
    }

    #[test]
    fn stages_that_are_off_spoil_the_figures() {
        let found = all(vec![seen(Load::Idle, 100, 1)]);
        assert!(found.checks().iter().any(Check::spoils));
        assert!(all(vec![]).checks().iter().all(Check::spoils));
        let mut answer = Answer::new("kvm-rt", "", "");
        answer.judged(found.checks(), 1, 1);
        found.add_to(&mut answer);
        let text = answer.page();
        assert!(text.contains("scheduling") && text.contains("ahead of its timer"));
    }
}
