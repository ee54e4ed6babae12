//! One run: a hypervisor, and what is measured on it.

use super::guest::Guest;
use super::machine;
use super::system::System;
use super::waker::{Parameters, Role};
use super::{cyclictest, freertos};
use crate::bench::store;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The period of a guest whose latency is measured.
pub const PERIOD_US: u64 = 1_000;
/// The period of a guest that burns a part of its core.
pub const BURN_PERIOD_US: u64 = 10_000;
/// KiB that Linux hashes in one unit of the work that fills a core, and in one that is timed.
const FILLING_KIB: u32 = 1_024;
const TIMED_KIB: u32 = 4_096;

/// What Linux does meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    Idle,
    /// Every CPU computes in user space.
    Compute,
    Hackbench,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// How late the guest wakes.
    Wake { load: Load, periods: u32 },
    /// How late the guest is where its second core wakes it, at times that no clock foretells.
    Woken { load: Load, interrupts: u32 },
    /// What the guest's calls and traps take while Linux is idle.
    Call { repetitions: u32 },
    /// How long computing takes Linux, so many times, while the guest wakes each period, or never.
    Taken { is_awake: bool, runs: u32 },
    /// How long hackbench takes Linux, so many times, while the guest burns a part of each period;
    /// `None`: there is no guest.
    Hackbench { burn_percent: Option<u32>, runs: u32 },
    /// How late a task of FreeRTOS is.
    Freertos { load: Load, activations: u32 },
    /// How late a real-time process of Linux with PREEMPT_RT is.
    Cyclictest { load: Load, wakes: u32 },
    /// When both guests are up, and how large what starts them is.
    Boot,
}

/// One run of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    pub system: System,
    pub cores: u32,
    pub measure: Measure,
    /// Another Xen than Debian's, another kernel of KVM's host, or a checkout of Bao.
    pub image: Option<PathBuf>,
}

impl Load {
    pub const ALL: [Self; 3] = [Self::Idle, Self::Compute, Self::Hackbench];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Compute => "compute",
            Self::Hackbench => "hackbench",
        }
    }

    pub const fn words(self) -> &'static str {
        match self {
            Self::Idle => "nothing",
            Self::Compute => "computing",
            Self::Hackbench => "hackbench",
        }
    }

    /// Returns what Linux's init is told.
    fn options(self) -> String {
        match self {
            Self::Idle => "cassata.run=demo cassata.repeat=0 cassata.stay".into(),
            Self::Compute => timed(FILLING_KIB, 1_000_000),
            Self::Hackbench => "cassata.run=busy cassata.work=hackbench".into(),
        }
    }
}

fn timed(kib: u32, runs: u32) -> String {
    format!("cassata.run=work cassata.work=cpu cassata.count={kib} cassata.repeat={runs}")
}

impl Measure {
    /// Returns the row that a measurement of it is, however much of it there is: without its counts.
    pub const fn row(self) -> Self {
        match self {
            Self::Wake { load, .. } => Self::Wake { load, periods: 0 },
            Self::Woken { load, .. } => Self::Woken { load, interrupts: 0 },
            Self::Call { .. } => Self::Call { repetitions: 0 },
            Self::Taken { is_awake, .. } => Self::Taken { is_awake, runs: 0 },
            Self::Hackbench { burn_percent, .. } => Self::Hackbench { burn_percent, runs: 0 },
            Self::Freertos { load, .. } => Self::Freertos { load, activations: 0 },
            Self::Cyclictest { load, .. } => Self::Cyclictest { load, wakes: 0 },
            Self::Boot => Self::Boot,
        }
    }

    /// Returns what is measured, in words, and beside what.
    pub fn words(self) -> (&'static str, String) {
        let words = |load: Load| load.words().to_owned();
        match self {
            Self::Wake { load, .. } => ("wake-ups by timer", words(load)),
            Self::Woken { load, .. } => ("wake-ups by the second core", words(load)),
            Self::Call { .. } => ("calls", words(Load::Idle)),
            Self::Taken { is_awake: true, .. } => ("computing", "a guest that wakes".into()),
            Self::Taken { is_awake: false, .. } => ("computing", "a guest that sleeps".into()),
            Self::Hackbench { burn_percent: None, .. } => ("hackbench", "no guest".into()),
            Self::Hackbench { burn_percent: Some(percent), .. } => {
                ("hackbench", format!("a guest that burns {percent} %"))
            }
            Self::Freertos { load, .. } => ("FreeRTOS", words(load)),
            Self::Cyclictest { load, .. } => ("cyclictest", words(load)),
            Self::Boot => ("starts", words(Load::Idle)),
        }
    }

    /// Returns what Linux does beside a guest whose latency is measured.
    pub const fn load(self) -> Option<Load> {
        match self {
            Self::Wake { load, .. }
            | Self::Woken { load, .. }
            | Self::Freertos { load, .. }
            | Self::Cyclictest { load, .. } => Some(load),
            _ => None,
        }
    }
}

impl Case {
    pub const fn new(system: System, cores: u32, measure: Measure) -> Self {
        Self { system, cores, measure, image: None }
    }

    /// Returns what Linux does besides what it does for the hypervisor.
    pub fn linux_options(&self) -> String {
        match self.measure {
            // Linux must not say anything while the guest does: they write to one UART.
            Measure::Wake { load: Load::Compute, .. } if self.system == System::Bao => {
                format!("peers.compute {}", Load::Idle.options())
            }
            Measure::Wake { load, .. }
            | Measure::Woken { load, .. }
            | Measure::Freertos { load, .. }
            | Measure::Cyclictest { load, .. } => load.options(),
            Measure::Call { .. } | Measure::Boot => Load::Idle.options(),
            Measure::Taken { runs, .. } => timed(TIMED_KIB, runs),
            Measure::Hackbench { runs, .. } => {
                format!("cassata.run=demo cassata.hackbench=\"-g 1 -l 100\" cassata.repeat={runs}")
            }
        }
    }

    /// Returns the period of the guest, and what it executes in each.
    pub fn period_and_burn_us(&self) -> (u64, u64) {
        match self.measure {
            Measure::Hackbench { burn_percent, .. } => {
                let percent = u64::from(burn_percent.unwrap_or(0));
                (BURN_PERIOD_US, BURN_PERIOD_US * percent / 100)
            }
            Measure::Cyclictest { .. } => (cyclictest::PERIOD_US, 0),
            _ => (PERIOD_US, 0),
        }
    }

    /// Returns the guest, and what it is told; `None` where there is none.
    pub fn guest(&self) -> Option<Guest> {
        match self.measure {
            Measure::Freertos { activations, .. } => {
                Some(Guest::Freertos(freertos::told(self.system, activations)))
            }
            Measure::Cyclictest { wakes, .. } => {
                Some(Guest::Linux(cyclictest::told(self.system, wakes)))
            }
            _ => self.parameters().map(Guest::Waker),
        }
    }

    /// Returns what the waker is told; `None` where that is not the guest.
    fn parameters(&self) -> Option<Parameters> {
        let (period_us, burn_us) = self.period_and_burn_us();
        let wake = |periods| {
            let (period_ns, burn_ns) = (1_000 * period_us, 1_000 * burn_us);
            Role::Wake { period_ns, periods, burn_ns }
        };
        let begin_ms = machine::begin_ms(self.system);
        let (role, begin_ms) = match self.measure {
            Measure::Wake { periods, .. } => (wake(Some(periods.into())), begin_ms),
            Measure::Woken { interrupts, .. } => {
                let (mean_ns, interrupts) = (1_000 * period_us, interrupts.into());
                (Role::Woken { mean_ns, interrupts }, begin_ms)
            }
            Measure::Call { repetitions } => {
                (Role::Call { repetitions: repetitions.into() }, begin_ms)
            }
            Measure::Taken { is_awake: true, .. }
            | Measure::Hackbench { burn_percent: Some(_), .. } => (wake(None), machine::SOON_MS),
            Measure::Taken { is_awake: false, .. } => (wake(None), machine::NEVER_MS),
            Measure::Boot => (wake(Some(1)), machine::AT_ONCE_MS),
            Measure::Hackbench { burn_percent: None, .. }
            | Measure::Freertos { .. }
            | Measure::Cyclictest { .. } => return None,
        };
        Some(Parameters { system: self.system, role, begin_ns: 1_000_000 * begin_ms })
    }

    /// Returns true if Linux runs beside the guest, or alone.
    pub fn has_linux(&self) -> bool {
        self.system != System::Board || self.guest().is_none()
    }
}

impl store::Case for Case {
    /// Such as `wake-idle-500-1-kvm`.
    fn name(&self) -> String {
        let what = match self.measure {
            Measure::Wake { load, periods } => format!("wake-{}-{periods}", load.name()),
            Measure::Woken { load, interrupts } => format!("woken-{}-{interrupts}", load.name()),
            Measure::Call { repetitions } => format!("call-{repetitions}"),
            Measure::Taken { is_awake, runs } => {
                format!("taken-{}-x{runs}", if is_awake { "awake" } else { "asleep" })
            }
            Measure::Hackbench { burn_percent: Some(percent), runs } => {
                format!("hackbench-{percent}-x{runs}")
            }
            Measure::Hackbench { burn_percent: None, runs } => format!("hackbench-alone-x{runs}"),
            Measure::Freertos { load, activations } => {
                format!("freertos-{}-{activations}", load.name())
            }
            Measure::Cyclictest { load, wakes } => format!("cyclictest-{}-{wakes}", load.name()),
            Measure::Boot => "boot".into(),
        };
        format!("{what}-{}-{}", self.cores, self.system.name())
    }

    /// Seconds of an idle processor, about: four cores take as long as four machines.
    fn work(&self) -> f64 {
        let boot_s = match self.system {
            System::Board if !self.has_linux() => 0.1,
            System::Bao => 4.0,
            System::Cassata { .. } | System::Xen(_) => 2.5,
            System::Board | System::Kvm(_) => 1.5,
        };
        // The guest boots as well.
        let guest_s = if matches!(self.measure, Measure::Cyclictest { .. }) { 2.0 } else { 0.0 };
        let measured_s = match self.measure {
            Measure::Wake { periods, .. } => f64::from(periods) / 1_000.0,
            Measure::Woken { interrupts, .. } => f64::from(interrupts) / 1_000.0,
            Measure::Freertos { activations: times, .. }
            | Measure::Cyclictest { wakes: times, .. } => f64::from(times) / 1_000.0,
            Measure::Call { .. } | Measure::Boot => 0.1,
            Measure::Taken { runs, .. } => 0.4 * f64::from(runs),
            Measure::Hackbench { runs, .. } => 0.15 * f64::from(runs),
        };
        // Real seconds that a virtual one takes: more where cores wait for each other, and most where
        // they take short turns.
        let slowness = match (self.measure, self.cores) {
            (Measure::Woken { .. }, _) => 20.0,
            (_, 1) => 5.0,
            _ => 16.0,
        };
        slowness * (boot_s + guest_s + measured_s)
    }

    fn config_text(&self) -> String {
        machine::told(self)
    }
}
