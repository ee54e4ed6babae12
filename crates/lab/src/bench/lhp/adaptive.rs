//! How far the adaptive policy is from the best of those that always do the same.
//!
//! With these Linux keeps all of its cores and the RTOS never waits for Linux: so neither `partition`
//! is one of them nor a policy that delays the RTOS or makes it migrate.

use super::latency::{self, Setting};
use super::plan::{ADVANCES_US, LONG_LOAD, LONG_PERIOD_US, SHORT_PERIOD_US};
use super::point::{Experiment, Linux, Point, Wake};
use super::policy::Policy;
use super::throughput::{share, timed};
use super::{Lhp, estimated, run::Measurement};
use crate::bench::sample::{Estimate, Sample};
use crate::dataset::{Dataset, Unit};
use crate::results::{Check, Goal};

/// What it is called.
const ADAPTIVE: &str = "adaptive";
/// How much longer hackbench may take than under the best of the others, that being 1.
const SLOWER: f64 = 1.02;
/// How much later the RTOS may be than under the best of them.
const LATER: f64 = 1.10;

/// A load and a period of the RTOS, and one size of hackbench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Where {
    period_us: u32,
    load_permille: u32,
    loops: u32,
}

impl Where {
    fn of(point: &Point) -> Option<Self> {
        let Linux::Hackbench { loops, .. } = point.linux else { return None };
        let rtos = point.rtos.filter(|_| point.experiment == Experiment::Throughput)?;
        Some(Self { period_us: rtos.period_us, load_permille: rtos.load_permille, loops })
    }

    fn name(self) -> String {
        format!("f = {} of each {}", share(self.load_permille), period(self.period_us))
    }
}

/// A length for people.
fn period(us: u32) -> String {
    if us.is_multiple_of(1_000) { format!("{} ms", us / 1_000) } else { format!("{us} µs") }
}

/// The adaptive policy beside the best of the others.
struct Beside {
    at: Where,
    adaptive: Sample,
    best: Option<(Policy, Sample)>,
}

impl Beside {
    /// Returns its time, that under the best being 1.
    fn ratio(&self) -> Option<Estimate> {
        Some(timed(&self.adaptive).over(timed(&self.best.as_ref()?.1)))
    }
}

impl Lhp {
    /// Returns hackbench's times under a policy, of all seeds.
    fn times(&self, policy: Policy, at: Where) -> Option<Sample> {
        let here = |m: &&Measurement| {
            Where::of(&m.point) == Some(at) && m.point.stage.policy() == Some(policy)
        };
        self.measurements.iter().filter(here).map(|m| m.runs.steady()).reduce(|mut all, more| {
            all.extend(&more);
            all
        })
    }

    /// Returns where the adaptive policy was to be measured.
    fn adapted(&self) -> Vec<Where> {
        let ours = |point: &&Point| point.stage.name() == ADAPTIVE;
        let mut all: Vec<_> = self.planned.iter().filter(ours).filter_map(Where::of).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Returns what was measured of it.
    fn beside(&self) -> Vec<Beside> {
        let Some(adaptive) = Policy::named(ADAPTIVE) else { return Vec::new() };
        let fixed: Vec<_> = Policy::all().into_iter().filter(|p| p.is_fixed()).collect();
        let beside = |at| {
            let times = |policy: &Policy| Some((*policy, self.times(*policy, at)?));
            let by_mean =
                |one: &(_, Sample), other: &(_, Sample)| one.1.mean().total_cmp(&other.1.mean());
            let best = fixed.iter().filter_map(times).min_by(by_mean);
            Some(Beside { at, adaptive: self.times(adaptive, at)?, best })
        };
        self.adapted().into_iter().filter_map(beside).collect()
    }

    pub(super) fn adaptive_data(&self) -> Dataset {
        Dataset::of("adaptive", "hackbench under the adaptive policy", self.beside())
            .name("period_us", |one| one.at.period_us)
            .name("f", |one| share(one.at.load_permille))
            .column("adaptive", Unit::Seconds, |one| one.adaptive.mean())
            .shown_in(Unit::Milliseconds, 1)
            .name("adaptive_runs", |one| one.adaptive.0.len())
            .head("n")
            .name("best", |one| one.best.as_ref().map_or("-", |(policy, _)| policy.name))
            .column("best", Unit::Seconds, |one| one.best.as_ref().map(|(_, times)| times.mean()))
            .shown_in(Unit::Milliseconds, 1)
            .name("best_runs", |one| one.best.as_ref().map(|(_, times)| times.0.len()))
            .head("n")
            .column("ratio", Unit::None, |one| Some(one.ratio()?.mean))
            .column("interval", Unit::None, |one| Some(one.ratio()?.half))
            .head("95 % interval, ±")
            .done()
    }

    /// Compares its throughput with that of the best of the others.
    pub(super) fn adaptive_times(&self) -> Vec<Check> {
        let all = self.beside();
        let checks = self.adapted().into_iter().map(|at| {
            let name =
                format!("adaptive, {}: time, that of the best fixed policy being 1", at.name());
            let ratio = all.iter().find(|one| one.at == at).and_then(Beside::ratio);
            estimated(&name, ratio, "", Goal::AtMost(SLOWER)).as_statement()
        });
        checks.collect()
    }

    /// Likewise, of its latencies.
    pub(super) fn adaptive_latencies(&self) -> Vec<Check> {
        let mut settings = Vec::new();
        for advance_us in ADVANCES_US {
            for period_us in [SHORT_PERIOD_US, LONG_PERIOD_US] {
                let name = format!("{}, advance {advance_us} µs", period(period_us));
                settings.push((name, Setting::hackbench(period_us, advance_us)));
            }
        }
        let load = share(LONG_LOAD);
        let name = format!("f = {load} of each {}, no advance", period(LONG_PERIOD_US));
        settings.push((name, Setting::hackbench(LONG_PERIOD_US, 0).loaded(LONG_LOAD)));
        for wake in Wake::UNFORESEEN {
            settings.push((format!("unforeseen {}", wake.about()), Setting::unforeseen(wake)));
        }
        let fixed = || Policy::all().into_iter().filter(|policy| policy.is_fixed());
        let mut checks = Vec::new();
        for (about, setting) in settings.iter().filter(|(_, s)| self.plans_late(ADAPTIVE, s)) {
            let name = |which: &str| {
                let best = "that of the best fixed policy being 1";
                format!("adaptive, {about}: dispatch latency, {which}, {best}")
            };
            let mean = |policy: &str| Estimate::of(&self.late(policy, setting)?.dispatch);
            let best = fixed().filter_map(|policy| mean(policy.name));
            let best = best.min_by(|one, other| one.mean.total_cmp(&other.mean));
            let ratio = mean(ADAPTIVE).zip(best).map(|(ours, best)| ours.over(best));
            let goal = Goal::AtMost(LATER);
            checks.push(estimated(&name("mean"), ratio, "", goal).as_statement());
            // Not of equally many activations, so longest latencies are not compared.
            let late = |policy: &str| self.dispatch(policy, setting, latency::p999);
            let best = fixed().filter_map(|policy| late(policy.name)).reduce(f64::min);
            let ratio = late(ADAPTIVE).zip(best).map(|(ours, best)| ours / best);
            checks.push(Check::new(&name("p99.9"), ratio, "", goal).as_statement());
        }
        checks
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{late, measured, only};
    use super::*;
    use crate::results::{TOO_FEW, UNDECIDED};

    #[test]
    fn the_best_of_the_others_is_what_it_is_compared_with() {
        let found = only(vec![
            measured("throughput-adaptive-f5-l100", &[9.0, 0.102]),
            measured("throughput-none-f5-l100", &[9.0, 0.11]),
            measured("throughput-on-demand-f5-l100", &[9.0, 0.1]),
            measured("throughput-partition-f5-l100", &[9.0, 0.01]),
            measured("throughput-safe-unsafe-f5-l100", &[9.0, 0.01]),
            measured("throughput-adaptive-f5-40us", &[9.0, 0.102, 0.104]),
            measured("throughput-none-f5-40us", &[9.0, 0.1, 0.1]),
        ]);
        let checks = found.adaptive_times();
        let seen: Vec<_> = checks.iter().map(|c| (c.name.as_str(), c.holds())).collect();
        let name = |at| {
            format!("adaptive, f = 0.5 of each {at}: time, that of the best fixed policy being 1")
        };
        assert_eq!(seen, [(name("40 µs").as_str(), false), (name("10 ms").as_str(), true)]);
        let data = found.adaptive_data().json();
        assert_eq!((&data[0]["period_us"], &data[1]["best"]), (&40.into(), &"on-demand".into()));
        assert!(data[0]["interval"].as_f64().is_some_and(|interval| interval > 0.05));
        assert_eq!((&data[0]["adaptive_runs"], &data[0]["best_runs"]), (&2.into(), &2.into()));
        let said: Vec<_> = checks.iter().map(Check::verdict).collect();
        assert_eq!(said, [UNDECIDED, TOO_FEW], "two runs and one");
    }

    #[test]
    fn its_latency_is_compared_where_it_was_planned() {
        let found = only(vec![
            late("latency-adaptive-hackbench-97us-advance0", &[(1_100, 10)]),
            late("latency-none-hackbench-97us-advance0", &[(1_000, 10)]),
            late("latency-on-demand-hackbench-97us-advance0", &[(1_300, 10)]),
            late("latency-adaptive-hackbench-997us-f5-advance0", &[(1_200, 10)]),
            late("latency-none-hackbench-997us-f5-advance0", &[(1_000, 9), (1_190, 1)]),
        ]);
        let checks = found.adaptive_latencies();
        let holds: Vec<_> = checks.iter().map(|check| check.holds()).collect();
        assert_eq!(holds, [true, true, false, true]);
    }

    /// The longest of more activations is longer by chance.
    #[test]
    fn one_late_activation_of_thousands_decides_no_statement() {
        let found = only(vec![
            late("latency-adaptive-hackbench-97us-advance0", &[(1_000, 9_999), (9_000, 1)]),
            late("latency-none-hackbench-97us-advance0", &[(1_000, 30_000)]),
        ]);
        assert!(found.adaptive_latencies().iter().all(Check::holds));
    }
}
