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
use crate::guests::LinuxProgress;
use crate::observe::Distribution;
use crate::report::Plot;
use crate::results::{Check, Goal};
use sched::policy::{MigrationPolicy, Request};
use serde::{Deserialize, Serialize};

/// How the names of checks of techniques begin.
pub(super) const TECHNIQUES: &str = "techniques: ";

/// How a technique is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Technique {
    pub kernel: Kernel,
    pub column: Column,
    /// When Linux yields, where that differs from what it is told otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<When>,
}

/// When Linux yields where it spins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// Also while no two of its vCPUs share a core.
    Always,
    /// After so many loops of one wait: the port, which counts them; by default 1,024.
    Loops(u32),
    /// When it has looked so many times whether the lock is free: the module; by default 0.
    Looks(u32),
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
    /// The same, and Linux yields as in [`Self::PaperYield`].
    CassataYield,
    /// All that a description has where it says nothing, and Linux's scheduler is told which CPUs share a
    /// core now.
    Informed,
    /// The same, but it is told how much time was stolen from each CPU lately.
    InformedStolen,
    /// All that a description has where it says nothing, and WFE traps as it does on hardware.
    Wfe,
}

impl Column {
    const ALL: [Self; 7] = [
        Self::Paper,
        Self::PaperYield,
        Self::Cassata,
        Self::CassataYield,
        Self::Informed,
        Self::InformedStolen,
        Self::Wfe,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::PaperYield => "paper-yield",
            Self::Cassata => "cassata",
            Self::CassataYield => "cassata-yield",
            Self::Informed => "informed",
            Self::InformedStolen => "informed-stolen",
            Self::Wfe => "wfe",
        }
    }

    /// Returns the head of the column, for people.
    fn head(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::PaperYield => "paper + yield",
            Self::Cassata => "Cassata",
            Self::CassataYield => "Cassata + yield",
            Self::Informed => "Cassata, informed by lines",
            Self::InformedStolen => "Cassata, informed by stolen time",
            Self::Wfe => "Cassata, WFE traps",
        }
    }

    /// Returns true if nothing of ours is there.
    fn is_papers(self) -> bool {
        matches!(self, Self::Paper | Self::PaperYield)
    }

    /// Returns true if WFE traps.
    pub fn traps_wfe(self) -> bool {
        self == Self::Wfe
    }

    fn yields(self) -> bool {
        matches!(self, Self::PaperYield | Self::CassataYield)
    }

    /// Returns how Linux's scheduler is told what is left of each CPU.
    fn informed_by(self) -> Option<&'static str> {
        match self {
            Self::Informed => Some("line"),
            Self::InformedStolen => Some("stolen"),
            _ => None,
        }
    }
}

impl When {
    fn name(self) -> String {
        match self {
            Self::Always => "always".into(),
            Self::Loops(count) => format!("loops{count}"),
            Self::Looks(count) => format!("looks{count}"),
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

    /// Returns true if a policy finds what it needs: stock Linux neither asks nor counts.
    fn has(self, policy: &str) -> bool {
        let asks = |kind: MigrationPolicy| kind.policy().request() != Request::None;
        self == Self::Own || !MigrationPolicy::named(policy).is_some_and(asks)
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
    policies: [Option<&'static str>; Column::ALL.len()],
}

const CALL: &str = "delayed-call";
const PAGE: &str = "delayed-page";
const PEEK: &str = "delayed-peek";
const ON_DEMAND: &str = "on-demand";
const FIXED: &str = "on-demand-fixed";
const LAZY: &str = "on-demand-lazy";
const TRAP: &str = "trap-based-paper";

/// The techniques. Where preemption is delayed no two vCPUs share a core, so there is none to yield to.
const ROWS: [Row; 7] = [
    Row { name: "none", policies: of([NONE, "", "", "", "", NONE, ""]) },
    Row { name: "delayed, by calls", policies: of([CALL, "", "", "", "", "", ""]) },
    Row { name: "delayed, by a page", policies: of([PAGE, "", "", "", "", "", ""]) },
    Row { name: "delayed, by a count", policies: of(["", "", PEEK, "", "", "", ""]) },
    Row {
        name: "on-demand",
        policies: of([FIXED, FIXED, ON_DEMAND, ON_DEMAND, ON_DEMAND, ON_DEMAND, ON_DEMAND]),
    },
    Row { name: "on-demand, back when it sleeps", policies: of([LAZY, LAZY, "", "", "", "", ""]) },
    Row { name: "trap-based", policies: of([TRAP, TRAP, "trap-based", "", "", "", ""]) },
];

/// The policies of a row; an empty name: there is no such column.
const fn of(names: [&'static str; Column::ALL.len()]) -> [Option<&'static str>; Column::ALL.len()] {
    let mut all = [None; Column::ALL.len()];
    let mut i = 0;
    while i < names.len() {
        if !names[i].is_empty() {
            all[i] = Some(names[i]);
        }
        i += 1;
    }
    all
}

/// Loads at which techniques are compared, thousandths, and where only the clearest are.
const LOADS: [u32; 5] = [0, 300, 500, 800, 900];
const FEW_LOADS: [u32; 1] = [800];
/// Loads at which a scheduler is informed, thousandths.
const INFORMED_LOADS: [u32; 3] = [300, 500, 800];
/// Loops of one wait after which the port yields, beside its default, and how often the module looks.
const LOOPS_SWEPT: [u32; 4] = [1, 64, 16_384, 65_536];
const LOOKS_SWEPT: [u32; 3] = [64, 1_024, 16_384];
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
        Request::None | Request::Peek | Request::Mask => None,
    }
}

impl Technique {
    /// Returns how a point's name says it.
    pub fn name(self) -> String {
        let when = self.when.map(|when| format!("-{}", when.name())).unwrap_or_default();
        format!("{}-{}{when}", self.kernel.name(), self.column.name())
    }

    /// Returns what the description says of it, under `policy`.
    pub fn setting(self, policy: &str) -> Setting {
        let mut setting = Setting::default();
        if self.column.is_papers() {
            setting.hypervisor += "sibling_grace = \"0us\"\ndirected_yield = false\n";
        }
        if let Some(how) = preemption(policy) {
            setting.vm += "delay_limit = \"none\"\n";
            setting.words += &format!(" cassata.preemption={how}");
        }
        if self.column.yields() {
            setting.vm += "yield = true\n";
            let always = self.when == Some(When::Always);
            setting.words +=
                if always { " cassata.yield=always" } else { " cassata.yield=overcommitted" };
            if let Some(When::Loops(count) | When::Looks(count)) = self.when {
                setting.words += &format!(" cassata.threshold={count}");
            }
        }
        if let Some(how) = self.column.informed_by() {
            setting.vm += "yield = true\n";
            setting.words += &format!(" cassata.capacity={how}");
        }
        setting
    }

    /// Returns what is wrong with what Linux says that it used.
    pub fn objection(self, policy: &str, linux: &LinuxProgress) -> Option<String> {
        if self.column.informed_by().is_some()
            && linux.capacity_changes.is_none_or(|times| times == 0)
        {
            return Some("Linux told its scheduler nothing of its CPUs".into());
        }
        let said = linux.locks.as_ref();
        let yields = self.column.yields();
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
    let technique = |kernel, column| Some(Technique { kernel, column, when: None });
    for kernel in Kernel::ALL.into_iter().filter(|_| paper) {
        let alone = |cores| Point {
            technique: technique(kernel, Column::Cassata),
            ..Point::new(Experiment::Technique, &HACKBENCH, Stage::Alone { cores }, None)
        };
        points.extend(DEDICATED.into_iter().filter(|cores| *cores > 1).map(alone));
    }
    let quick = extent == Extent::Quick;
    for (kernel, column, policy) in compared(!paper) {
        // What the papers' Figures 8 and 9 are about, and no more.
        if quick && policy.name == TRAP {
            continue;
        }
        let its = Technique { kernel, column, when: None };
        for &load in if paper { &LOADS[..] } else { &FEW_LOADS[..] } {
            points.push(its.point(policy, load));
        }
        if kernel == Kernel::Own && !quick {
            let activations = if paper { ACTIVATIONS } else { FEW_ACTIVATIONS };
            let rtos = Rtos::new(0, SHORT_PERIOD_US, activations);
            points.push(its.beside(
                policy,
                &Linux::BusyHackbench,
                Rtos { jitter_percent: 10, ..rtos },
            ));
        }
    }
    if !quick {
        points.extend(with_the_module(paper));
    }
    points
}

/// Returns the points of stock Linux with a module by which it yields, or its scheduler is informed; and
/// those by which thresholds are compared, and yielding always. `all`: there is room for all of them.
fn with_the_module(all: bool) -> Vec<Point> {
    let named = |name: &str| Policy::named(name).expect("a policy of the table");
    let stock = |column| Technique { kernel: Kernel::Stock, column, when: None };
    let mut points = Vec::new();
    for load in INFORMED_LOADS {
        let thoroughly = all || FEW_LOADS.contains(&load);
        for column in [Column::Informed, Column::InformedStolen] {
            points.push(stock(column).point(named(ON_DEMAND), load));
        }
        if thoroughly {
            points.push(stock(Column::InformedStolen).point(named(NONE), load));
            let others = [Column::CassataYield, Column::Wfe];
            points.extend(others.map(|column| stock(column).point(named(ON_DEMAND), load)));
        }
    }
    if !all {
        let papers = [Column::Paper, Column::PaperYield];
        points.extend(papers.map(|column| stock(column).point(named(FIXED), FEW_LOADS[0])));
    }
    let always = [Kernel::Own, Kernel::Stock].map(|kernel| (kernel, When::Always));
    let loops = LOOPS_SWEPT.map(|count| (Kernel::Own, When::Loops(count)));
    let looks = LOOKS_SWEPT.map(|count| (Kernel::Stock, When::Looks(count)));
    let looks = looks.into_iter().filter(|_| all);
    for (kernel, when) in always.into_iter().chain(loops).chain(looks) {
        let its = Technique { kernel, column: Column::PaperYield, when: Some(when) };
        points.push(its.point(named(FIXED), FEW_LOADS[0]));
    }
    points
}

/// What Linux does where its time is taken.
const HACKBENCH: Linux = Linux::Hackbench { loops: LOOPS, runs: RUNS };

impl Technique {
    /// Returns a point with so much load.
    fn point(self, policy: Policy, load: u32) -> Point {
        self.beside(policy, &HACKBENCH, Rtos::new(load, PERIOD_US, 0))
    }

    fn beside(self, policy: Policy, linux: &Linux, rtos: Rtos) -> Point {
        let advance_us = self.column.is_papers().then_some(0);
        let stage = Stage::shared(policy);
        let point =
            Point::new(Experiment::Technique, linux, stage, Some(Rtos { advance_us, ..rtos }));
        Point { technique: Some(self), ..point }
    }
}

/// Returns all policies in all columns that they have; coarsely, those of PECCS and no column of ours.
fn compared(coarsely: bool) -> Vec<(Kernel, Column, Policy)> {
    let mut all = Vec::new();
    for kernel in Kernel::ALL {
        for row in ROWS
            .iter()
            .filter(|row| !coarsely || ![NONE, PAGE, LAZY].map(Some).contains(&row.policies[0]))
        {
            // Of the rest, stock Linux has what [`with_the_module`] says.
            for (column, name) in Column::ALL.into_iter().zip(row.policies).take(3) {
                let wanted = !coarsely || kernel == Kernel::Own && column.is_papers();
                let policy = name.filter(|name| wanted && kernel.has(name)).and_then(Policy::named);
                all.extend(policy.map(|policy| (kernel, column, policy)));
            }
        }
    }
    all
}

impl Lhp {
    fn techniques(&self, kernel: Kernel) -> impl Iterator<Item = (&Measurement, Column)> {
        let own = move |m: &'_ Measurement| {
            m.point.technique.filter(|its| its.kernel == kernel && its.when.is_none())
        };
        self.of(Experiment::Technique).filter_map(move |m| Some((m, own(m)?.column)))
    }

    /// Returns those that yield at other moments than they would otherwise.
    fn at_other_moments(&self) -> impl Iterator<Item = (&Measurement, Kernel, When)> {
        let when =
            |m: &Measurement| m.point.technique.and_then(|its| Some((its.kernel, its.when?)));
        self.of(Experiment::Technique)
            .filter_map(move |m| when(m).map(|(kernel, when)| (m, kernel, when)))
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
            let mut all = Dataset::of("techniques", &title, rows.iter().copied())
                .name("technique", |(row, load)| format!("{}, f = {}", row.name, share(*load)))
                .head("")
                .name("ideal", |(_, load)| line(*load));
            let is_known = |(place, column): &(usize, Column)| {
                rows.iter().any(|(row, load)| {
                    let policy = row.policies[*place];
                    policy.is_some_and(|policy| {
                        self.technique(kernel, *column, policy, *load).is_some()
                    })
                })
            };
            for (place, column) in Column::ALL.into_iter().enumerate().filter(is_known) {
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
        for (place, column) in Column::ALL.into_iter().enumerate().take(3) {
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
        if self.at_other_moments().next().is_some() {
            tables.push(self.moments_data().table().titled_markdown());
        }
        tables.push(self.technique_checks_text());
        tables.join("\n")
    }

    /// When a vCPU that spins yields, beside the default of either kernel.
    pub(super) fn moments_data(&self) -> Dataset {
        let by_default = Kernel::ALL.into_iter().flat_map(|kernel| {
            let all = self.techniques(kernel).filter(|(m, column)| {
                let at = m.point.rtos.is_some_and(|rtos| rtos.load_permille == FEW_LOADS[0]);
                let fixed = m.point.stage.name() == FIXED && m.point.linux != Linux::BusyHackbench;
                at && fixed && column.is_papers()
            });
            all.map(move |(m, column)| {
                (m, kernel, if column.yields() { "by default".into() } else { "never".into() })
            })
        });
        let others = self.at_other_moments().map(|(m, kernel, when)| (m, kernel, when.name()));
        let title = format!(
            "hackbench beside the RTOS at f = {}, on-demand as in the papers, by when Linux yields",
            share(FEW_LOADS[0])
        );
        Dataset::of("yields", &title, by_default.chain(others))
            .name("kernel", |(_, kernel, _)| kernel.name())
            .name("yields", |(.., when): &(_, _, String)| when.clone())
            .column("mean", Unit::Milliseconds, |(m, ..)| 1e3 * m.runs.steady().mean())
            .digits(1)
            .name("yielded", |(m, ..)| m.locks.as_ref().map(|locks| locks.yielded))
            .done()
    }

    /// hackbench with a kernel, a curve for each technique in each column.
    pub(super) fn technique_plots(&self) -> Vec<(&'static str, &'static str, Plot)> {
        let with_points = |kernel: &Kernel| self.techniques(*kernel).next().is_some();
        let plot = |kernel: Kernel| {
            let columns = || Column::ALL.into_iter().enumerate();
            let curves = ROWS.iter().flat_map(|row| {
                columns()
                    .filter_map(move |(place, column)| Some((row, column, row.policies[place]?)))
            });
            let spots = curves.flat_map(|(row, column, policy)| {
                LOADS.into_iter().filter_map(move |load| {
                    let mean = self.technique(kernel, column, policy, load)?.mean();
                    Some((format!("{}: {}", row.name, column.head()), load, mean))
                })
            });
            let data = Dataset::of("curves", "", spots)
                .name("technique", |(name, ..): &(String, _, _)| name.clone())
                .name("f", |(_, load, _)| share(*load))
                .head("f, the share of core 0 that the RTOS burns")
                .column("hackbench", Unit::Milliseconds, |(.., mean)| 1e3 * mean)
                .digits(1)
                .done();
            (kernel.name(), kernel.about(), Plot::lines(&data, "f", "hackbench_ms").by("technique"))
        };
        Kernel::ALL.into_iter().filter(with_points).map(plot).collect()
    }

    /// Returns how the statements of the papers came out, a line each.
    fn technique_checks_text(&self) -> String {
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
    use super::super::tests::only;
    use super::*;
    use crate::guests::Locks;

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
        let technique = |column| Technique { kernel: Kernel::Own, column, when: None };
        let said = |preemption: &str, yields: &str| {
            let locks = Locks {
                preemption: Some(preemption.into()),
                yields: yields.into(),
                ..Locks::default()
            };
            LinuxProgress { locks: Some(locks), ..LinuxProgress::default() }
        };
        let paper = technique(Column::Paper);
        let nothing = LinuxProgress::default();
        assert_eq!(paper.objection(FIXED, &nothing), None);
        assert_eq!(paper.objection(PEEK, &nothing), None, "it need not know");
        assert_eq!(paper.objection(CALL, &said("call", "none")), None);
        assert!(paper.objection(CALL, &said("none", "none")).is_some());
        assert!(paper.objection(PAGE, &nothing).is_some());
        let yields = technique(Column::PaperYield);
        assert_eq!(yields.objection(FIXED, &said("none", "overcommitted")), None);
        assert!(yields.objection(FIXED, &said("none", "none")).is_some());
        let informed = technique(Column::Informed);
        let told =
            |capacity_changes| LinuxProgress { capacity_changes, ..LinuxProgress::default() };
        assert_eq!(informed.objection(ON_DEMAND, &told(Some(1))), None);
        assert!(informed.objection(ON_DEMAND, &told(Some(0))).is_some());
        assert!(informed.objection(ON_DEMAND, &nothing).is_some());
    }
}
