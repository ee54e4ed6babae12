//! What a guest found, read from its console.

use super::case::{Case, Guest};
use crate::bench::sample::Sample;
use miette::{Result, miette};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use vtime::metronome::Report;

/// For each latency in microseconds, the wake-ups of all cores.
pub type Histogram = BTreeMap<u32, u64>;

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
    /// What cyclictest counted.
    Cyclictest(Histogram),
    /// The metronome's report.
    Metronome(Report),
}

/// Reads the console of `case`, line by line.
///
/// # Errors
/// If the guest did not do its work.
pub fn read(case: &Case, console: &[String]) -> Result<Figures> {
    let finished = console.iter().any(|line| line == "cassata: linux done");
    let figures = match case.guest {
        Guest::Boot => Some(Figures::Booted),
        Guest::Hackbench { runs } => {
            let sample = hackbench(console);
            (sample.0.len() == runs as usize).then_some(Figures::Hackbench(sample))
        }
        Guest::Work { runs, .. } => {
            let sample = work(console);
            (sample.0.len() == runs as usize).then_some(Figures::Work(sample))
        }
        Guest::Cyclictest { .. } => Some(Figures::Cyclictest(cyclictest(console))),
        Guest::Metronome { .. } => {
            let report = Report::read(console.iter().map(String::as_str));
            return report.map(Figures::Metronome).map_err(|error| miette!("{error}"));
        }
    };
    figures.filter(|_| finished).ok_or_else(|| {
        let last = console[console.len().saturating_sub(5)..].join("\n");
        miette!("Linux did not do its work; its last lines:\n{last}")
    })
}

/// The times of hackbench's runs, in seconds.
pub fn hackbench(console: &[String]) -> Sample {
    let seconds = |line: &String| {
        let rest = line.strip_prefix("cassata: hackbench run=")?;
        rest.split_once("seconds=")?.1.parse().ok()
    };
    Sample(console.iter().filter_map(seconds).collect())
}

/// The times of the runs of timed work, in seconds.
pub fn work(console: &[String]) -> Sample {
    let seconds = |line: &String| {
        let rest = line.strip_prefix("cassata: work run=")?;
        let ns: f64 = rest.split_once("ns=")?.1.parse().ok()?;
        Some(ns / 1e9)
    };
    Sample(console.iter().filter_map(seconds).collect())
}

/// Reads cyclictest's histogram: a latency of six digits, then one count for
/// each core.
fn cyclictest(console: &[String]) -> Histogram {
    let row = |line: &String| {
        let (latency, counts) = line.split_once(' ')?;
        let counts: Option<Vec<u64>> = counts.split_whitespace().map(|n| n.parse().ok()).collect();
        let total = counts?.iter().sum();
        (latency.len() == 6 && total > 0).then_some((latency.parse().ok()?, total))
    };
    console.iter().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn reads_hackbench() {
        let case = Case::new(Guest::Hackbench { runs: 2 }, 4);
        let console = "cassata: linux ready uptime=0.8\ncassata: hackbench run=1 seconds=0.090\n\
                       cassata: hackbench run=2 seconds=0.083\ncassata: linux done\n";
        let figures = read(&case, &lines(console)).unwrap();
        assert_eq!(figures, Figures::Hackbench(Sample(vec![0.090, 0.083])));
        let short = console.replace("cassata: hackbench run=2 seconds=0.083\n", "");
        assert!(read(&case, &lines(&short)).unwrap_err().to_string().contains("linux done"));
        let cut = console.replace("cassata: linux done\n", "");
        assert!(read(&case, &lines(&cut)).is_err());
    }

    #[test]
    fn reads_timed_work() {
        let guest = Guest::Work { work: super::super::case::Work::Cpu, count: 9, runs: 2 };
        let console = "cassata: work run=1 ns=250000000\ncassata: work run=2 ns=1500000000\n\
                       cassata: linux done\n";
        let figures = read(&Case::new(guest, 4), &lines(console)).unwrap();
        assert_eq!(figures, Figures::Work(Sample(vec![0.25, 1.5])));
        let short = console.replace("run=2 ns", "run=2 us");
        assert!(read(&Case::new(guest, 4), &lines(&short)).is_err());
    }

    #[test]
    fn reads_cyclictest() {
        let console = "# Histogram\n000000 000000\t000000\n000003 000010\t000090\n\
                       000017 000001\t000000\n# Total: 000011 000090\ncassata: linux done\n";
        let case = Case::new(Guest::Cyclictest { loops: 100 }, 2);
        let figures = read(&case, &lines(console)).unwrap();
        assert_eq!(figures, Figures::Cyclictest(BTreeMap::from([(3, 100), (17, 1)])));
    }
}
