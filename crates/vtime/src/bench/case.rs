//! One run of QEMU.

use super::Sample;
use crate::metronome::{Report, ReportError};
use crate::options::Options;
use crate::stats::Statistics;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use thiserror::Error;

/// The guests.
#[derive(Clone, Debug)]
pub struct Images {
    /// `build/guests/linux/Image`.
    pub kernel: PathBuf,
    /// `build/guests/linux/initramfs.cpio.gz`.
    pub initramfs: PathBuf,
    /// `build/guests/metronome.elf`.
    pub metronome: PathBuf,
}

/// What runs on the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "guest")]
pub enum Guest {
    /// Linux boots to user space and switches off.
    Boot,
    /// Linux runs `hackbench -g 1 -l 100` so many times.
    Hackbench {
        /// How many.
        runs: u32,
    },
    /// Linux runs cyclictest on every core.
    Cyclictest {
        /// Wake-ups per core, one each millisecond.
        loops: u32,
    },
    /// The metronome.
    Metronome {
        /// Interrupts per core and phase.
        interrupts: u32,
    },
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// What runs.
    #[serde(flatten)]
    pub guest: Guest,
    /// On so many cores.
    pub cores: u32,
    /// Without the instrument.
    pub plain: bool,
    /// While other work keeps every processor of the host busy.
    pub busy_host: bool,
    /// The quantum in ns.
    pub quantum_ns: u64,
}

/// What a run brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The run.
    pub case: Case,
    /// Real time from start to end, in seconds.
    pub real_s: f64,
    /// The instrument's statistics, unless the run was plain.
    pub statistics: Option<Statistics>,
    /// What the guest found.
    pub figures: Figures,
}

/// What a guest found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figures {
    /// The machine came up and switched itself off.
    Booted,
    /// The runs of hackbench, in seconds.
    Hackbench(Sample),
    /// For each latency in microseconds, the wake-ups of all cores.
    Cyclictest(BTreeMap<u32, u64>),
    /// The metronome's report.
    Metronome(Report),
}

/// A run that brought nothing.
#[derive(Debug, Error)]
pub enum CaseError {
    /// The guest did not do its work.
    #[error("{case}: the guest did not finish; its last lines:\n{last}")]
    Unfinished {
        /// The case's name.
        case: String,
        /// The end of its console.
        last: String,
    },
    /// The metronome's console is malformed.
    #[error("{case}: {error}")]
    Metronome {
        /// The case's name.
        case: String,
        /// What is wrong.
        error: ReportError,
    },
}

impl Case {
    /// A run under the instrument on a host that is left alone.
    #[must_use]
    pub fn new(guest: Guest, cores: u32) -> Self {
        let quantum_ns = Options::DEFAULT_QUANTUM_NS;
        Self { guest, cores, plain: false, busy_host: false, quantum_ns }
    }

    /// A name for people.
    #[must_use]
    pub fn name(&self) -> String {
        let guest = match self.guest {
            Guest::Boot => "boot",
            Guest::Hackbench { .. } => "hackbench",
            Guest::Cyclictest { .. } => "cyclictest",
            Guest::Metronome { .. } => "metronome",
        };
        let plain = if self.plain { ", plain" } else { "" };
        let busy = if self.busy_host { ", busy host" } else { "" };
        format!("{guest}, {} cores, {} ns{plain}{busy}", self.cores, self.quantum_ns)
    }

    /// QEMU's arguments.
    #[must_use]
    pub fn arguments(&self, images: &Images) -> Vec<String> {
        let board = "-M virt,gic-version=3 -cpu cortex-a76,cntfrq=1000000000 -m 512M -nic none -nographic \
                     -no-reboot -seed 1 -smp";
        let mut arguments: Vec<String> = board.split_whitespace().map(Into::into).collect();
        arguments.push(self.cores.to_string());
        let linux = |what: String| {
            let text = |path: &PathBuf| path.display().to_string();
            let append = format!("console=ttyAMA0 quiet {what}");
            [
                "-kernel".into(),
                text(&images.kernel),
                "-initrd".into(),
                text(&images.initramfs),
                "-append".into(),
                append,
            ]
        };
        arguments.extend(match self.guest {
            Guest::Boot => linux("cassata.run=demo cassata.repeat=0".into()),
            Guest::Hackbench { runs } => linux(format!(
                "cassata.run=demo cassata.hackbench=\"-g 1 -l 100\" cassata.repeat={runs}"
            )),
            Guest::Cyclictest { loops } => {
                let command = format!("-q -m -S -p 80 -i 1000 -l {loops} -h 1000");
                linux(format!("cassata.run=cyclictest cassata.cyclictest=\"{command}\""))
            }
            Guest::Metronome { interrupts } => [
                "-kernel".into(),
                images.metronome.display().to_string(),
                "-device".into(),
                format!("loader,addr=0x48000000,data={interrupts},data-len=8"),
                "-monitor".into(),
                "none".into(),
            ],
        });
        arguments
    }

    /// Reads what the guest wrote on its console.
    ///
    /// # Errors
    /// If it did not do its work.
    pub fn read(&self, console: &str) -> Result<Figures, CaseError> {
        let done = |line: &str| line.trim_end() == "cassata: linux done";
        let finished = console.lines().any(done);
        let figures = match self.guest {
            Guest::Boot => finished.then_some(Figures::Booted),
            Guest::Hackbench { runs } => {
                let sample = hackbench(console);
                (finished && sample.0.len() == runs as usize).then_some(Figures::Hackbench(sample))
            }
            Guest::Cyclictest { .. } => finished.then(|| Figures::Cyclictest(cyclictest(console))),
            Guest::Metronome { .. } => {
                let report = Report::read(console.lines());
                return report
                    .map(Figures::Metronome)
                    .map_err(|error| CaseError::Metronome { case: self.name(), error });
            }
        };
        figures.ok_or_else(|| CaseError::Unfinished { case: self.name(), last: end_of(console) })
    }
}

fn end_of(console: &str) -> String {
    let lines: Vec<&str> = console.lines().collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}

fn hackbench(console: &str) -> Sample {
    let seconds = |line: &str| {
        let rest = line.trim_end().strip_prefix("cassata: hackbench run=")?;
        rest.split_once("seconds=")?.1.parse().ok()
    };
    Sample(console.lines().filter_map(seconds).collect())
}

/// Reads cyclictest's histogram: a latency of six digits, then one count for
/// each core.
fn cyclictest(console: &str) -> BTreeMap<u32, u64> {
    let row = |line: &str| {
        let (latency, counts) = line.trim_end().split_once(' ')?;
        let counts: Option<Vec<u64>> = counts.split_whitespace().map(|n| n.parse().ok()).collect();
        let total = counts?.iter().sum();
        (latency.len() == 6 && total > 0).then_some((latency.parse().ok()?, total))
    };
    console.lines().filter_map(row).collect()
}

/// All runs of the bench; `short` is what a test has time for.
#[must_use]
pub fn matrix(short: bool) -> Vec<Case> {
    let (runs, interrupts, loops, repeats) =
        if short { (4, 500, 100, 2) } else { (10, 62_500, 1000, 10) };
    let hackbench = Guest::Hackbench { runs };
    let mut cases = vec![Case { plain: true, ..Case::new(Guest::Boot, 1) }];
    cases.extend([1, 2, 4, 8].map(|cores| Case::new(Guest::Boot, cores)));
    cases.extend([1, 2, 3, 4].map(|cores| Case::new(hackbench, cores)));
    cases.push(Case { busy_host: true, ..Case::new(hackbench, 4) });
    cases.push(Case::new(Guest::Metronome { interrupts }, 4));
    cases.extend((0..repeats).map(|_| Case::new(Guest::Cyclictest { loops }, 4)));
    if !short {
        let at = |quantum_ns| Case { quantum_ns, ..Case::new(hackbench, 4) };
        cases.extend([500, 1_000, 5_000, 10_000, 20_000].map(at));
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_hackbench() {
        let case = Case::new(Guest::Hackbench { runs: 2 }, 4);
        let console = "cassata: linux ready uptime=0.8\r\ncassata: hackbench run=1 seconds=0.090\r\n\
                       cassata: hackbench run=2 seconds=0.083\r\ncassata: linux done\r\n";
        assert_eq!(case.read(console).unwrap(), Figures::Hackbench(Sample(vec![0.090, 0.083])));
        let short = console.replace("cassata: hackbench run=2 seconds=0.083\r\n", "");
        assert!(case.read(&short).unwrap_err().to_string().contains("linux done"));
    }

    #[test]
    fn reads_cyclictest() {
        let console = "# Histogram\r\n000000 000000\t000000\r\n000003 000010\t000090\r\n000017 000001\t000000\r\n\
                       # Total: 000011 000090\r\ncassata: linux done\r\n";
        let figures = Case::new(Guest::Cyclictest { loops: 100 }, 2).read(console).unwrap();
        assert_eq!(figures, Figures::Cyclictest(BTreeMap::from([(3, 100), (17, 1)])));
    }

    #[test]
    fn the_long_matrix_takes_a_million_interrupts() {
        let metronome = matrix(false).into_iter().find_map(|c| match c.guest {
            // Four phases.
            Guest::Metronome { interrupts } => Some(u64::from(interrupts * c.cores * 4)),
            _ => None,
        });
        assert_eq!(metronome, Some(1_000_000));
    }
}
