//! What the papers say of their techniques, beside what was measured.

use super::super::Lhp;
use super::super::point::Experiment;
use super::super::policy::NONE;
use super::{CALL, Column, FIXED, Kernel, LOADS, TECHNIQUES, TRAP};
use crate::results::{Check, Goal};

/// From this load on the papers compare yields.
const YIELDS_FROM: u32 = 500;
/// How much longer than delayed preemption is as good as that: what runs of one machine differ by.
const NOISE: f64 = 1.05;

impl Lhp {
    /// What the papers say of their techniques, of Linux with the port.
    pub(in super::super) fn technique_checks(&self) -> Vec<Check> {
        if !self.plans(Experiment::Technique) {
            return Vec::new();
        }
        let time =
            |column, policy, load| Some(self.technique(Kernel::Own, column, policy, load)?.mean());
        let mean = |column, policy| self.technique_late(column, policy)?.mean();
        let worst = |one: (Column, &'static str), other: (Column, &'static str), from: u32| {
            let loads = LOADS.into_iter().filter(|load| *load >= from);
            let ratios = loads
                .filter_map(|load| Some(time(one.0, one.1, load)? / time(other.0, other.1, load)?));
            ratios.reduce(f64::max)
        };
        let (paper, yields) = (Column::Paper, Column::PaperYield);
        let mut checks = Vec::new();
        let mut state = |name: &str, value: Option<f64>, unit, goal| {
            let name = format!("{TECHNIQUES}{name}");
            checks.push(Check::new(&name, value, unit, goal).as_statement());
        };
        let ratio = |one: Option<f64>, other: Option<f64>| Some(one? / other?);
        let [call, fixed, trap] = [CALL, FIXED, TRAP].map(|policy| mean(paper, policy));
        state(
            "mean dispatch latency of delayed-call, that of on-demand-fixed being 1",
            ratio(call, fixed),
            "",
            Goal::AtLeast(1.0),
        );
        state(
            "mean dispatch latency of on-demand-fixed, that of trap-based-paper being 1",
            ratio(fixed, trap),
            "",
            Goal::AtLeast(1.0),
        );
        state(
            "longest hackbench of delayed-call at an f, that of on-demand-fixed being 1",
            worst((paper, CALL), (paper, FIXED), 0),
            "",
            Goal::AtMost(1.0),
        );
        state(
            "longest hackbench of on-demand-fixed with yields from f = 0.5 on, without being 1",
            worst((yields, FIXED), (paper, FIXED), YIELDS_FROM),
            "",
            Goal::AtMost(1.0),
        );
        state(
            "longest hackbench of on-demand-fixed with yields from f = 0.5 on, delayed-call being 1",
            worst((yields, FIXED), (paper, CALL), YIELDS_FROM),
            "",
            Goal::AtMost(NOISE),
        );
        state(
            "mean dispatch latency of on-demand-fixed with yields, without being 1",
            ratio(mean(yields, FIXED), fixed),
            "",
            Goal::Between(2.0 - NOISE, NOISE),
        );
        let faster: Option<Vec<_>> = LOADS
            .into_iter()
            .map(|load| Some(time(paper, TRAP, load)? < time(paper, NONE, load)?))
            .collect();
        let share = faster.map(|all| {
            let times = all.iter().filter(|faster| **faster).count();
            100.0 * times as f64 / all.len() as f64
        });
        let name = "at how many f trap-based-paper is faster than none";
        state(name, share, "%", Goal::AtMost(50.0));
        checks
    }

    /// Returns how the statements of the papers came out, a line each.
    pub(super) fn technique_checks_text(&self) -> String {
        let checks = self.technique_checks().into_iter();
        let known = checks.filter(|check| check.value.is_some());
        let line = |check: Check| {
            let name = check.name.trim_start_matches(TECHNIQUES).to_owned();
            format!("- {name}: {} ({}): {}\n", check.value_text(), check.goal, check.verdict())
        };
        known.map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::point::{Linux, Point};
    use super::super::super::run::Measurement;
    use super::super::super::tests::{measured, only};
    use super::super::{Technique, points};
    use super::*;
    use crate::bench::Extent;

    /// The point, with these times.
    fn timed(column: Column, policy: &str, load: u32, seconds: f64) -> Measurement {
        let is_it = |p: &Point| {
            p.technique
                .is_some_and(|its| its == Technique { kernel: Kernel::Own, column, when: None })
                && p.stage.name() == policy
                && p.linux != Linux::BusyHackbench
                && p.rtos.is_some_and(|rtos| rtos.load_permille == load)
        };
        let point = points(Extent::Paper).into_iter().find(is_it).unwrap();
        let measured = measured("throughput-alone-3", &[9.0, seconds]);
        Measurement { point, ..measured }
    }

    #[test]
    fn what_yields_bring_is_a_statement() {
        let found = |with| {
            let all = only(vec![
                timed(Column::Paper, FIXED, 800, 0.1),
                timed(Column::PaperYield, FIXED, 800, with),
            ]);
            let checks = all.technique_checks();
            let known: Vec<_> = checks.iter().filter(|check| check.value.is_some()).collect();
            assert_eq!(known.len(), 1, "the rest needs what was not measured");
            assert!(all.quoted_techniques().contains("| on-demand, f = 0.8 |"));
            known[0].holds()
        };
        assert!(found(0.09) && !found(0.11));
    }
}
