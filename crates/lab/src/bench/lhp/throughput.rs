//! How fast Linux is beside the RTOS: hackbench's time over what the RTOS
//! burns.

use super::plan::{CORES, DEDICATED, LOOPS, has_other_period};
use super::point::{Experiment, Linux, Point, Stage, WHOLE};
use super::policy::Policy;
use super::{Lhp, estimated, faster, policies_of};
use crate::bench::sample::{Estimate, Sample};
use crate::dataset::{Dataset, Unit};
use crate::quantity::number;
use crate::report::Plot;
use crate::results::{Check, Goal};
use crate::table::Table;

/// Most that on-demand may be above the ideal line, percent.
const ABOVE_IDEAL_PERCENT: f64 = 5.0;
/// To what hackbench rounds its times, seconds.
const RESOLUTION_S: f64 = 1e-3;
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

/// Returns the mean of some times of hackbench and its interval, which is no narrower than what
/// they are rounded to.
pub fn timed(times: &Sample) -> Estimate {
    let Estimate { mean, half } = times.estimate();
    // Of "not a number" and another number `max` takes the number.
    Estimate { mean, half: if half.is_nan() { half } else { half.max(RESOLUTION_S / 2.0) } }
}

/// Returns what [`TOLD`] says for people.
pub fn told(times: &Sample) -> String {
    let Estimate { mean, half } = timed(times);
    let half = if half.is_nan() { String::new() } else { format!(" ± {}", ms(half)) };
    format!("{}{half} ({})", ms(mean), times.0.len())
}

/// What stands in a cell with times of hackbench.
pub const TOLD: &str = "mean in ms ± 95 % interval (counted runs)";

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

/// Returns what [`ideal`] does, with the interval that follows from those of both times.
fn ideal_of(load: f64, four: Estimate, three: Estimate) -> Estimate {
    let mean = ideal(load, four.mean, three.mean);
    let part = |share: f64, time: Estimate| share * (mean / time.mean).powi(2) * time.half;
    Estimate { mean, half: part(1.0 - load, four).hypot(part(load, three)) }
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
    planned: Vec<(Policy, u32)>,
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
        let place = |point: &&Point| Some((point.stage.policy()?, point.rtos?.load_permille));
        let mut found = Throughput {
            policies: policies_of(&planned),
            loads,
            planned: planned.iter().filter_map(place).collect(),
            alone: vec![],
            spots: vec![],
        };
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
        Some(self.alone_runs(cores)?.mean())
    }

    /// Returns the runs on so many cores of its own.
    pub(super) fn alone_runs(&self, cores: u32) -> Option<&Sample> {
        Some(&self.alone.iter().find(|(c, _)| *c == cores)?.1)
    }

    /// Returns the time under a policy, that under another one being 1.
    fn ratio(&self, policy: Policy, other: Policy, load_permille: u32) -> Option<Estimate> {
        let [ours, other] = [policy, other].map(|policy| self.at(policy, load_permille).map(timed));
        Some(ours?.over(other?))
    }

    /// Returns the time under a policy at each load from the least to `most`, that on so many cores of
    /// Linux's own being 1; none unless all were measured.
    fn beside_alone(&self, policy: Policy, cores: u32, most: u32) -> Option<Vec<(u32, Estimate)>> {
        let alone = timed(self.alone_runs(cores)?);
        let loads = self.loads.iter().copied().filter(|load| *load <= most);
        loads.map(|load| Some((load, timed(self.at(policy, load)?).over(alone)))).collect()
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

    /// Returns what [`Self::above_ideal`] does, with the interval that follows from all runs.
    fn estimated_above_ideal(&self, policy: Policy, load_permille: u32) -> Option<Estimate> {
        let alone = |cores| Some(timed(self.alone_runs(cores)?));
        let ideal = ideal_of(share(load_permille), alone(CORES)?, alone(CORES - 1)?);
        let Estimate { mean, half } = timed(self.at(policy, load_permille)?).over(ideal);
        Some(Estimate { mean: 100.0 * (mean - 1.0), half: 100.0 * half })
    }

    pub fn checks(&self) -> Vec<Check> {
        let named = |name| self.policies.iter().copied().find(|policy| policy.name == name);
        let mut checks = Vec::new();
        if let Some(policy) = named("on-demand") {
            for &load in &self.loads {
                let name = format!("on-demand, f = {}: above the ideal line", share(load));
                let value = self.estimated_above_ideal(policy, load);
                checks.push(estimated(&name, value, "%", Goal::AtMost(ABOVE_IDEAL_PERCENT)));
            }
        }
        if let Some((trap, none)) = named("trap-based").zip(named("none")) {
            for &load in self.loads.iter().filter(|&&load| load > TRAP_BASED_FROM) {
                let name = format!("trap-based, f = {}: time, that of none being 1", share(load));
                checks.push(estimated(&name, self.ratio(trap, none, load), "", Goal::AtMost(1.0)));
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

    /// Compares with `goal` the load from which a policy is slower than so many cores of Linux's own; it
    /// is infinite if that is so at no load. Runs tell it up to the load at which it surely is.
    fn crossing_check(&self, policy: &str, cores: u32, goal: Goal) -> Check {
        let name = format!("{policy}: the f from which it is slower than {cores} dedicated cores");
        let ratios = Policy::named(policy);
        let ratios = ratios.and_then(|policy| self.beside_alone(policy, cores, WHOLE));
        let first = |all: &[(u32, Estimate)], is_slower: fn(&Estimate) -> bool| {
            let first = all.iter().find(|(_, ratio)| is_slower(ratio));
            first.map_or(f64::INFINITY, |(load, _)| share(*load))
        };
        let value = ratios.as_ref().map(|all| first(all, |ratio| ratio.mean > 1.0));
        let check = Check::new(&name, value, "", goal).as_statement();
        let Some(all) = ratios else { return check };
        let tell = all.iter().all(|(_, ratio)| !ratio.half.is_nan());
        let perhaps = first(&all, |ratio| ratio.range()[1] > 1.0);
        let surely = first(&all, |ratio| ratio.range()[0] > 1.0);
        check.within(if tell { [perhaps, surely] } else { [f64::NAN; 2] })
    }

    /// What the papers say of their figures, where each tenth was measured.
    fn statements(&self) -> Vec<Check> {
        if self.loads.len() < TENTHS {
            return Vec::new();
        }
        let mut checks = Vec::new();
        for (cores, from, to) in [(3, 0.5, 0.6), (2, 0.8, 0.9)] {
            checks.push(self.crossing_check("none", cores, Goal::Between(from, to)));
        }
        let ratios = Policy::named("on-demand")
            .and_then(|policy| self.beside_alone(policy, CORES - 1, WITHIN_THREE_UNTIL));
        let worst = ratios.and_then(|all| {
            let ratios = all.into_iter().map(|(_, ratio)| ratio);
            ratios.max_by(|one, other| one.mean.total_cmp(&other.mean))
        });
        let name = "on-demand up to f = 0.8: longest time, that on 3 dedicated cores being 1";
        checks.push(estimated(name, worst, "", Goal::AtMost(1.0)).as_statement());
        checks.extend(self.papers_trap_based().map(Check::as_statement));
        checks
    }

    /// At how many f the papers' trap-based policy is faster than none, where both are planned.
    fn papers_trap_based(&self) -> Option<Check> {
        let of = |policy: Policy| {
            let planned = self.planned.iter().filter(move |(its, _)| *its == policy);
            let mut loads: Vec<u32> = planned.map(|(_, load)| *load).collect();
            loads.dedup();
            loads
        };
        let none = Policy::named("none")?;
        let papers = ["trap-based-paper", "trap-based-deferred"].into_iter();
        let paper = papers.filter_map(Policy::named).find(|paper| !of(*paper).is_empty())?;
        let mut loads = of(paper);
        loads.retain(|load| of(none).contains(load));
        let ratios = loads.iter().map(|load| self.ratio(paper, none, *load)).collect();
        let name = format!("{}: at how many f it is faster than none", paper.name);
        Some(faster(&name, ratios, Goal::AtMost(50.0)))
    }

    /// Linux on cores of its own.
    pub fn dedicated(&self) -> Dataset {
        Dataset::of("dedicated", "hackbench on dedicated cores", &self.alone)
            .name("cores", |(cores, _)| *cores)
            .column("runs", Unit::Seconds, |(_, steady)| steady.0.clone())
            .for_programs()
            .name("n", |(_, steady)| steady.0.len())
            .column("mean", Unit::Seconds, |(_, steady)| steady.mean())
            .shown_in(Unit::Milliseconds, 1)
            .column("deviation", Unit::Percent, |(_, steady)| steady.deviation_percent())
            .column("interval", Unit::Seconds, |(_, steady)| timed(steady).half)
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
            .column("interval", Unit::Seconds, |spot| timed(&spot.steady).half)
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
        let title = format!("hackbench, {TOLD}; above the ideal line, above the papers'");
        let mut table = Table::new(&title, head);
        for &load in &self.loads {
            let cell = |&policy: &Policy| {
                let Some(steady) = self.at(policy, load) else { return "-".into() };
                let above = [self.above_ideal(policy, load), self.above_papers_ideal(policy, load)];
                let [ours, papers] = above.map(|above| {
                    above.map_or_else(|| "-".into(), |percent| format!("{percent:+.1} %"))
                });
                format!("{}; {ours}, {papers}", told(steady))
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
                let interval = all.map(|runs| timed(runs).half).filter(|half| !half.is_nan());
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
    /// percent at each load where both were measured, and at how many runs tell that it does.
    fn longer(&self, one: &str, other: &str) -> String {
        let (mut each, mut longer, mut shorter) = (Vec::new(), 0, 0);
        let both = Policy::named(one).zip(Policy::named(other));
        for &load in &self.loads {
            let ratio = both.and_then(|(one, other)| self.ratio(one, other, load));
            let Some(Estimate { mean, half }) = ratio else { continue };
            let percent = 100.0 * (mean - 1.0);
            let interval =
                if half.is_nan() { String::new() } else { format!(" ± {:.1}", 100.0 * half) };
            each.push(format!("{percent:+.1}{interval} % at f = {}", share(load)));
            longer += usize::from(mean - half > 1.0);
            shorter += usize::from(mean + half < 1.0);
        }
        if each.is_empty() {
            return "not measured at the same f".into();
        }
        let of = each.len();
        format!("{}; surely longer at {longer} of {of}, shorter at {shorter}", each.join(", "))
    }

    /// What the interrupt rule brings, and what returning at once costs: of three
    /// policies each differs from the next in one thing. None when nothing tells it.
    pub fn rule_finding(&self) -> Option<String> {
        let eager = Policy::named("trap-based-eager")?;
        self.loads.iter().find(|&&load| self.at(eager, load).is_some())?;
        Some(format!(
            "Ours: time of hackbench without the interrupt rule (trap-based-deferred against \
             trap-based-eager, both back at once): {}. Back at once (trap-based-eager against \
             trap-based, both with the rule): {}. What is sure lies beyond the interval of 95 %.",
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
    use crate::results::{TOO_FEW, UNDECIDED};

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
        assert!(table.contains("| 200.0 ± 248.3 (3); -, - |"), "{table}");
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
        assert_eq!(all(6), (Some(0.6), true, Some(f64::INFINITY)));
        assert_eq!(all(4), (Some(0.4), false, Some(f64::INFINITY)));
    }

    /// Times on both sides of the line decide nothing; one run tells less.
    #[test]
    fn where_runs_differ_by_more_than_the_line_is_away_no_statement_is_decided() {
        let said = |at_five: &[f64]| {
            let mut all = vec![
                measured("throughput-alone-3", &[9.0, 0.1, 0.1]),
                measured("throughput-alone-2", &[9.0, 0.15, 0.15]),
            ];
            for tenth in 0..10 {
                let times = if tenth == 4 { at_five } else { &[9.0, 0.08, 0.08][..] };
                let times = if tenth > 4 { &[9.0, 0.12, 0.12][..] } else { times };
                all.push(measured(&format!("throughput-none-f{tenth}"), times));
            }
            let check = lhp(all).throughput().statements()[0].clone();
            (check.verdict(), check.value_text())
        };
        assert_eq!(said(&[9.0, 0.08, 0.08]), ("agrees", "0.5 (0.5 to 0.5)".into()));
        assert_eq!(said(&[9.0, 0.09, 0.13]), (UNDECIDED, "0.4 (0.4 to 0.5)".into()));
        assert_eq!(said(&[9.0, 0.13, 0.13]), ("differs", "0.4 (0.4 to 0.4)".into()));
        assert_eq!(said(&[9.0, 0.13]), (TOO_FEW, "0.4".into()));
    }

    #[test]
    fn hackbench_tells_no_time_more_exactly_than_it_rounds() {
        let cell = |times: &[f64]| told(&Sample(times.into()));
        assert_eq!(cell(&[0.086, 0.086]), "86.0 ± 0.5 (2)");
        assert_eq!(cell(&[0.086, 0.088]), "87.0 ± 12.7 (2)");
        assert_eq!(cell(&[0.086]), "86.0 (1)");
    }

    #[test]
    fn the_ideal_line_is_as_uncertain_as_the_times_that_it_is_made_of() {
        let [four, three] = [(0.08, 0.008), (0.1, 0.01)];
        let [four, three] = [four, three].map(|(mean, half)| Estimate { mean, half });
        assert!((ideal_of(0.0, four, three).half - 0.008).abs() < 1e-12);
        assert!((ideal_of(1.0, four, three).half - 0.01).abs() < 1e-12);
        let half = ideal_of(0.5, four, three).half;
        assert!(half > 0.004 && half < 0.01, "{half}");
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
        assert_eq!(holds(0.0999), (true, 19));
        assert_eq!(holds(0.1001), (false, 19));
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
            measured("throughput-trap-based-f3", &[9.0, 0.10, 0.10]),
            measured("throughput-trap-based-eager-f3", &[9.0, 0.12, 0.12]),
            measured("throughput-trap-based-deferred-f3", &[9.0, 0.18, 0.18]),
            measured("throughput-trap-based-eager-f8", &[9.0, 0.20]),
            measured("throughput-trap-based-deferred-f8", &[9.0, 0.19]),
        ]);
        let found = found.throughput().rule_finding().unwrap();
        let rule = "+50.0 ± 0.8 % at f = 0.3, -5.0 % at f = 0.8; surely longer at 1 of 2, shorter at 0. \
                    Back at once";
        assert!(found.contains(rule), "{found}");
        let back = "the rule): +20.0 ± 0.8 % at f = 0.3; surely longer at 1 of 1, shorter at 0.";
        assert!(found.contains(back), "{found}");
    }
}
