//! The papers' techniques as they have them, the same with yields, and what stands for them here.

use super::Lhp;
use super::description::Setting;
use super::plan::{CORES, DEDICATED, LOOPS, PERIOD_US, SHORT_PERIOD_US};
use super::point::{Experiment, Linux, Point, Rtos, Stage};
use super::policy::{NONE, Policy};
use super::run::Measurement;
use super::throughput::{ideal, ms, share};
use crate::bench::Extent;
use crate::bench::sample::Sample;
use crate::dataset::{Dataset, Unit};
use crate::guests::Locks;
use crate::observe::Distribution;
use crate::results::{Check, Goal};
use sched::policy::{MigrationPolicy, Request};
use serde::{Deserialize, Serialize};

/// How a technique is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Technique {
    pub kernel: Kernel,
    pub column: Column,
}

/// Which Linux is run. Times of one are not to be compared with those of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// Debian's; a module yields.
    Stock,
    /// That with the port (`guests/linux-own`), which counts loops, and tells of its locks.
    Own,
}

/// What of ours there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Column {
    /// Nothing: no grace for siblings, no directed yield, no timer advance, no limit of delays.
    Paper,
    /// The same, and Linux yields where it spins while two of its vCPUs share a core.
    PaperYield,
    /// All that a description has where it says nothing.
    Cassata,
}

impl Column {
    const ALL: [Self; 3] = [Self::Paper, Self::PaperYield, Self::Cassata];

    fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::PaperYield => "paper-yield",
            Self::Cassata => "cassata",
        }
    }

    /// Returns the head of the column, for people.
    fn head(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::PaperYield => "paper + yield",
            Self::Cassata => "Cassata",
        }
    }
}

impl Kernel {
    const ALL: [Self; 2] = [Self::Own, Self::Stock];

    fn name(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::Own => "own",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Stock => "stock Linux, which yields by a module",
            Self::Own => "Linux with the port, which counts loops",
        }
    }
}

/// A figure of a distribution, nanoseconds.
type Figure = fn(&Distribution) -> Option<f64>;

/// A technique of the papers, and the policy that stands for it in each column; none: it has no
/// such column.
struct Row {
    name: &'static str,
    policies: [Option<&'static str>; 3],
}

const CALL: &str = "delayed-call";
const PAGE: &str = "delayed-page";
const FIXED: &str = "on-demand-fixed";
const LAZY: &str = "on-demand-lazy";
const TRAP: &str = "trap-based-paper";

/// The techniques. Where preemption is delayed no two vCPUs share a core, so there is none to yield to.
const ROWS: [Row; 6] = [
    Row { name: "none", policies: [Some(NONE), None, None] },
    Row { name: "delayed, by calls", policies: [Some(CALL), None, None] },
    Row { name: "delayed, by a page", policies: [Some(PAGE), None, None] },
    Row { name: "on-demand", policies: [Some(FIXED), Some(FIXED), Some("on-demand")] },
    Row { name: "on-demand, back when it sleeps", policies: [Some(LAZY), Some(LAZY), None] },
    Row { name: "trap-based", policies: [Some(TRAP), Some(TRAP), Some("trap-based")] },
];

/// Loads at which techniques are compared, thousandths, and where only the clearest are.
const LOADS: [u32; 5] = [0, 300, 500, 800, 900];
const FEW_LOADS: [u32; 1] = [800];
/// Activations of the RTOS where its latency is measured, and where that is done coarsely.
const ACTIVATIONS: u32 = 5_000;
const FEW_ACTIVATIONS: u32 = 500;
/// Runs of hackbench, the first of which is not counted.
const RUNS: u32 = 3;
/// From this load on the papers compare yields.
const YIELDS_FROM: u32 = 500;
/// How much longer than delayed preemption is as good as that: what runs of one machine differ by.
const NOISE: f64 = 1.05;

/// Returns whether a policy delays preemption by calls or by a page, as Linux is told.
fn preemption(policy: &str) -> Option<&'static str> {
    match MigrationPolicy::named(policy)?.policy().request() {
        Request::Call => Some("call"),
        Request::Page => Some("page"),
        Request::None | Request::Mask => None,
    }
}

impl Technique {
    /// Returns how a point's name says it.
    pub fn name(self) -> String {
        format!("{}-{}", self.kernel.name(), self.column.name())
    }

    /// Returns what the description says of it, under `policy`.
    pub fn setting(self, policy: &str) -> Setting {
        let mut setting = Setting::default();
        if self.column != Column::Cassata {
            setting.hypervisor += "sibling_grace = \"0us\"\ndirected_yield = false\n";
        }
        if let Some(how) = preemption(policy) {
            setting.vm += "delay_limit = \"none\"\n";
            setting.words += &format!(" cassata.preemption={how}");
        }
        if self.column == Column::PaperYield {
            setting.vm += "yield = true\n";
            setting.words += " cassata.yield=overcommitted";
        }
        setting
    }

    /// Returns what is wrong with what Linux says that it used.
    pub fn objection(self, policy: &str, said: Option<&Locks>) -> Option<String> {
        let yields = self.column == Column::PaperYield;
        let preemption = preemption(policy);
        if !yields && preemption.is_none() {
            return None;
        }
        let fits = said.is_some_and(|locks| {
            (locks.yields != "none") == yields
                && preemption.is_none_or(|how| locks.preemption.as_deref() == Some(how))
        });
        (!fits).then(|| format!("Linux does not do what it was told: {said:?}"))
    }
}

/// Returns the points. Those of the whole plan have no room for more than one load with the port.
pub fn points(extent: Extent) -> Vec<Point> {
    let mut points = Vec::new();
    let paper = extent == Extent::Paper;
    let linux = Linux::Hackbench { loops: LOOPS, runs: RUNS };
    let technique = |kernel, column| Some(Technique { kernel, column });
    for kernel in Kernel::ALL.into_iter().filter(|_| paper) {
        let alone = |cores| Point {
            technique: technique(kernel, Column::Cassata),
            ..Point::new(Experiment::Technique, &linux, Stage::Alone { cores }, None)
        };
        points.extend(DEDICATED.into_iter().filter(|cores| *cores > 1).map(alone));
    }
    let quick = extent == Extent::Quick;
    for (kernel, column, policy) in compared(!paper) {
        // What the papers' Figures 8 and 9 are about, and no more.
        if quick && policy.name == TRAP {
            continue;
        }
        let needs_port = preemption(policy.name).is_some();
        if kernel == Kernel::Stock && (needs_port || !paper) {
            continue;
        }
        let advance_us = (column != Column::Cassata).then_some(0);
        let shared = |linux: &Linux, rtos| {
            let stage = Stage::shared(policy);
            let point = Point::new(Experiment::Technique, linux, stage, Some(rtos));
            Point { technique: technique(kernel, column), ..point }
        };
        for &load in if paper { &LOADS[..] } else { &FEW_LOADS[..] } {
            points.push(shared(&linux, Rtos { advance_us, ..Rtos::new(load, PERIOD_US, 0) }));
        }
        if kernel == Kernel::Own && !quick {
            let activations = if paper { ACTIVATIONS } else { FEW_ACTIVATIONS };
            let rtos = Rtos::new(0, SHORT_PERIOD_US, activations);
            let rtos = Rtos { advance_us, jitter_percent: 10, ..rtos };
            points.push(shared(&Linux::BusyHackbench, rtos));
        }
    }
    points
}

/// Returns all policies in all columns that they have; coarsely, those of PECCS and no column of ours.
fn compared(coarsely: bool) -> Vec<(Kernel, Column, Policy)> {
    let mut all = Vec::new();
    for kernel in Kernel::ALL {
        for row in ROWS
            .iter()
            .filter(|row| !coarsely || ![NONE, PAGE, LAZY].map(Some).contains(&row.policies[0]))
        {
            for (column, name) in Column::ALL.into_iter().zip(row.policies) {
                let wanted = !coarsely || kernel == Kernel::Own && column != Column::Cassata;
                let policy = name.and_then(Policy::named).filter(|_| wanted);
                all.extend(policy.map(|policy| (kernel, column, policy)));
            }
        }
    }
    all
}

impl Lhp {
    fn techniques(&self, kernel: Kernel) -> impl Iterator<Item = (&Measurement, Column)> {
        let own = move |m: &'_ Measurement| m.point.technique.filter(|its| its.kernel == kernel);
        self.of(Experiment::Technique).filter_map(move |m| Some((m, own(m)?.column)))
    }

    /// Returns the runs of hackbench under a policy that count.
    fn technique(&self, kernel: Kernel, column: Column, policy: &str, load: u32) -> Option<Sample> {
        let stage = Stage::Shared { policy: policy.into() };
        let here = |(m, its): &(&Measurement, Column)| {
            let at = m.point.rtos.is_some_and(|rtos| rtos.load_permille == load);
            *its == column && m.point.stage == stage && at && m.point.linux != Linux::BusyHackbench
        };
        Some(self.techniques(kernel).find(here)?.0.runs.steady())
    }

    /// Returns dispatch latencies under a policy.
    fn technique_late(&self, column: Column, policy: &str) -> Option<&Distribution> {
        let stage = Stage::Shared { policy: policy.into() };
        let here = |(m, its): &(&Measurement, Column)| {
            *its == column && m.point.stage == stage && m.point.linux == Linux::BusyHackbench
        };
        Some(&self.techniques(Kernel::Own).find(here)?.0.rtos.as_ref()?.dispatch)
    }

    fn technique_alone(&self, kernel: Kernel, cores: u32) -> Option<f64> {
        let here = |(m, _): &(&Measurement, Column)| m.point.stage == Stage::Alone { cores };
        Some(self.techniques(kernel).find(here)?.0.runs.steady().mean())
    }

    /// What the papers say of their techniques, of Linux with the port.
    pub(super) fn technique_checks(&self) -> Vec<Check> {
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
            let name = format!("techniques: {name}");
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

    /// Each run, for programs.
    pub(super) fn technique_data(&self) -> Dataset {
        let all = Kernel::ALL
            .into_iter()
            .flat_map(|kernel| self.techniques(kernel).map(move |(m, column)| (kernel, column, m)));
        let dispatch =
            |m: &Measurement, of: fn(&Distribution) -> Option<f64>| of(&m.rtos.as_ref()?.dispatch);
        Dataset::of("techniques", "The papers' techniques", all)
            .name("kernel", |(kernel, ..)| kernel.name())
            .name("column", |(_, column, _)| column.name())
            .name("stage", |(.., m)| m.point.stage.name())
            .name("f", |(.., m)| m.point.rtos.map(|rtos| share(rtos.load_permille)))
            .name("linux", |(.., m)| {
                if m.point.linux == Linux::BusyHackbench {
                    "endless hackbench"
                } else {
                    "hackbench"
                }
            })
            .column("runs", Unit::Seconds, |(.., m)| m.runs.steady().0.clone())
            .column("mean", Unit::Seconds, |(.., m)| {
                (m.point.linux != Linux::BusyHackbench).then(|| m.runs.steady().mean())
            })
            .name("yielded", |(.., m)| m.locks.as_ref().map(|locks| locks.yielded))
            .name("cancelled", |(.., m)| m.locks.as_ref().and_then(|locks| locks.cancelled))
            .column("dispatch_mean", Unit::Nanoseconds, |(.., m)| dispatch(m, Distribution::mean))
            .column("dispatch_max", Unit::Nanoseconds, |(.., m)| {
                dispatch(m, |all| all.max().map(f64::from))
            })
            .done()
    }

    /// Returns what the book quotes: times of hackbench with either kernel, and latencies.
    pub(super) fn quoted_techniques(&self) -> String {
        let mut tables: Vec<String> = Vec::new();
        for kernel in
            Kernel::ALL.into_iter().filter(|kernel| self.techniques(*kernel).next().is_some())
        {
            let rows: Vec<_> = ROWS
                .iter()
                .flat_map(|row| LOADS.map(|load| (row, load)))
                .filter(|(row, load)| {
                    let mut each = Column::ALL.into_iter().zip(row.policies);
                    each.any(|(column, policy)| {
                        policy.is_some_and(|policy| {
                            self.technique(kernel, column, policy, *load).is_some()
                        })
                    })
                })
                .collect();
            let title = format!("hackbench beside the RTOS, ms: {}", kernel.about());
            let line = |load: u32| {
                let [four, three] =
                    [CORES, CORES - 1].map(|cores| self.technique_alone(kernel, cores));
                Some(ms(ideal(share(load), four?, three?)))
            };
            let mut all = Dataset::of("techniques", &title, rows)
                .name("technique", |(row, load)| format!("{}, f = {}", row.name, share(*load)))
                .head("")
                .name("ideal", |(_, load)| line(*load));
            for (place, column) in Column::ALL.into_iter().enumerate() {
                all = all
                    .name(column.name(), |(row, load)| {
                        Some(ms(self
                            .technique(kernel, column, row.policies[place]?, *load)?
                            .mean()))
                    })
                    .head(column.head());
            }
            tables.push(all.done().table().titled_markdown());
        }
        let title = format!(
            "Dispatch latency under hackbench each {SHORT_PERIOD_US} µs: {}",
            Kernel::Own.about()
        );
        let late = ROWS.iter().filter(|row| {
            let mut each = Column::ALL.into_iter().zip(row.policies);
            each.any(|(column, policy)| {
                policy.is_some_and(|policy| self.technique_late(column, policy).is_some())
            })
        });
        let mut all = Dataset::of("late", &title, late).name("technique", |row| row.name).head("");
        for (place, column) in Column::ALL.into_iter().enumerate() {
            let figures: [(&str, Figure); 2] =
                [("mean", Distribution::mean), ("max", |all| all.max().map(f64::from))];
            for (name, figure) in figures {
                let of = |row: &&Row| figure(self.technique_late(column, row.policies[place]?)?);
                let key = format!("{}_{name}", column.name());
                let head = format!("{}, {name}", column.head());
                all = all.column(&key, Unit::Nanoseconds, of).head(&head);
            }
        }
        tables.push(all.done().table().titled_markdown());
        tables.push(self.technique_checks_text());
        tables.join("\n")
    }

    /// Returns how the statements of the papers came out, a line each.
    fn technique_checks_text(&self) -> String {
        let checks = self.technique_checks().into_iter();
        let known = checks.filter(|check| check.value.is_some());
        let line = |check: Check| {
            let name = check.name.trim_start_matches("techniques: ").to_owned();
            let word = if check.holds() { "agrees" } else { "differs" };
            format!("- {name}: {} ({}): {word}\n", check.value_text(), check.goal)
        };
        known.map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::only;
    use super::*;

    /// The point, with these times.
    fn timed(column: Column, policy: &str, load: u32, seconds: f64) -> Measurement {
        let is_it = |p: &Point| {
            p.technique.is_some_and(|its| its == Technique { kernel: Kernel::Own, column })
                && p.stage.name() == policy
                && p.linux != Linux::BusyHackbench
                && p.rtos.is_some_and(|rtos| rtos.load_permille == load)
        };
        let point = points(Extent::Paper).into_iter().find(is_it).unwrap();
        let measured = super::super::tests::measured("throughput-alone-3", &[9.0, seconds]);
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

    #[test]
    fn linux_must_do_what_it_was_told() {
        let technique = |column| Technique { kernel: Kernel::Own, column };
        let said = |preemption: &str, yields: &str| Locks {
            preemption: Some(preemption.into()),
            yields: yields.into(),
            ..Locks::default()
        };
        let paper = technique(Column::Paper);
        assert_eq!(paper.objection(FIXED, None), None);
        assert_eq!(paper.objection(CALL, Some(&said("call", "none"))), None);
        assert!(paper.objection(CALL, Some(&said("none", "none"))).is_some());
        assert!(paper.objection(PAGE, None).is_some());
        let yields = technique(Column::PaperYield);
        assert_eq!(yields.objection(FIXED, Some(&said("none", "overcommitted"))), None);
        assert!(yields.objection(FIXED, Some(&said("none", "none"))).is_some());
    }
}
