//! One run of a machine.

use crate::guests::Images;
use crate::machine::{MachineConfig, Time, VirtualTime};
use crate::suite::Bench;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::Path;
use vtime::options::Options;

/// Memory of the machine, bytes.
const MEMORY: u64 = 512 << 20;

/// What runs on the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "guest")]
pub enum Guest {
    /// Linux boots to user space and switches off.
    Boot,
    /// Linux runs `hackbench -g 1 -l 100` so many times.
    Hackbench { runs: u32 },
    /// Linux runs cyclictest on every core.
    Cyclictest {
        /// Wake-ups per core, one each millisecond.
        loops: u32,
    },
    /// Linux does the same amount of work on every core, several times.
    Work {
        work: Work,
        /// How much of it on each core, each time.
        count: u32,
        runs: u32,
    },
    /// Linux builds a part of Linux, so many times.
    Builds { runs: u32 },
    Metronome {
        /// Interrupts per core and phase.
        interrupts: u32,
    },
}

/// A kind of work that Linux is timed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// In user space: `sha256sum` of so many KiB.
    Cpu,
    /// So many `read`s and `write`s of one byte.
    Calls,
    /// So many processes, each of which is forked, executes a program, and
    /// ends.
    Forks,
}

/// How cores share time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// In virtual time, one core after the other, in a fixed order.
    Turns,
    /// In virtual time, all at once.
    Parallel,
    /// In the host's time, without the instrument.
    Plain,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    #[serde(flatten)]
    pub guest: Guest,
    pub cores: u32,
    pub mode: Mode,
    /// How far one may run ahead of the others, nanoseconds.
    pub quantum_ns: u64,
    /// While other work keeps every processor of the host busy.
    pub busy_host: bool,
    /// Which of several runs of the same, from 1.
    pub repetition: u32,
}

impl Case {
    /// The first run with the instrument as it is meant to be used, on a host
    /// that is left alone.
    pub fn new(guest: Guest, cores: u32) -> Self {
        let quantum_ns = Options::DEFAULT_QUANTUM_NS;
        Self { guest, cores, mode: Mode::Turns, quantum_ns, busy_host: false, repetition: 1 }
    }

    /// Returns true if `other` is a run of the same.
    pub fn repeats(&self, other: &Self) -> bool {
        *self == Self { repetition: self.repetition, ..*other }
    }

    /// The machine, whose instrument counts into a file in `directory`.
    ///
    /// # Errors
    /// When this QEMU cannot carry the instrument.
    pub fn machine(&self, bench: &Bench, directory: &Path) -> miette::Result<MachineConfig> {
        let instrumented = || -> miette::Result<VirtualTime> {
            let time = VirtualTime::new(&bench.instrument, &bench.qemu, directory)?;
            Ok(time.with_quantum(self.quantum_ns))
        };
        let images = Images::of(&bench.root);
        let image = match self.guest {
            Guest::Metronome { .. } => &images.metronome,
            _ => &images.kernel,
        };
        let mut config = MachineConfig::new(image, self.cores, MEMORY);
        config.el2 = false;
        config.time = match self.mode {
            Mode::Turns => Time::Virtual(instrumented()?),
            Mode::Parallel => Time::Virtual(instrumented()?.in_parallel()),
            Mode::Plain => Time::Real,
        };
        config.extra_args = self.guest.arguments(&images);
        Ok(config)
    }
}

impl crate::bench::store::Case for Case {
    fn config_text(&self) -> String {
        format!("{:?}", self.guest.arguments(&Images::of(Path::new(""))))
    }

    /// Such as `hackbench-x10-4-parallel-2000ns-busy-1`.
    fn name(&self) -> String {
        let guest = match self.guest {
            Guest::Boot => "boot".into(),
            Guest::Hackbench { runs } => format!("hackbench-x{runs}"),
            Guest::Cyclictest { loops } => format!("cyclictest-x{loops}"),
            Guest::Work { work, count, runs } => format!("{}-{count}-x{runs}", work.name()),
            Guest::Builds { runs } => format!("kbuild-x{runs}"),
            Guest::Metronome { interrupts } => format!("metronome-x{interrupts}"),
        };
        let mode = match self.mode {
            Mode::Turns => format!("turns-{}ns", self.quantum_ns),
            Mode::Parallel => format!("parallel-{}ns", self.quantum_ns),
            Mode::Plain => "plain".into(),
        };
        let busy = if self.busy_host { "-busy" } else { "" };
        format!("{guest}-{}-{mode}{busy}-{}", self.cores, self.repetition)
    }
}

impl Guest {
    /// Hackbench in the shortest way to a steady run: one to warm up, one that
    /// counts.
    pub const ONE_STEADY_RUN: Self = Self::Hackbench { runs: 2 };

    /// Returns true if there are runs of hackbench to compare within one boot, the
    /// first, which warms up, left out.
    pub fn several_steady_runs(self) -> bool {
        matches!(self, Self::Hackbench { runs } if runs > 2)
    }

    /// What QEMU must be told besides the image.
    fn arguments(&self, images: &Images) -> Vec<OsString> {
        let linux = |what: &str| -> Vec<OsString> {
            let append = format!("console=ttyAMA0 quiet {what}");
            let builds = matches!(self, Self::Builds { .. });
            let initramfs = if builds { &images.kbuild } else { &images.initramfs };
            let initramfs = initramfs.clone().into();
            vec!["-initrd".into(), initramfs, "-append".into(), append.into()]
        };
        match self {
            Self::Boot => linux("cassata.run=demo cassata.repeat=0"),
            Self::Hackbench { runs } => linux(&format!(
                "cassata.run=demo cassata.hackbench=\"-g 1 -l 100\" cassata.repeat={runs}"
            )),
            Self::Cyclictest { loops } => linux(&format!(
                "cassata.run=cyclictest \
                 cassata.cyclictest=\"-q -m -S -p 80 -i 1000 -l {loops} -h 1000\""
            )),
            Self::Work { work, count, runs } => {
                linux(&format!("nokaslr {}", work.options(*count, *runs)))
            }
            Self::Builds { runs } => linux(&format!("nokaslr {}", build_options(*runs))),
            Self::Metronome { interrupts } => {
                let count = format!("loader,addr=0x48000000,data={interrupts},data-len=8");
                vec!["-device".into(), count.into()]
            }
        }
    }
}

/// What of Linux is built: a whole kernel would take days.
pub const BUILT: &str = "kernel/locking/";

/// Linux's command line for so many builds of that. Its root is no tmpfs, which would hold half of
/// its memory at most: the source and the compiler are more.
pub fn build_options(runs: u32) -> String {
    format!("rootfstype=ramfs cassata.run=kbuild cassata.kbuild=\"{BUILT}\" cassata.repeat={runs}")
}

impl Work {
    pub const ALL: [Self; 3] = [Self::Cpu, Self::Calls, Self::Forks];

    /// Returns the name in short, as the guest knows it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Calls => "calls",
            Self::Forks => "forks",
        }
    }

    /// Linux's command line for `runs` runs of `count` on each core.
    pub fn options(self, count: u32, runs: u32) -> String {
        let name = self.name();
        format!("cassata.run=work cassata.work={name} cassata.count={count} cassata.repeat={runs}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::store::Case as _;

    #[test]
    fn names_tell_cases_apart() {
        let first = Case::new(Guest::Hackbench { runs: 10 }, 4);
        assert_eq!(first.name(), "hackbench-x10-4-turns-2000ns-1");
        let others = [
            Case { cores: 2, ..first },
            Case { mode: Mode::Parallel, ..first },
            Case { mode: Mode::Plain, ..first },
            Case { quantum_ns: 500, ..first },
            Case { busy_host: true, ..first },
            Case { repetition: 2, ..first },
            Case { guest: Guest::Boot, ..first },
            Case { guest: Guest::Hackbench { runs: 4 }, ..first },
        ];
        assert!(others.iter().all(|other| other.name() != first.name()));
        let repeating: Vec<_> = others.iter().filter(|other| other.repeats(&first)).collect();
        assert_eq!(repeating, [&Case { repetition: 2, ..first }]);
    }
}
