//! What is demanded of the marks, and what the paper says of loads.

use super::super::LITTLE;
use super::All;
use super::case::{Case, Load, Route};
use super::fold::{RESPONSE, STAGES};
use super::machine::FINE_QUANTUM_NS;
use super::report::{Added, Figure, LONGEST, MEAN, interrupts};
use crate::quantity::real;
use crate::results::{Check, Goal};

/// How much longer a response must be at worst under a load so that the load *hurts*.
const HURTS: f64 = 2.0;
/// The part of what a load adds that is most of it.
const MOST: f64 = 0.5;
/// Tuned, the longest response is improved, to half or less here, and the mean hardly another.
const IMPROVED: f64 = 0.5;
/// Indices of stages.
const RAISE: usize = 0;
const SCHEDULING: usize = 3;

impl All {
    pub fn checks(&self) -> Vec<Check> {
        let mut all = self.premises();
        for added in self.added().iter().filter(|added| added.with.route.shares_the_core()) {
            all.extend(statements(added));
        }
        all.extend(self.tuned());
        all
    }

    /// What the paper says of prioritisation, beside none (Section 5.4): under load it improves the longest response,
    /// and has little effect on the mean.
    fn tuned(&self) -> Vec<Check> {
        let load = Load::Hackbench;
        let is_it = |case: &Case| (case.route, case.load) == (Route::Equal, load);
        if !self.planned.iter().any(is_it) {
            return Vec::new();
        }
        let rows = self.rows();
        let ratio = |figure: Figure| {
            let of = |route| {
                let row = rows.iter().find(|row| (row.route, row.load) == (route, load))?;
                (figure.of)(&row.response)
            };
            Some(of(Route::Above)? / of(Route::Equal)?)
        };
        let name = |what: &str| {
            let [above, equal] = [Route::Above, Route::Equal].map(Route::words);
            format!("{above}, {}: {what} response, {equal} being 1", load.words())
        };
        let [low, high] = LITTLE;
        let (longest, mean) = (Goal::AtMost(IMPROVED), Goal::Between(low, high));
        vec![
            Check::new(&name("longest"), ratio(LONGEST), "", longest).as_statement(),
            Check::new(&name("mean"), ratio(MEAN), "", mean).as_statement(),
        ]
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
    let ratio = |figure: Figure| {
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
        seen_by(Route::Advance, load, scheduling_ns, off_ns)
    }

    fn seen_by(route: Route, load: Load, scheduling_ns: u32, off_ns: u64) -> Seen {
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
        let case = Case { route, load, activations: 2 };
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
    fn the_paper_is_judged_by_a_guest_that_is_not_tuned_too() {
        let (idle, load) = (Load::Idle, Load::Hackbench);
        let found = |equal_ns| {
            let all = all(vec![
                seen_by(Route::Above, idle, 100, 0),
                seen_by(Route::Above, load, 200, 0),
                seen_by(Route::Equal, idle, 100, 0),
                seen_by(Route::Equal, load, equal_ns, 0),
            ]);
            let checks: Vec<_> = all.checks().into_iter().skip(2).collect();
            for (at, way) in [(0, "above Linux: "), (4, "equal to Linux: "), (8, "above Linux, ")] {
                assert!(checks[at].name.starts_with(way), "{}", checks[at].name);
            }
            checks.iter().map(Check::verdict).collect::<Vec<_>>()
        };
        // The longest, the mean, and the parts of scheduling and of what comes before it, of both; then the longest and
        // the mean of one beside the other.
        let above = ["differs", "agrees", "agrees", "differs"];
        let papers = found(1_200);
        assert_eq!(papers[..4], above);
        assert_eq!(papers[4..], ["agrees", "agrees", "agrees", "differs", "agrees", "differs"]);
        let alike = found(200);
        assert_eq!(alike[4..], ["differs", "agrees", "agrees", "differs", "differs", "agrees"]);
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
