//! What the papers say of their techniques, beside what was measured.

use super::super::policy::NONE;
use super::super::throughput::timed;
use super::super::{Lhp, estimated, faster};
use super::{CALL, Column, FIXED, Kernel, LOADS, TECHNIQUES, TRAP, Technique};
use crate::bench::sample::Estimate;
use crate::results::{Check, Goal};

/// From this load on the papers compare yields.
const YIELDS_FROM: u32 = 500;
/// How much longer than delayed preemption is as good as that: what runs of one machine differ by.
const NOISE: f64 = 1.05;

/// A policy in a column.
type Side = (Column, &'static str);
/// What was found, if it was measured, if it is planned.
type Planned<T> = Option<Option<T>>;

impl Lhp {
    /// What the papers say of their techniques, of Linux with the port, where that is planned.
    pub(in super::super) fn technique_checks(&self) -> Vec<Check> {
        let (paper, yields) = (Column::Paper, Column::PaperYield);
        let mut checks = Vec::new();
        let mut state = |name: &str, found: Planned<Estimate>, goal| {
            let name = format!("{TECHNIQUES}{name}");
            checks.extend(found.map(|found| estimated(&name, found, "", goal).as_statement()));
        };
        let longest = |one, other, from| {
            let longer = |one: &Estimate, other: &Estimate| one.mean.total_cmp(&other.mean);
            let ratios = self.technique_ratios(one, other, from);
            ratios.map(|all| all.and_then(|all| all.into_iter().max_by(longer)))
        };
        state(
            "mean dispatch latency of delayed-call, that of on-demand-fixed being 1",
            self.technique_late_ratio((paper, CALL), (paper, FIXED)),
            Goal::AtLeast(1.0),
        );
        state(
            "mean dispatch latency of on-demand-fixed, that of trap-based-paper being 1",
            self.technique_late_ratio((paper, FIXED), (paper, TRAP)),
            Goal::AtLeast(1.0),
        );
        state(
            "longest hackbench of delayed-call at an f, that of on-demand-fixed being 1",
            longest((paper, CALL), (paper, FIXED), 0),
            Goal::AtMost(1.0),
        );
        state(
            "longest hackbench of on-demand-fixed with yields from f = 0.5 on, without being 1",
            longest((yields, FIXED), (paper, FIXED), YIELDS_FROM),
            Goal::AtMost(1.0),
        );
        state(
            "longest hackbench of on-demand-fixed with yields from f = 0.5 on, delayed-call being 1",
            longest((yields, FIXED), (paper, CALL), YIELDS_FROM),
            Goal::AtMost(NOISE),
        );
        state(
            "mean dispatch latency of on-demand-fixed with yields, without being 1",
            self.technique_late_ratio((yields, FIXED), (paper, FIXED)),
            Goal::Between(2.0 - NOISE, NOISE),
        );
        let name = format!("{TECHNIQUES}at how many f trap-based-paper is faster than none");
        let ratios = self.technique_ratios((paper, TRAP), (paper, NONE), 0);
        let check = |ratios| faster(&name, ratios, Goal::AtMost(50.0)).as_statement();
        checks.extend(ratios.map(check));
        checks
    }

    /// Returns the times of hackbench with the port, those of another side being 1, at each load from
    /// `from` on at which both are planned.
    fn technique_ratios(&self, one: Side, other: Side, from: u32) -> Planned<Vec<Estimate>> {
        let is_planned = |(column, policy): Side, load| {
            let its = Technique { kernel: Kernel::Own, column, when: None };
            self.planned.iter().any(|point| its.is_timed_at(point, policy, load))
        };
        let loads = LOADS.into_iter().filter(|load| *load >= from);
        let both = loads.filter(|load| is_planned(one, *load) && is_planned(other, *load));
        let both: Vec<_> = both.collect();
        let time = |(column, policy): Side, load| {
            Some(timed(&self.technique(Kernel::Own, column, policy, load)?))
        };
        let ratio = |load: &u32| Some(time(one, *load)?.over(time(other, *load)?));
        (!both.is_empty()).then(|| both.iter().map(ratio).collect())
    }

    /// Returns the mean dispatch latency with the port, that of another side being 1.
    fn technique_late_ratio(&self, one: Side, other: Side) -> Planned<Estimate> {
        let is_planned = |(column, policy): Side| {
            let its = Technique { kernel: Kernel::Own, column, when: None };
            self.planned.iter().any(|point| its.is_late_at(point, policy))
        };
        let mean = |(column, policy)| Estimate::of(self.technique_late(column, policy)?);
        let ratio = || Some(mean(one)?.over(mean(other)?));
        (is_planned(one) && is_planned(other)).then(ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::point::{Linux, Point};
    use super::super::super::run::Measurement;
    use super::super::super::tests::{measured, only};
    use super::super::points;
    use super::*;
    use crate::bench::Extent;
    use crate::results::NOT_MEASURED;

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
            assert_eq!((checks.len(), known.len()), (1, 1), "the rest is not planned");
            let table = all.quoted_techniques()[0].table().markdown();
            assert!(table.contains("| on-demand, f = 0.8 |"), "{table}");
            known[0].holds()
        };
        assert!(found(0.09) && !found(0.11));
    }

    #[test]
    fn what_was_not_measured_of_what_is_planned_is_said() {
        let mut all = only(vec![timed(Column::Paper, FIXED, 800, 0.1)]);
        let point = |column, policy, load| timed(column, policy, load, 0.1).point;
        all.planned.push(point(Column::PaperYield, FIXED, 800));
        all.planned.push(point(Column::Paper, TRAP, 800));
        all.planned.push(point(Column::Paper, NONE, 800));
        let said: Vec<_> = all.technique_checks().iter().map(Check::verdict).collect();
        assert_eq!(said, [NOT_MEASURED; 2]);
    }
}
