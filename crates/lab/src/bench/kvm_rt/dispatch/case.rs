//! One run: which Linux `cyclictest` runs in, where that is, and what the other Linux does.

use super::super::program::Program;
use super::machine;
use crate::bench::{Extent, store};
use serde::{Deserialize, Serialize};

/// Wake-ups where nothing else runs, as time jumps from one to the next; the paper has 100,000.
const LONG: u32 = 10_000;
const PAPERS: u32 = 100_000;
/// Wake-ups beside a load, and with `--paper`.
const LOADED: u32 = 2_000;
const LOADED_PAPERS: u32 = 20_000;
/// Microseconds between two of them: the paper's; and where a load runs all the time, a prime near a tenth of it.
const PERIOD_US: u32 = 10_000;
const LOADED_PERIOD_US: u32 = 1_009;

/// The kernel of the Linux that is measured. The other one is always stock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// Debian's own.
    Stock,
    /// Debian's with PREEMPT_RT, which the paper has.
    Rt,
}

/// Where that Linux is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// On the board, without a hypervisor, alone: the paper's Figure 4.
    Board,
    /// A guest, equal to the other one, with a quantum: not tuned, Figure 5.
    Equal,
    /// A guest above the other one: Figure 6.
    Above,
    /// A guest with a core of its own: Figure 7.
    Pinned,
}

impl Kernel {
    pub const ALL: [Self; 2] = [Self::Stock, Self::Rt];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::Rt => "rt",
        }
    }

    pub const fn words(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::Rt => "PREEMPT_RT",
        }
    }
}

impl Place {
    pub const ALL: [Self; 4] = [Self::Board, Self::Equal, Self::Above, Self::Pinned];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Board => "board",
            Self::Equal => "equal",
            Self::Above => "above",
            Self::Pinned => "pinned",
        }
    }

    pub const fn words(self) -> &'static str {
        match self {
            Self::Board => "on the board",
            Self::Equal => "equal",
            Self::Above => "above",
            Self::Pinned => "core of its own",
        }
    }
}

/// What the other Linux does; it may also not be there, which is like sleep.
const LOADS: [Program; 3] = [Program::Idle, Program::Compute, Program::Hackbench];

/// Returns the time between two wake-ups beside a load.
pub fn period_us(load: Program) -> u32 {
    match load {
        Program::Idle => PERIOD_US,
        _ => LOADED_PERIOD_US,
    }
}

fn wakes(load: Program, extent: Extent) -> u32 {
    match (load, extent) {
        (Program::Idle, Extent::Paper) => PAPERS,
        (_, Extent::Paper) => LOADED_PAPERS,
        (Program::Idle, Extent::Full) => LONG,
        (_, Extent::Full) => LOADED,
        (Program::Idle, Extent::Quick) => LONG / 10,
        (_, Extent::Quick) => LOADED / 10,
    }
}

/// One run of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    pub kernel: Kernel,
    pub place: Place,
    pub load: Program,
    pub wakes: u32,
}

/// Returns all runs. On the board nothing else can run.
pub fn cases(extent: Extent) -> Vec<Case> {
    let mut all = Vec::new();
    for (kernel, place) in
        Kernel::ALL.into_iter().flat_map(|kernel| Place::ALL.map(|place| (kernel, place)))
    {
        let loads =
            LOADS.into_iter().filter(|&load| place != Place::Board || load == Program::Idle);
        all.extend(loads.map(|load| Case { kernel, place, load, wakes: wakes(load, extent) }));
    }
    all
}

impl store::Case for Case {
    /// Such as `dispatch-rt-above-hackbench-2000`.
    fn name(&self) -> String {
        let (kernel, place, load) = (self.kernel.name(), self.place.name(), self.load.name());
        format!("dispatch-{kernel}-{place}-{load}-{}", self.wakes)
    }

    /// Seconds of an idle processor, about: each boots, and loads run all the time.
    fn work(&self) -> f64 {
        let each = match self.load {
            Program::Idle => 0.001,
            Program::Hackbench => 0.03,
            _ => 0.01,
        };
        let boot = if self.place == Place::Board { 10.0 } else { 40.0 };
        boot + each * f64::from(self.wakes)
    }

    fn config_text(&self) -> String {
        machine::told(self)
    }
}
