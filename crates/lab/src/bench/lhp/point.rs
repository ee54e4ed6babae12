//! One run of a machine: a point of some figure.

use super::plan::has_other_period;
use super::policy::Policy;
use super::run;
use super::technique::{Kernel, Technique};
use crate::bench::vtime::case::Work;
use serde::{Deserialize, Serialize};
use vtime::options::Options;

/// Thousandths in a whole, as FreeRTOS's `load=` counts.
pub const WHOLE: u32 = 1_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    pub experiment: Experiment,
    pub linux: Linux,
    pub stage: Stage,
    /// What the RTOS does, if there is one.
    pub rtos: Option<Rtos>,
    /// True if interrupt priorities separate the RTOS's from Linux's.
    pub separation: bool,
    /// What Linux's random numbers begin with: another one is another history. From 1.
    pub seed: u32,
    /// How a technique of the papers is run; none: stock Linux, and all that a description has where
    /// it says nothing.
    #[serde(default)]
    pub technique: Option<Technique>,
}

impl Point {
    /// Returns a point with separation, and the first seed.
    pub fn new(experiment: Experiment, linux: &Linux, stage: Stage, rtos: Option<Rtos>) -> Self {
        let (linux, separation, seed, technique) = (linux.clone(), true, 1, None);
        Self { experiment, linux, stage, rtos, separation, seed, technique }
    }

    /// Returns true if it runs the kernel with the port.
    pub fn is_ported(&self) -> bool {
        self.technique.is_some_and(|technique| technique.kernel == Kernel::Own)
    }

    /// Returns true if a guest's WFE traps.
    pub fn traps_wfe(&self) -> bool {
        self.technique.is_some_and(|technique| technique.column.traps_wfe())
    }

    /// Returns true if a part of Linux is built.
    pub fn builds(&self) -> bool {
        matches!(self.linux, Linux::Builds { .. })
    }
}

/// Returns what a real-time process of Linux's is beside.
pub const fn beside(hackbench: bool) -> &'static str {
    if hackbench { "hackbench" } else { "idle" }
}

/// What is to be found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Experiment {
    /// How fast Linux is.
    Throughput,
    /// How fast it is beside an RTOS whose releases jitter.
    ThroughputJitter,
    /// How late the RTOS is.
    Latency,
    /// What a migration costs.
    Migration,
    /// What Linux loses to the hypervisor.
    Overhead,
    /// Where Linux's kernel spins.
    Spinning,
    /// True if Linux's kernel runs on the RTOS's core.
    Kernel,
    /// How the papers' techniques compare: how fast Linux is, or how late the RTOS.
    Technique,
    /// How late a real-time process of Linux's is, which may be more urgent than the RTOS.
    Realtime,
}

impl Experiment {
    /// Returns true if Linux must say where its functions are.
    pub fn needs_symbols(self) -> bool {
        matches!(self, Self::Spinning | Self::Kernel)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Linux {
    /// There is none.
    Absent,
    /// Runs of `hackbench -g 1 -l LOOPS`, then it switches off.
    Hackbench {
        /// Messages of each sender to each receiver.
        loops: u32,
        runs: u32,
    },
    /// Hackbench until the machine ends.
    BusyHackbench,
    /// The first vCPU writes to a file until the machine ends.
    BusyWrite,
    /// The same work on every vCPU, timed; then it switches off.
    Timed { work: Work, count: u32, runs: u32 },
    /// Builds of a part of Linux; then it switches off.
    Builds { runs: u32 },
    /// A real-time process on the first vCPU wakes so often, beside hackbench on the others or beside
    /// nothing; then it switches off.
    Realtime { wakes: u32, hackbench: bool, rank: Rank },
}

/// Where Linux's first vCPU stands, on which its real-time process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rank {
    /// Below the RTOS.
    Below,
    /// Above the RTOS.
    Above,
    /// Below the RTOS; it could be marked, and is not.
    Unmarked,
    /// Below the RTOS, and above it while it is marked: as long as the process lives.
    Marked,
}

impl Rank {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Below => "below",
            Self::Above => "above",
            Self::Unmarked => "unmarked",
            Self::Marked => "marked",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The one guest on the bare board, without hypervisor: Linux on four cores, or the RTOS.
    Native,
    /// Linux under Cassata, alone.
    Alone { cores: u32 },
    /// Linux and the RTOS on four cores.
    Shared { policy: String },
}

/// What the RTOS does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rtos {
    /// What it burns of its period, in thousandths.
    pub load_permille: u32,
    /// The period, and its tick, in microseconds.
    pub period_us: u32,
    /// Activations until it switches itself off; 0: never.
    pub activations: u32,
    /// How much of a period a release comes early or late at most, percent.
    pub jitter_percent: u32,
    /// What wakes it.
    pub wake: Wake,
    /// Timer advance, microseconds; none: what the description has where it says nothing.
    pub advance_us: Option<u32>,
}

impl Rtos {
    /// Returns one that is released exactly at each period, with the default timer advance.
    pub const fn new(load_permille: u32, period_us: u32, activations: u32) -> Self {
        let (jitter_percent, wake) = (0, Wake::Timer);
        Self { load_permille, period_us, activations, jitter_percent, wake, advance_us: None }
    }

    /// Returns the period, the load if there is any, and the timer advance, such as `97us-advance0` or
    /// `997us-f5-advance0`; on the bare board there is none. Or else what wakes it.
    fn name(self) -> String {
        if self.wake != Wake::Timer {
            return self.wake.name().into();
        }
        let advance = self.advance_us.map(|us| format!("-advance{us}")).unwrap_or_default();
        let load = match self.load_permille * 10 / WHOLE {
            0 => String::new(),
            tenths => format!("-f{tenths}"),
        };
        format!("{}us{load}{advance}", self.period_us)
    }
}

/// What wakes the RTOS. All but its timer comes at random times, with the period as their mean,
/// from a second core of its own, and no clock foretells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wake {
    Timer,
    /// An interrupt that the other core sends.
    Sgi,
    /// An interrupt of the board's real-time clock, which is passed through to it.
    Device,
    /// The grant of a mutex of the hypervisor.
    Grant,
}

impl Wake {
    /// All that no clock foretells.
    pub const UNFORESEEN: [Self; 3] = [Self::Sgi, Self::Device, Self::Grant];

    /// Returns what the RTOS is told.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timer => "timer",
            Self::Sgi => "sgi",
            Self::Device => "rtc",
            Self::Grant => "grant",
        }
    }

    /// Returns it for people.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Timer => "timer",
            Self::Sgi => "interrupt of another core",
            Self::Device => "interrupt of a device",
            Self::Grant => "grant of a mutex",
        }
    }

    /// Returns true if the bare board has it too.
    pub const fn is_on_the_bare_board(self) -> bool {
        !matches!(self, Self::Grant)
    }

    /// Returns how far one core may run ahead of another, nanoseconds: what one core does to
    /// another that runs is exact to so much. A timer's interrupt does not depend on it. Cores
    /// that take turns more often take the host longer.
    pub const fn quantum_ns(self) -> u64 {
        match self {
            Self::Timer => Options::DEFAULT_QUANTUM_NS,
            Self::Sgi | Self::Device | Self::Grant => 250,
        }
    }
}

impl Stage {
    /// Linux beside the RTOS under `policy`.
    pub fn shared(policy: Policy) -> Self {
        Self::Shared { policy: policy.name.into() }
    }

    /// The policy, if there is something to decide.
    pub fn policy(&self) -> Option<Policy> {
        match self {
            Self::Shared { policy } => Policy::named(policy),
            Self::Native | Self::Alone { .. } => None,
        }
    }

    pub fn name(&self) -> String {
        match self {
            Self::Native => "native".into(),
            Self::Alone { cores } => format!("alone-{cores}"),
            Self::Shared { policy } => policy.clone(),
        }
    }
}

impl Linux {
    fn name(&self) -> String {
        match self {
            Self::Absent => "absent".into(),
            Self::Hackbench { loops, runs } => format!("l{loops}-x{runs}"),
            Self::BusyHackbench => "hackbench".into(),
            Self::BusyWrite => "write".into(),
            Self::Timed { work, count, runs } => format!("{}-{count}-x{runs}", work.name()),
            Self::Builds { runs } => format!("kbuild-x{runs}"),
            Self::Realtime { wakes, hackbench, rank } => {
                format!("{}-{}-{wakes}", rank.name(), beside(*hackbench))
            }
        }
    }
}

/// Seconds that a machine takes until Linux has booted and the RTOS has begun, one
/// of two side by side; these and the next are fitted to points that were
/// measured ("How long it takes" in the book's chapter).
const BOOT_S: f64 = 14.0;
/// Seconds of a run of hackbench with 100 loops.
const HACKBENCH_S: f64 = 5.9;
/// Both with the kernel with the port, which is smaller and does less: fitted to one run of all
/// its points, 910 s for 69 of them.
const PORTED_BOOT_S: f64 = 7.0;
const PORTED_HACKBENCH_S: f64 = 2.0;
/// How many times that with a policy that migrates whenever a program calls its
/// kernel.
const EACH_CALL: f64 = 2.4;
/// Seconds of a second of virtual time under endless hackbench, and under
/// endless writes, which keep one core busy.
const BUSY_S: [f64; 2] = [75.0, 14.0];

/// How many times that with a core more, and a short quantum.
const FINELY: f64 = 3.0;
/// Seconds of a build of a part of Linux.
const BUILD_S: f64 = 200.0;
/// How often Linux's real-time process wakes in a second of virtual time, roughly.
const WAKES_EACH_S: f64 = 1_000.0;
/// Seconds of a second of virtual time with the RTOS beside a Linux that sleeps mostly.
const RTOS_BESIDE_S: f64 = 10.0;
/// Seconds of a second of virtual time with the RTOS alone on the bare board.
const RTOS_ALONE_S: f64 = 2.0;

/// Seconds of a run of timed work.
fn timed_s(work: Work, count: u32) -> f64 {
    // 8 s for what `plan` asks for: a KiB hashed, a call, a fork.
    let each = match work {
        Work::Cpu => 1e-3,
        Work::Calls => 1e-4,
        Work::Forks => 0.1,
    };
    each * f64::from(count)
}

impl crate::bench::store::Case for Point {
    /// Seconds on a computer with two machines side by side, roughly.
    fn work(&self) -> f64 {
        let machines = match self.experiment {
            Experiment::Spinning => 3.0,
            Experiment::Kernel => 2.0,
            _ => 1.0,
        };
        let rtos_s = self
            .rtos
            .map_or(0.0, |rtos| f64::from(rtos.activations) * f64::from(rtos.period_us) / 1e6);
        let each_call = self.stage.policy().is_some_and(|policy| policy.moves_each_call);
        let slower = if each_call { EACH_CALL } else { 1.0 };
        let finely = self.rtos.is_some_and(|rtos| rtos.wake != Wake::Timer);
        let slower = slower * if finely { FINELY } else { 1.0 };
        let (boot_s, hackbench_s) = if self.is_ported() {
            (PORTED_BOOT_S, PORTED_HACKBENCH_S)
        } else {
            (BOOT_S, HACKBENCH_S)
        };
        let load = match &self.linux {
            Linux::Absent => RTOS_ALONE_S * rtos_s,
            Linux::Hackbench { loops, runs } => {
                slower * hackbench_s * f64::from(*loops) / 100.0 * f64::from(*runs)
            }
            Linux::BusyHackbench => slower * BUSY_S[0] * rtos_s,
            Linux::BusyWrite => slower * BUSY_S[1] * rtos_s,
            Linux::Timed { work, count, runs } => timed_s(*work, *count) * f64::from(*runs),
            Linux::Builds { runs } => BUILD_S * f64::from(*runs),
            Linux::Realtime { wakes, hackbench, .. } => {
                let each_s = if *hackbench { BUSY_S[0] } else { RTOS_BESIDE_S };
                each_s * f64::from(*wakes) / WAKES_EACH_S
            }
        };
        machines * (boot_s + load)
    }

    fn config_text(&self) -> String {
        run::config_text(self)
    }

    /// Such as `throughput-on-demand-f5-l100-x5-seed2`,
    /// `latency-none-write-97us-advance4-together-20000`, `latency-native-97us-100000`.
    fn name(&self) -> String {
        let (stage, linux) = (self.stage.name(), self.linux.name());
        let seed = if self.seed == 1 { String::new() } else { format!("-seed{}", self.seed) };
        let linux = linux + &seed;
        let load = self.rtos.map_or(0, |rtos| rtos.load_permille * 10 / WHOLE);
        let activations = self.rtos.map_or(0, |rtos| rtos.activations);
        let separation = if self.separation { "apart" } else { "together" };
        let what = self.rtos.map(Rtos::name).unwrap_or_default();
        match (self.experiment, &self.stage) {
            (Experiment::Throughput, Stage::Shared { .. }) => {
                let period = self.rtos.filter(|_| has_other_period(self));
                let period = period.map(|rtos| format!("{}us-", rtos.period_us));
                format!("throughput-{stage}-f{load}-{}{linux}", period.unwrap_or_default())
            }
            (Experiment::ThroughputJitter, _) => {
                format!("throughput-jitter-{stage}-f{load}-{linux}")
            }
            (Experiment::Throughput, _) => format!("throughput-{stage}-{linux}"),
            (Experiment::Latency, Stage::Native) => format!("latency-native-{what}-{activations}"),
            (Experiment::Latency, _) => {
                format!("latency-{stage}-{linux}-{what}-{separation}-{activations}")
            }
            (Experiment::Migration, _) => format!("migration-{stage}-{linux}-{activations}"),
            (Experiment::Overhead, _) => format!("overhead-{stage}-{linux}"),
            (Experiment::Spinning, _) => format!("spinning-{stage}-f{load}-{linux}"),
            (Experiment::Kernel, _) => format!("kernel-{stage}-f{load}-{linux}"),
            (Experiment::Realtime, _) => format!("realtime-{stage}-{linux}"),
            (Experiment::Technique, _) => {
                let how = self.technique.map(Technique::name).unwrap_or_default();
                match (&self.stage, &self.linux) {
                    (Stage::Shared { .. }, Linux::BusyHackbench) => {
                        format!("technique-{how}-{stage}-{linux}-{what}-{activations}")
                    }
                    (Stage::Shared { .. }, _) => format!("technique-{how}-{stage}-f{load}-{linux}"),
                    _ => format!("technique-{how}-{stage}-{linux}"),
                }
            }
        }
    }
}
