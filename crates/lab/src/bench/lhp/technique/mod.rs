//! The papers' techniques as they have them, the same with yields, and what stands for them here.
//!
//! | module | story |
//! | --- | --- |
//! | [`mod@points`] | which are measured, and how |
//! | [`checks`] | what the papers say of them |
//! | [`tables`] | what the page and the book show |

mod checks;
mod points;
mod tables;

pub use points::points;

use super::Lhp;
use super::point::{Experiment, Linux, Point, Stage};
use super::policy::NONE;
use super::run::Measurement;
use crate::bench::sample::Sample;
use crate::observe::Distribution;
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

/// How many columns, from the first on, every technique may have. Of the rest, only stock Linux has some
/// (`points::with_the_module`).
const COLUMNS_EVERYWHERE: usize = 3;

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
/// Loads at which a scheduler is informed, thousandths, and those for which there is room.
const INFORMED_LOADS: [u32; 3] = [300, 500, 800];
const FEW_INFORMED_LOADS: [u32; 2] = [500, 800];
impl Technique {
    /// Returns true if hackbench's time with this technique under this policy is taken at `point`.
    fn is_timed_at(self, point: &Point, policy: &str, load: u32) -> bool {
        let at = point.rtos.is_some_and(|rtos| rtos.load_permille == load);
        self.is_at(point, policy) && at && point.linux != Linux::BusyHackbench
    }

    /// Returns true if the RTOS's latency with it is.
    fn is_late_at(self, point: &Point, policy: &str) -> bool {
        self.is_at(point, policy) && point.linux == Linux::BusyHackbench
    }

    fn is_at(self, point: &Point, policy: &str) -> bool {
        let stage = Stage::Shared { policy: policy.into() };
        point.technique == Some(self) && point.stage == stage
    }
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
        let its = Technique { kernel, column, when: None };
        let here = |m: &&Measurement| its.is_timed_at(&m.point, policy, load);
        Some(self.of(Experiment::Technique).find(here)?.runs.steady())
    }

    /// Returns dispatch latencies under a policy.
    fn technique_late(&self, column: Column, policy: &str) -> Option<&Distribution> {
        let its = Technique { kernel: Kernel::Own, column, when: None };
        let here = |m: &&Measurement| its.is_late_at(&m.point, policy);
        Some(&self.of(Experiment::Technique).find(here)?.rtos.as_ref()?.dispatch)
    }

    /// Returns the mean time of hackbench on so many cores of its own.
    fn technique_alone(&self, kernel: Kernel, cores: u32) -> Option<f64> {
        let here = |(m, _): &(&Measurement, Column)| m.point.stage == Stage::Alone { cores };
        Some(self.techniques(kernel).find(here)?.0.runs.steady().mean())
    }
}
