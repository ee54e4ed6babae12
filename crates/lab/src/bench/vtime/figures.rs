//! What a guest found, read from its console.

use super::case::{Case, Guest};
use crate::bench::sample::Sample;
use crate::guests::{Build, Guest as Said};
use crate::observe::Distribution;
use miette::{Result, miette};
use serde::{Deserialize, Serialize};
use vtime::metronome::Report;

/// What a guest found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figures {
    /// The machine came up and switched itself off.
    Booted,
    /// The runs of hackbench, in seconds.
    Hackbench(Sample),
    /// The runs of timed work, in seconds.
    Work(Sample),
    /// The builds of a part of Linux.
    Builds(Vec<Build>),
    /// Latencies of cyclictest's wake-ups on all cores, microseconds.
    Cyclictest(Distribution),
    /// The metronome's report.
    Metronome(Report),
}

/// Reads what the guest of `case` has said.
///
/// # Errors
/// If the guest did not do its work.
pub fn read(case: &Case, said: &Said) -> Result<Figures> {
    let linux = said.linux.clone();
    let all =
        |seconds: Vec<f64>, runs: u32| (seconds.len() == runs as usize).then_some(Sample(seconds));
    let figures = match case.guest {
        Guest::Boot => Some(Figures::Booted),
        Guest::Hackbench { runs } => all(linux.hackbench_s, runs).map(Figures::Hackbench),
        Guest::Work { runs, .. } => all(linux.work_s, runs).map(Figures::Work),
        Guest::Builds { runs } => {
            (linux.builds.len() == runs as usize).then_some(Figures::Builds(linux.builds))
        }
        Guest::Cyclictest { .. } => Some(Figures::Cyclictest(linux.wake_ups_us)),
        Guest::Metronome { .. } => {
            let report = said.metronome.report();
            return report.map(Figures::Metronome).map_err(|error| miette!("{error}"));
        }
    };
    figures
        .filter(|_| linux.done)
        .ok_or_else(|| miette!("Linux did not do its work; its last lines:\n{}", said.tail.text()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guests::Transcript;
    use crate::testing::lines;

    fn read(case: &Case, text: &str) -> Result<Figures> {
        let mut said = Transcript::new(0);
        said.hear(&lines(text));
        super::read(case, &said.guests[0])
    }

    #[test]
    fn reads_hackbench() {
        let case = Case::new(Guest::Hackbench { runs: 2 }, 4);
        let console = "cassata: linux ready uptime=0.8\ncassata: hackbench run=1 seconds=0.090\n\
                       cassata: hackbench run=2 seconds=0.083\ncassata: linux done\n";
        let figures = read(&case, console).unwrap();
        assert_eq!(figures, Figures::Hackbench(Sample(vec![0.090, 0.083])));
        let short = console.replace("cassata: hackbench run=2 seconds=0.083\n", "");
        assert!(read(&case, &short).unwrap_err().to_string().contains("linux done"));
        let cut = console.replace("cassata: linux done\n", "");
        assert!(read(&case, &cut).is_err());
    }

    #[test]
    fn reads_timed_work() {
        let guest = Guest::Work { work: super::super::case::Work::Cpu, count: 9, runs: 2 };
        let console = "cassata: work run=1 ns=250000000\ncassata: work run=2 ns=1500000000\n\
                       cassata: linux done\n";
        let figures = read(&Case::new(guest, 4), console).unwrap();
        assert_eq!(figures, Figures::Work(Sample(vec![0.25, 1.5])));
        let short = console.replace("run=2 ns", "run=2 us");
        assert!(read(&Case::new(guest, 4), &short).is_err());
    }
}
