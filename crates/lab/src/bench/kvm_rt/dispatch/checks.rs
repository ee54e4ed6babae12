//! What the paper says (Section 5.3), of the kernel that it has.

use super::super::program::Program;
use super::super::{LITTLE, SUB_MS_NS};
use super::All;
use super::case::{Kernel, Place};
use crate::observe::Distribution;
use crate::results::{Check, Goal};

/// Figure 4: most values on the board are below 10 us.
const MOST_PERMILLE: u64 = 500;
const SOON_NS: f64 = 10_000.0;
/// Figure 5: the mean of a guest is dozens of times that,
const DOZENS: f64 = 24.0;
/// and the longest several milliseconds.
const LONG_NS: f64 = 2e6;
/// Figures 6 and 7: tuned, the longest is greatly decreased, to half or less here, and the mean of little change.
const DECREASED: f64 = 0.5;

/// A figure of latencies, ns.
type Figure = fn(&Distribution) -> Option<f64>;

const MEAN: Figure = Distribution::mean;
const LONGEST: Figure = |all| all.max().map(f64::from);

impl All {
    pub fn checks(&self) -> Vec<Check> {
        let kernel = Kernel::Rt;
        let plans = |place, load| {
            let is_it =
                |case: &super::Case| (case.kernel, case.place, case.load) == (kernel, place, load);
            self.planned.iter().any(is_it)
        };
        let of = |place, load, figure: Figure| figure(self.at(kernel, place, load)?);
        let ratio = |figure, (place, load), (base, base_load)| -> Option<f64> {
            Some(of(place, load, figure)? / of(base, base_load, figure)?)
        };
        let board = (Place::Board, Program::Idle);
        let mut all = Vec::new();
        if plans(Place::Board, Program::Idle) {
            let most = |all: &Distribution| all.percentile(MOST_PERMILLE).map(f64::from);
            let most = self.at(kernel, Place::Board, Program::Idle).and_then(most);
            let name = "PREEMPT_RT on the board: the median latency";
            all.push(Check::new(name, most, "ns", Goal::AtMost(SOON_NS)).as_statement());
        }
        for load in [Program::Idle, Program::Compute, Program::Hackbench] {
            for place in [Place::Above, Place::Pinned].into_iter().filter(|&one| plans(one, load)) {
                let how = place.words();
                let beside = load.name();
                let name = format!(
                    "PREEMPT_RT as a guest, {beside}, {how}: longest latency, sub-millisecond"
                );
                let (longest, goal) = (of(place, load, LONGEST), Goal::AtMost(SUB_MS_NS));
                all.push(Check::new(&name, longest, "ns", goal).as_statement());
            }
        }
        for load in [Program::Compute, Program::Hackbench] {
            let equal = (Place::Equal, load);
            let name = |what: &str| format!("PREEMPT_RT as a guest, {}, {what}", load.name());
            if plans(Place::Equal, load) {
                let mean = name("equal: mean latency, the board's being 1");
                let goal = Goal::AtLeast(DOZENS);
                all.push(Check::new(&mean, ratio(MEAN, equal, board), "", goal).as_statement());
                let (longest, goal) = (of(Place::Equal, load, LONGEST), Goal::AtLeast(LONG_NS));
                let name = name("equal: longest latency");
                all.push(Check::new(&name, longest, "ns", goal).as_statement());
            }
            for place in [Place::Above, Place::Pinned].into_iter().filter(|&one| plans(one, load)) {
                let name =
                    |what| name(&format!("{}: {what} latency, equal being 1", place.words()));
                let longest = ratio(LONGEST, (place, load), equal);
                let goal = Goal::AtMost(DECREASED);
                all.push(Check::new(&name("longest"), longest, "", goal).as_statement());
                let (mean, [low, high]) = (ratio(MEAN, (place, load), equal), LITTLE);
                let goal = Goal::Between(low, high);
                all.push(Check::new(&name("mean"), mean, "", goal).as_statement());
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Case, Seen};
    use super::*;
    use std::collections::BTreeMap;

    fn seen(place: Place, load: Program, latencies: &[(u32, u64)]) -> Seen {
        let case = Case { kernel: Kernel::Rt, place, load, wakes: 10 };
        let latencies = latencies.iter().copied().collect::<BTreeMap<_, _>>().into();
        Seen { case, real_s: 0.0, virtual_s: 0.0, latencies }
    }

    #[test]
    fn periods_that_are_slept_through_are_counted() {
        let latencies = [(9_000, 9), (1_008_999, 1), (1_009_000, 2), (5_045_000, 3)];
        assert_eq!(seen(Place::Equal, Program::Compute, &latencies).missed(), 2 + 15);
        assert_eq!(
            seen(Place::Board, Program::Idle, &latencies).missed(),
            0,
            "its period is 10 ms"
        );
    }

    #[test]
    fn the_papers_statements_are_judged_by_what_was_measured() {
        let found = |equal: &[(u32, u64)], above: &[(u32, u64)]| {
            let measurements = vec![
                seen(Place::Board, Program::Idle, &[(8_000, 9), (12_000, 1)]),
                seen(Place::Equal, Program::Compute, equal),
                seen(Place::Above, Program::Compute, above),
            ];
            let planned: Vec<_> = measurements.iter().map(|seen| seen.case).collect();
            let all = All { all: planned.len(), planned, measurements, failures: Vec::new() };
            all.checks().iter().map(Check::verdict).collect::<Vec<_>>()
        };
        // The median on the board; the longest of a guest that is tuned; the mean and the longest of one that is not;
        // the longest and the mean of the tuned one beside it.
        let papers = [(200_000, 9), (4_000_000, 1)];
        assert_eq!(found(&papers, &[(600_000, 10)]), ["agrees"; 6]);
        let ours = found(&[(9_000, 9), (5_000_000, 1)], &[(9_000, 10)]);
        assert_eq!(ours, ["agrees", "agrees", "agrees", "agrees", "agrees", "differs"]);
        let alike = found(&[(9_000, 10)], &[(9_000, 10)]);
        assert_eq!(alike, ["agrees", "agrees", "differs", "differs", "differs", "agrees"]);
        let late = found(&papers, &[(600_000, 9), (1_100_000, 1)]);
        assert_eq!(late[1], "differs");
    }
}
