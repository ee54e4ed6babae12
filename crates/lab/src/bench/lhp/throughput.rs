//! How fast Linux is beside the RTOS: hackbench's time over what the RTOS
//! burns.

use super::plan::CORES;
use super::point::{Experiment, Point, Stage, WHOLE};
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
        let ours = |point: &&Point| point.experiment == Experiment::Throughput;
        let planned: Vec<&Point> = self.planned.iter().filter(ours).collect();
        let load = |point: &&Point| Some(point.rtos?.load_permille);
        let mut loads: Vec<u32> = planned.iter().filter_map(load).collect();
        loads.sort_unstable();
        loads.dedup();
        let mut found =
            Throughput { policies: policies_of(&planned), loads, alone: vec![], spots: vec![] };
        for measured in self.of(Experiment::Throughput) {
            let (point, steady) = (&measured.point, measured.runs.steady());
            if let Stage::Alone { cores } = point.stage {
                found.alone.push((cores, steady));
            } else if let Some((policy, rtos)) = point.stage.policy().zip(point.rtos) {
                found.spots.push(Spot { load_permille: rtos.load_permille, policy, steady });
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
            .column("ideal", Unit::Seconds, |spot| self.ideal(spot.load_permille))
            .column("above_ideal", Unit::Change, |spot| {
                self.above_ideal(spot.policy, spot.load_permille)
            })
            .done()
    }

    /// A row for each load and a column for each policy, for people.
    pub fn table(&self) -> Table {
        let head = ["f", "ideal"].into_iter().chain(self.policies.iter().map(|p| p.name));
        let mut table = Table::new("hackbench, mean ms (deviation, above the ideal line)", head);
        for &load in &self.loads {
            let cell = |&policy: &Policy| {
                let Some(steady) = self.at(policy, load) else { return "-".into() };
                let above = self.above_ideal(policy, load);
                let above = above.map_or_else(String::new, |percent| format!(", {percent:+.1} %"));
                format!("{} ({:.1} %{above})", ms(steady.mean()), steady.deviation_percent())
            };
            let ideal = self.ideal(load).map_or_else(|| "-".into(), ms);
            let cells = self.policies.iter().map(cell);
            table.row([number(share(load)), ideal].into_iter().chain(cells));
        }
        table
    }

    /// The figure: curves for the ideal and each policy, lines for dedicated cores.
    pub fn plot(&self) -> Plot {
        let ideal = self.loads.iter().map(|&load| ("ideal", load, self.ideal(load)));
        let curves = self.policies.iter().flat_map(|&policy| {
            let mean =
                move |&load: &u32| (policy.name, load, self.at(policy, load).map(Sample::mean));
            self.loads.iter().map(mean)
        });
        let data = Dataset::of("curves", "", ideal.chain(curves))
            .name("policy", |(policy, ..)| *policy)
            .name("f", |(_, load, _)| share(*load))
            .head("f, the share of core 0 that the RTOS burns")
            .column("hackbench", Unit::Milliseconds, |(.., mean)| mean.map(|s| 1e3 * s))
            .digits(1)
            .done();
        let lines = [(4, "4 cores"), (3, "3 cores"), (2, "2 cores")];
        let lines = lines.into_iter().filter_map(|(cores, name)| Some((name, self.alone(cores)?)));
        let plot = Plot::lines(&data, "f", "hackbench_ms").by("policy");
        lines.fold(plot, |plot, (name, s)| plot.rule(name, 1e3 * s))
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
            let (limit, none) = (self.alone(cores)?, Policy::named("none")?);
            let times = |&load: &u32| Some((load, self.at(none, load)?.mean()));
            let mut times = self.loads.iter().filter_map(times).peekable();
            times.peek()?;
            Some(match times.find(|&(_, time)| time > limit) {
                Some((load, _)) => format!("from f = {} on", share(load)),
                None => "at no f".into(),
            })
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
        format!(
            "Ours:{slower} At most above the ideal line: none {}, on-demand {}.",
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
        assert_eq!(holds(0.0999), (true, 16));
        assert_eq!(holds(0.1001), (false, 16));
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
