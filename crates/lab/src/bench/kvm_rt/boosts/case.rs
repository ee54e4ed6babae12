//! One run: how the two guests of core 1 are ranked, and what the other one does.

use super::super::program::Program;
use super::machine;
use crate::bench::{Extent, store};
use crate::quantity::real;
use serde::{Deserialize, Serialize};

/// Counted runs of the other guest's program,
const RUNS: u32 = 12;
const QUICK_RUNS: u32 = 3;
/// and of one of the six, each of which takes longer.
const APPLICATION_RUNS: u32 = 6;
const QUICK_APPLICATION_RUNS: u32 = 2;

/// Seconds of an idle processor for a wake-up, about.
const WAKES_S: f64 = 0.003;

/// Wake-ups of the real-time process for each counted run of the program, at least,
const WAKES_A_RUN: u64 = 150;
/// and in all, where longest latencies are compared. Now and then one meets what its Linux does just then without being
/// interrupted, so of few it is by luck whether any does.
const COMPARED_WAKES: u64 = 5_000;

/// The guest with a real-time process and other work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Control {
    /// Stock Linux: `cyclictest` and `sha256sum`.
    Linux,
    /// FreeRTOS: its measured task, and its task that burns what is left.
    Freertos,
}

/// How the guest with the real-time process stands to the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tuning {
    /// Above it, and without any other work: what the other guest can have at most.
    Alone,
    /// Equal to it, with a quantum: not tuned.
    Equal,
    /// Above it: the paper's prioritisation.
    Above,
    /// Alone on its core: the paper's shielding.
    Pinned,
    /// Below it, but boosted as it says by calls: the paper's co-scheduling.
    Calls,
    /// Likewise, but it says it in its line.
    Line,
    /// Likewise, but it says nothing: after each interrupt.
    Interrupts,
    /// Above it as a real-time VM, which has a timer advance as a boost has: a control.
    Realtime,
    /// Boosted without a timer advance: a control of each way to say it.
    LateCalls,
    LateLine,
    LateInterrupts,
}

impl Control {
    pub const ALL: [Self; 2] = [Self::Linux, Self::Freertos];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Freertos => "freertos",
        }
    }

    pub const fn words(self) -> &'static str {
        match self {
            Self::Linux => "Linux",
            Self::Freertos => "FreeRTOS",
        }
    }

    /// Returns what is measured beside a program. The paper has the six programs with and
    /// without its co-scheduling only.
    const fn tunings(self, program: Program) -> &'static [Tuning] {
        use Tuning::{Above, Alone, Calls, Equal, Interrupts, Line, Pinned, Realtime};
        match (self, program) {
            (Self::Linux, Program::Idle) => &[],
            (_, Program::Compute) => &Tuning::ALL,
            (Self::Linux, Program::Hackbench) => {
                &[Alone, Equal, Above, Pinned, Calls, Line, Interrupts]
            }
            (Self::Linux, _) => &[Alone, Above, Calls, Line],
            (Self::Freertos, Program::Idle) => &[Equal, Above, Pinned],
            (Self::Freertos, Program::Hackbench | Program::Disk) => {
                &[Alone, Equal, Above, Pinned, Realtime, Calls, Line, Interrupts]
            }
            (Self::Freertos, _) => &[],
        }
    }
}

impl Tuning {
    pub const ALL: [Self; 11] = [
        Self::Alone,
        Self::Equal,
        Self::Above,
        Self::Pinned,
        Self::Realtime,
        Self::Calls,
        Self::Line,
        Self::Interrupts,
        Self::LateCalls,
        Self::LateLine,
        Self::LateInterrupts,
    ];
    /// Tunings by boosts, and each of them without a timer advance.
    pub const BOOSTED: [(Self, Self); 3] = [
        (Self::Calls, Self::LateCalls),
        (Self::Line, Self::LateLine),
        (Self::Interrupts, Self::LateInterrupts),
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Equal => "equal",
            Self::Above => "above",
            Self::Pinned => "pinned",
            Self::Calls => "calls",
            Self::Line => "line",
            Self::Interrupts => "interrupts",
            Self::Realtime => "realtime",
            Self::LateCalls => "late-calls",
            Self::LateLine => "late-line",
            Self::LateInterrupts => "late-interrupts",
        }
    }

    /// Returns true if its longest latency is compared with that of another one.
    pub const fn is_compared(self) -> bool {
        !matches!(self, Self::Alone | Self::Equal)
    }

    pub const fn words(self) -> &'static str {
        match self {
            Self::Alone => "above, no other work",
            Self::Equal => "equal",
            Self::Above => "above",
            Self::Pinned => "core of its own",
            Self::Calls => "boosted by calls",
            Self::Line => "boosted by its line",
            Self::Interrupts => "boosted by interrupts",
            Self::Realtime => "above, a real-time VM",
            Self::LateCalls => "boosted by calls, no timer advance",
            Self::LateLine => "boosted by its line, no timer advance",
            Self::LateInterrupts => "boosted by interrupts, no timer advance",
        }
    }
}

/// One run of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    pub control: Control,
    pub tuning: Tuning,
    pub program: Program,
    /// Counted runs of the program, and wake-ups of the real-time process, at least.
    pub runs: u32,
    pub wakes: u64,
}

impl Case {
    /// Returns one with as many wake-ups as so many runs have room for.
    pub const fn new(control: Control, tuning: Tuning, program: Program, runs: u32) -> Self {
        Self { control, tuning, program, runs, wakes: runs as u64 * WAKES_A_RUN }
    }
}

fn runs(program: Program, extent: Extent) -> u32 {
    match (program.is_application(), extent) {
        (false, Extent::Quick) => QUICK_RUNS,
        (false, _) => RUNS,
        (true, Extent::Quick) => QUICK_APPLICATION_RUNS,
        (true, _) => APPLICATION_RUNS,
    }
}

/// Returns all runs.
pub fn cases(extent: Extent) -> Vec<Case> {
    let mut all = Vec::new();
    let programs = || [Program::Idle].into_iter().chain(Program::TIMED);
    for (control, program) in
        Control::ALL.into_iter().flat_map(|one| programs().map(move |program| (one, program)))
    {
        let (tunings, runs) = (control.tunings(program).iter(), runs(program, extent));
        all.extend(tunings.map(|&tuning| {
            let case = Case::new(control, tuning, program, runs);
            let is_compared = extent != Extent::Quick && tuning.is_compared();
            let wakes = if is_compared { COMPARED_WAKES.max(case.wakes) } else { case.wakes };
            Case { wakes, ..case }
        }));
    }
    all
}

impl store::Case for Case {
    /// Such as `boosts-linux-calls-hackbench-12`.
    fn name(&self) -> String {
        let (control, tuning, program) =
            (self.control.name(), self.tuning.name(), self.program.name());
        format!("boosts-{control}-{tuning}-{program}-{}", self.runs)
    }

    /// Seconds of an idle processor, about: guests boot, and prioritisation makes runs long.
    fn work(&self) -> f64 {
        let boot = if self.control == Control::Linux { 60.0 } else { 40.0 };
        let each = if self.tuning == Tuning::Above { 6.0 } else { 2.0 };
        let longer = if self.program.is_application() { 3.0 } else { 1.0 };
        boot + longer * each * f64::from(self.runs) + real(self.wakes) * WAKES_S
    }

    fn config_text(&self) -> String {
        format!("{} {}", machine::told(self), self.wakes)
    }
}
