//! How fast Linux is beside the RTOS: hackbench's time over what the RTOS
//! burns.

use super::plan::{CORES, DEDICATED, LOOPS, has_other_period};
use super::point::{Experiment, Linux, Point, Stage, WHOLE};
use super::policy::Policy;
use super::{Lhp, policies_of};
use crate::bench::sample::Sample;
use crate::dataset::{Dataset, Unit};
use crate::quantity::number;
use crate::report::Plot;
use crate::results::{Check, Goal};
use crate::table::Table;

/// Most that on-demand may be above the ideal line, percent.
const ABOVE_IDEAL_PERCENT: f64 = 5.0;
/// Above this load the trap-based policy shall beat `none`, thousandths.
const TRAP_BASED_FROM: u32 = 300;

/// Where `none` is only about as slow as the trap-based policy, thousandths: the less
/// the RTOS burns, the better `none` is.
const CLOSE_UNTIL: u32 = 400;

/// How many loads there are where each tenth is measured.
const TENTHS: usize = 10;
/// Up to this load the papers' on-demand is faster than three dedicated cores, thousandths.
const WITHIN_THREE_UNTIL: u32 = 800;

/// How a goal judges a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// Against a limit, or another one that differs by much.
    Clearly,
    /// Against one that differs by as little as a few runs do by chance.
    Closely,
}

/// How a goal judges this policy at this load, thousandths, if one does.
pub fn judged(policy: &str, load_permille: u32) -> Option<Judged> {
    match (policy, load_permille) {
        ("on-demand", _) => Some(Judged::Clearly),
        ("trap-based" | "none", ..=TRAP_BASED_FROM) => None,
        ("trap-based" | "none", ..=CLOSE_UNTIL) => Some(Judged::Closely),
        ("trap-based" | "none", _) => Some(Judged::Clearly),
        _ => None,
    }
}

/// The time that the papers' ideal line gives (vlk, Section 4.2.2; thesis, Section 2.2.1): as if
/// Linux, which takes `one` on a single core, were faster by the number of cores that the RTOS
/// leaves of [`CORES`].
pub fn papers_ideal(load: f64, one: f64) -> f64 {
    one / (f64::from(CORES) - load)
}

/// The time that the ideal line gives: while the RTOS sleeps, a share
/// 1 - `load` of the time, Linux is as fast as on four cores of its own, else as
/// on three (`four` and `three` are its times there).
pub fn ideal(load: f64, four: f64, three: f64) -> f64 {
    1.0 / ((1.0 - load) / four + load / three)
}

/// A point of the figure, times in seconds.
struct Spot {
    load_permille: u32,
    policy: Policy,
    steady: Sample,
}

/// What the figure needs of all that was measured.
pub struct Throughput {
    policies: Vec<Policy>,
    pub(super) loads: Vec<u32>,
    alone: Vec<(u32, Sample)>,
    spots: Vec<Spot>,
}

impl Lhp {
    /// The part that is about throughput.
    pub(super) fn throughput(&self) -> Throughput {
        self.throughput_of(LOOPS)
    }

    /// Returns what was found with runs of hackbench of so many loops. Runs of all
    /// seeds are one sample.
    pub(super) fn throughput_of(&self, loops: u32) -> Throughput {
        let ours = |point: &&Point| {
            let so_long =
                matches!(point.linux, Linux::Hackbench { loops: its, .. } if its == loops);
            // With other periods: see `adaptive`.
            point.experiment == Experiment::Throughput && so_long && !has_other_period(point)
        };
        let planned: Vec<&Point> = self.planned.iter().filter(ours).collect();
        let load = |point: &&Point| Some(point.rtos?.load_permille);
        let mut loads: Vec<u32> = planned.iter().filter_map(load).collect();
        loads.sort_unstable();
        loads.dedup();
        let mut found =
            Throughput { policies: policies_of(&planned), loads, alone: vec![], spots: vec![] };
        for measured in self.of(Experiment::Throughput).filter(|m| ours(&&m.point)) {
            let (point, steady) = (&measured.point, measured.runs.steady());
            if let Stage::Alone { cores } = point.stage {
                match found.alone.iter_mut().find(|(its, _)| *its == cores) {
                    Some((_, known)) => known.extend(&steady),
                    None => found.alone.push((cores, steady)),
                }
            } else if let Some((policy, rtos)) = point.stage.policy().zip(point.rtos) {
                let load_permille = rtos.load_permille;
                let here =
                    |spot: &&mut Spot| (spot.policy, spot.load_permille) == (policy, load_permille);
                match found.spots.iter_mut().find(here) {
                    Some(spot) => spot.steady.extend(&steady),
                    None => found.spots.push(Spot { load_permille, policy, steady }),
                }
            }
        }
        found
    }
}

impl Throughput {
    pub(super) fn alone(&self, cores: u32) -> Option<f64> {
        let (_, sample) = self.alone.iter().find(|(c, _)| *c == cores)?;
        Some(sample.mean())
    }

    pub(super) fn at(&self, policy: Policy, load_permille: u32) -> Option<&Sample> {
        let here = |spot: &&Spot| (spot.policy, spot.load_permille) == (policy, load_permille);
        Some(&self.spots.iter().find(here)?.steady)
    }

    pub(super) fn ideal(&self, load_permille: u32) -> Option<f64> {
        Some(ideal(share(load_permille), self.alone(CORES)?, self.alone(CORES - 1)?))
    }

    /// The papers' ideal line.
    pub(super) fn papers_ideal(&self, load_permille: u32) -> Option<f64> {
        Some(papers_ideal(share(load_permille), self.alone(1)?))
    }

    /// How far above the papers' ideal line, in percent; below it is negative.
    pub(super) fn above_papers_ideal(&self, policy: Policy, load_permille: u32) -> Option<f64> {
        let time = self.at(policy, load_permille)?.mean();
        Some(100.0 * (time / self.papers_ideal(load_permille)? - 1.0))
    }

    /// How far above the ideal line, in percent; below it is negative.
    pub(super) fn above_ideal(&self, policy: Policy, load_permille: u32) -> Option<f64> {
        let time = self.at(policy, load_permille)?.mean();
        Some(100.0 * (time / self.ideal(load_permille)? - 1.0))
    }

    pub fn checks(&self) -> Vec<Check> {
        let named = |name| self.policies.iter().copied().find(|policy| policy.name == name);
        let mut checks = Vec::new();
        if let Some(policy) = named("on-demand") {
            for &load in &self.loads {
                let name = format!("on-demand, f = {}: above the ideal line", share(load));
                let value = self.above_ideal(policy, load);
                checks.push(Check::new(&name, value, "%", Goal::AtMost(ABOVE_IDEAL_PERCENT)));
            }
        }
        if let Some((trap, none)) = named("trap-based").zip(named("none")) {
            for &load in self.loads.iter().filter(|&&load| load > TRAP_BASED_FROM) {
                let name = format!("trap-based, f = {}: time, that of none being 1", share(load));
                let times = self.at(trap, load).zip(self.at(none, load));
                let ratio = times.map(|(trap, none)| trap.mean() / none.mean());
                checks.push(Check::new(&name, ratio, "", Goal::AtMost(1.0)));
            }
        }
        checks.extend(self.statements());
        checks
    }

    /// The first load at which a policy is slower than Linux on so many cores of its own.
    fn crossing(&self, policy: &str, cores: u32) -> Option<f64> {
        let (limit, policy) = (self.alone(cores)?, Policy::named(policy)?);
        let slower = |load: &&u32| self.at(policy, **load).is_some_and(|all| all.mean() > limit);
        self.loads.iter().find(slower).map(|load| share(*load))
    }

    /// What the papers say of their figures, where each tenth was measured.
    fn statements(&self) -> Vec<Check> {
        if self.loads.len() < TENTHS {
            return Vec::new();
        }
        let mut checks = Vec::new();
        for (cores, from, to) in [(3, 0.5, 0.6), (2, 0.8, 0.9)] {
            let name = format!("none: the f from which it is slower than {cores} dedicated cores");
            let crossing = self.crossing("none", cores);
            checks.push(Check::new(&name, crossing, "", Goal::Between(from, to)).as_statement());
        }
        let worst =
            Policy::named("on-demand").zip(self.alone(CORES - 1)).and_then(|(policy, three)| {
                let below = self.loads.iter().filter(|load| **load <= WITHIN_THREE_UNTIL);
                let ratios = below.map(|load| Some(self.at(policy, *load)?.mean() / three));
                ratios.collect::<Option<Vec<_>>>()?.into_iter().reduce(f64::max)
            });
        let name = "on-demand up to f = 0.8: longest time, that on 3 dedicated cores being 1";
        checks.push(Check::new(name, worst, "", Goal::AtMost(1.0)).as_statement());
        let papers =
            ["trap-based-paper", "trap-based-deferred"].into_iter().find_map(Policy::named);
        if let Some((paper, none)) = papers.zip(Policy::named("none")) {
            let better =
                |load: &u32| Some(self.at(paper, *load)?.mean() < self.at(none, *load)?.mean());
            let better: Option<Vec<_>> = self.loads.iter().map(better).collect();
            let count = better.map(|all| {
                let times = all.iter().filter(|better| **better).count();
                100.0 * times as f64 / all.len() as f64
            });
            let name = format!("{}: at how many f it is faster than none", paper.name);
            checks.push(Check::new(&name, count, "%", Goal::AtMost(50.0)).as_statement());
        }
        checks
    }

    /// Linux on cores of its own.
    pub fn dedicated(&self) -> Dataset {
        Dataset::of("dedicated", "hackbench on dedicated cores", &self.alone)
            .name("cores", |(cores, _)| *cores)
            .column("runs", Unit::Seconds, |(_, steady)| steady.0.clone())
            .for_programs()
            .column("mean", Unit::Seconds, |(_, steady)| steady.mean())
            .shown_in(Unit::Milliseconds, 1)
            .column("deviation", Unit::Percent, |(_, steady)| steady.deviation_percent())
            .column("interval", Unit::Seconds, |(_, steady)| steady.interval())
            .head("95 % interval, ±")
            .shown_in(Unit::Milliseconds, 1)
            .done()
    }

    /// Each point beside the ideal, for programs.
    pub fn data(&self) -> Dataset {
        Dataset::of("throughput", "hackbench beside the RTOS", &self.spots)
            .name("policy", |spot| spot.policy.name)
            .name("f", |spot| share(spot.load_permille))
            .column("runs", Unit::Seconds, |spot| spot.steady.0.clone())
            .column("mean", Unit::Seconds, |spot| spot.steady.mean())
            .column("deviation", Unit::Percent, |spot| spot.steady.deviation_percent())
            .column("interval", Unit::Seconds, |spot| spot.steady.interval())
            .column("ideal", Unit::Seconds, |spot| self.ideal(spot.load_permille))
            .column("above_ideal", Unit::Change, |spot| {
                self.above_ideal(spot.policy, spot.load_permille)
            })
            .column("papers_ideal", Unit::Seconds, |spot| self.papers_ideal(spot.load_permille))
            .column("above_papers_ideal", Unit::Change, |spot| {
                self.above_papers_ideal(spot.policy, spot.load_permille)
            })
            .done()
    }

    /// A row for each load and a column for each policy, for people.
    pub fn table(&self) -> Table {
        let head = ["f", "ideal", "papers' ideal"].into_iter();
        let head = head.chain(self.policies.iter().map(|p| p.name));
        let title = "hackbench, mean ms ± 95 % interval (above the ideal line, above the papers')";
        let mut table = Table::new(title, head);
        for &load in &self.loads {
            let cell = |&policy: &Policy| {
                let Some(steady) = self.at(policy, load) else { return "-".into() };
                let above = [self.above_ideal(policy, load), self.above_papers_ideal(policy, load)];
                let [ours, papers] = above.map(|above| {
                    above.map_or_else(|| "-".into(), |percent| format!("{percent:+.1} %"))
                });
                let interval = steady.interval();
                let interval = if interval.is_nan() { "-".into() } else { ms(interval) };
                format!("{} ± {interval} ({ours}, {papers})", ms(steady.mean()))
            };
            let ideals = [self.ideal(load), self.papers_ideal(load)];
            let [ideal, papers] = ideals.map(|ideal| ideal.map_or_else(|| "-".into(), ms));
            let cells = self.policies.iter().map(cell);
            table.row([number(share(load)), ideal, papers].into_iter().chain(cells));
        }
        table
    }

    /// The figure: curves for both ideals and each policy with its intervals, lines for
    /// dedicated cores.
    pub fn plot(&self) -> Plot {
        type Curve<'a> = (&'a str, u32, Option<f64>, Option<f64>);
        let mut rows: Vec<Curve> = Vec::new();
        for &load in &self.loads {
            rows.push(("ideal", load, self.ideal(load), None));
        }
        for &load in &self.loads {
            rows.push(("the papers' ideal", load, self.papers_ideal(load), None));
        }
        for &policy in &self.policies {
            for &load in &self.loads {
                let all = self.at(policy, load);
                let interval = all.map(Sample::interval).filter(|half| !half.is_nan());
                rows.push((policy.name, load, all.map(Sample::mean), interval));
            }
        }
        let end = |row: &Curve, sign: f64| Some(1e3 * (row.2? + sign * row.3?));
        let data = Dataset::of("curves", "", rows)
            .name("policy", |(policy, ..)| *policy)
            .name("f", |(_, load, ..)| share(*load))
            .head("f, the share of core 0 that the RTOS burns")
            .column("hackbench", Unit::Milliseconds, |(.., mean, _)| mean.map(|s| 1e3 * s))
            .digits(1)
            .column("low", Unit::Milliseconds, |row| end(row, -1.0))
            .column("high", Unit::Milliseconds, |row| end(row, 1.0))
            .done();
        let name = |cores| if cores == 1 { "1 core".into() } else { format!("{cores} cores") };
        // A single core is far above all: its line would press the others together.
        let lines = DEDICATED.into_iter().filter(|cores| *cores > 1 || self.is_slow(*cores));
        let lines = lines.filter_map(|cores| Some((name(cores), self.alone(cores)?)));
        let plot =
            Plot::lines(&data, "f", "hackbench_ms").by("policy").interval("low_ms", "high_ms");
        lines.fold(plot, |plot, (name, s)| plot.rule(&name, 1e3 * s))
    }

    /// Returns true if some policy is slower at some load than so many cores of its own.
    fn is_slow(&self, cores: u32) -> bool {
        let limit = self.alone(cores).unwrap_or(f64::INFINITY);
        self.spots.iter().any(|spot| spot.steady.mean() > limit)
    }

    /// By how much hackbench takes longer under `one` than under `other`, in words:
    /// percent at each load where both were measured, and at how many it does.
    fn longer(&self, one: &str, other: &str) -> String {
        let (mut each, mut longer) = (Vec::new(), 0);
        for &load in &self.loads {
            let time = |name| Some(self.at(Policy::named(name)?, load)?.mean());
            let Some((one, other)) = time(one).zip(time(other)) else { continue };
            let percent = 100.0 * (one / other - 1.0);
            each.push(format!("{percent:+.1} % at f = {}", share(load)));
            longer += usize::from(percent > 0.0);
        }
        if each.is_empty() {
            return "not measured at the same f".into();
        }
        format!("{}; longer at {longer} of {}", each.join(", "), each.len())
    }

    /// What the interrupt rule brings, and what returning at once costs: of three
    /// policies each differs from the next in one thing. None when nothing tells it.
    pub fn rule_finding(&self) -> Option<String> {
        let eager = Policy::named("trap-based-eager")?;
        self.loads.iter().find(|&&load| self.at(eager, load).is_some())?;
        Some(format!(
            "Ours: time of hackbench without the interrupt rule (trap-based-deferred against \
             trap-based-eager, both back at once): {}. Back at once (trap-based-eager against \
             trap-based, both with the rule): {}. Runs of one machine differ by 5 to 10 %.",
            self.longer("trap-based-deferred", "trap-based-eager"),
            self.longer("trap-based-eager", "trap-based"),
        ))
    }

    /// Our finding beside the paper's, where there is one.
    pub fn finding(&self) -> String {
        let worst = |name: &str| {
            let policy = Policy::named(name)?;
            let above = self.loads.iter().filter_map(|&load| self.above_ideal(policy, load));
            above.reduce(f64::max)
        };
        let crossing = |cores| {
            let none = Policy::named("none")?;
            self.alone(cores)?;
            self.loads.iter().find(|load| self.at(none, **load).is_some())?;
            let from = self.crossing("none", cores);
            Some(from.map_or_else(|| "at no f".into(), |load| format!("from f = {load} on")))
        };
        let slower: Vec<_> = [(3, "three"), (2, "two")]
            .into_iter()
            .filter_map(|(cores, word)| Some(format!("than on {word} cores {}", crossing(cores)?)))
            .collect();
        let slower = if slower.is_empty() {
            String::new()
        } else {
            format!(" without a policy hackbench is slower {}.", slower.join(", "))
        };
        let above = |name| worst(name).map_or("not measured".into(), |p| format!("{p:+.1} %"));
        let papers = Policy::named("on-demand").and_then(|policy| {
            let above = self.loads.iter().filter_map(|&load| self.above_papers_ideal(policy, load));
            above.reduce(f64::max)
        });
        let papers = papers.map_or_else(String::new, |percent| {
            format!(" Above the papers' ideal line, S1 / (4 - f): on-demand {percent:+.1} %.")
        });
        format!(
            "Ours:{slower} At most above the ideal line: none {}, on-demand {}.{papers}",
            above("none"),
            above("on-demand")
        )
    }
}

pub(super) fn share(permille: u32) -> f64 {
    f64::from(permille) / f64::from(WHOLE)
}

pub(super) fn ms(seconds: f64) -> String {
    format!("{:.1}", 1e3 * seconds)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{lhp, measured};
    use super::*;

    #[test]
    fn the_ideal_line_ends_at_four_and_three_cores() {
        assert!((ideal(0.0, 0.08, 0.1) - 0.08).abs() < 1e-12);
        assert!((ideal(1.0, 0.08, 0.1) - 0.1).abs() < 1e-12);
        // Half of the time at 12.5 a second, half at 10.
        assert!((ideal(0.5, 0.08, 0.1) - 1.0 / 11.25).abs() < 1e-12);
    }

    /// On one core 0.32 s, so that four and three of them would take 0.08 s and 0.107 s.
    #[test]
    fn the_ideal_line_of_the_papers_divides_the_time_on_one_core() {
        assert!((papers_ideal(0.0, 0.32) - 0.08).abs() < 1e-12);
        assert!((papers_ideal(1.0, 0.32) - 0.32 / 3.0).abs() < 1e-12);
        let found = lhp(vec![
            measured("throughput-alone-1", &[9.0, 0.32]),
            measured("throughput-on-demand-f0", &[9.0, 0.088]),
        ]);
        let found = found.throughput();
        let above = found.above_papers_ideal(Policy::named("on-demand").unwrap(), 0).unwrap();
        assert!((above - 10.0).abs() < 1e-9, "{above}");
        assert!(found.finding().contains("S1 / (4 - f): on-demand +10.0 %"));
    }

    /// Seeds are histories of the same: one sample of all.
    #[test]
    fn runs_of_all_seeds_are_one_sample() {
        let found = lhp(vec![
            measured("throughput-on-demand-f5-l100-x5", &[9.0, 0.1, 0.2]),
            measured("throughput-on-demand-f5-l100-x5-seed2", &[9.0, 0.3]),
            measured("throughput-alone-4-l100-x5", &[9.0, 0.1]),
            measured("throughput-alone-4-l100-x5-seed3", &[9.0, 0.3]),
        ]);
        let found = found.throughput();
        let all = found.at(Policy::named("on-demand").unwrap(), 500).unwrap();
        assert_eq!((all.0.as_slice(), found.alone(4)), (&[0.1, 0.2, 0.3][..], Some(0.2)));
        let table = found.table().markdown();
        assert!(table.contains("200.0 ± 248.3"), "{table}");
    }

    /// A statement is one about each tenth of f.
    #[test]
    fn where_none_crosses_the_lines_of_dedicated_cores_is_a_statement() {
        let all = |slow: u32| {
            let mut all = vec![
                measured("throughput-alone-3", &[9.0, 0.1]),
                measured("throughput-alone-2", &[9.0, 0.15]),
            ];
            for tenth in 0..10 {
                let time = if tenth < slow { 0.09 } else { 0.11 };
                all.push(measured(&format!("throughput-none-f{tenth}"), &[9.0, time]));
            }
            let checks = lhp(all).throughput().statements();
            (checks[0].value, checks[0].holds(), checks[1].value)
        };
        assert_eq!(all(6), (Some(0.6), true, None));
        assert_eq!(all(4), (Some(0.4), false, None));
    }

    #[test]
    fn a_point_above_the_ideal_line_is_noticed() {
        let times = |on_demand| {
            lhp(vec![
                measured("throughput-alone-4", &[9.0, 0.08, 0.08]),
                measured("throughput-alone-3", &[9.0, 0.1, 0.1]),
                measured("throughput-on-demand-f8", &[9.0, on_demand]),
                measured("throughput-none-f8", &[9.0, 0.2]),
            ])
        };
        // The ideal at 0.8 is 1 / (0.2 / 0.08 + 0.8 / 0.1) = 0.0952.
        let holds = |on_demand| {
            let checks = times(on_demand).throughput().checks();
            let at = checks.iter().find(|check| check.name.contains("f = 0.8")).unwrap();
            (at.holds(), checks.len())
        };
        assert_eq!(holds(0.0999), (true, 20));
        assert_eq!(holds(0.1001), (false, 20));
        let data = times(0.1).throughput().data().json();
        assert_eq!((&data[1]["policy"], &data[1]["mean_s"]), (&"none".into(), &0.2.into()));
        assert!(data[1]["deviation_percent"].is_null() && data.as_array().unwrap().len() == 2);
        assert_eq!(times(0.1).throughput().dedicated().json()[0]["cores"], 4);
        let finding = times(0.1).throughput().finding();
        assert!(
            finding.contains("is slower than on three cores from f = 0.8 on. At most"),
            "{finding}"
        );
        assert!(finding.contains("none +110.0 %, on-demand +5.0 %"), "{finding}");
    }

    #[test]
    fn nothing_is_said_of_what_was_not_measured() {
        let finding =
            lhp(vec![measured("throughput-on-demand-f8", &[9.0, 0.1])]).throughput().finding();
        assert_eq!(
            finding,
            "Ours: At most above the ideal line: none not measured, on-demand not measured."
        );
    }

    #[test]
    fn what_the_interrupt_rule_brings_is_said_where_it_was_measured() {
        assert_eq!(lhp(Vec::new()).throughput().rule_finding(), None);
        let found = lhp(vec![
            measured("throughput-trap-based-f3", &[9.0, 0.10]),
            measured("throughput-trap-based-eager-f3", &[9.0, 0.12]),
            measured("throughput-trap-based-deferred-f3", &[9.0, 0.18]),
            measured("throughput-trap-based-eager-f8", &[9.0, 0.20]),
            measured("throughput-trap-based-deferred-f8", &[9.0, 0.19]),
        ]);
        let found = found.throughput().rule_finding().unwrap();
        let rule = "+50.0 % at f = 0.3, -5.0 % at f = 0.8; longer at 1 of 2. Back at once";
        assert!(found.contains(rule), "{found}");
        assert!(found.contains("the rule): +20.0 % at f = 0.3; longer at 1 of 1."), "{found}");
    }
}
