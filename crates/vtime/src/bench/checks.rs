//! What must hold.

use super::{Figures, Guest, Measurement, Sample};
use crate::options::Options;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A figure and its goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// What it is.
    pub name: String,
    /// What was measured.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// What it should be: `>= 1.5`, say.
    pub goal: String,
    /// Whether it is.
    pub holds: bool,
}

fn at_least(name: impl Into<String>, value: f64, unit: &str, goal: f64) -> Check {
    Check {
        name: name.into(),
        value,
        unit: unit.into(),
        goal: format!(">= {goal}"),
        holds: value >= goal,
    }
}

fn at_most(name: impl Into<String>, value: f64, unit: &str, goal: f64) -> Check {
    Check {
        name: name.into(),
        value,
        unit: unit.into(),
        goal: format!("<= {goal}"),
        holds: value <= goal,
    }
}

/// Holds the bench's measurements against its goals. What was not measured is
/// not checked.
#[must_use]
pub fn check(measurements: &[Measurement]) -> Vec<Check> {
    let all = Measurements(measurements);
    [all.scaling(), all.repeatability(), all.interrupts(), all.cyclictest(), all.cost()].concat()
}

struct Measurements<'a>(&'a [Measurement]);

impl Measurements<'_> {
    fn hackbench(&self, cores: u32, busy_host: bool) -> Option<Sample> {
        self.0.iter().find_map(|m| match &m.figures {
            Figures::Hackbench(sample)
                if m.case.cores == cores
                    && m.case.busy_host == busy_host
                    && m.case.quantum_ns == Options::DEFAULT_QUANTUM_NS =>
            {
                Some(sample.steady())
            }
            _ => None,
        })
    }

    fn scaling(&self) -> Vec<Check> {
        let speed_up = |cores, goal| {
            let (one, many) = (self.hackbench(1, false)?, self.hackbench(cores, false)?);
            let name = format!("hackbench: speed-up from 1 to {cores} cores");
            Some(at_least(name, one.mean() / many.mean(), "", goal))
        };
        [speed_up(2, 1.5), speed_up(4, 2.2)].into_iter().flatten().collect()
    }

    fn repeatability(&self) -> Vec<Check> {
        let deviation = |cores| {
            let sample = self.hackbench(cores, false)?;
            let name = format!("hackbench: relative standard deviation on {cores} cores");
            Some(at_most(name, sample.deviation_percent(), "%", 3.0))
        };
        let mut checks: Vec<Check> = [1, 2, 3, 4].into_iter().filter_map(deviation).collect();
        if let (Some(idle), Some(busy)) = (self.hackbench(4, false), self.hackbench(4, true)) {
            let moved = 100.0 * (busy.mean() / idle.mean() - 1.0).abs();
            checks.push(at_most("hackbench: movement of the mean on a busy host", moved, "%", 3.0));
        }
        checks
    }

    fn interrupts(&self) -> Vec<Check> {
        let reports = self.0.iter().filter_map(|m| match &m.figures {
            Figures::Metronome(report) => Some((m.case.quantum_ns, report)),
            _ => None,
        });
        let check = |(quantum_ns, report): (u64, &crate::metronome::Report)| {
            let count = |of: fn(&crate::metronome::Record) -> u64| report.records.iter().map(of);
            let taken: u64 = count(|r| r.interrupts).sum();
            let early: u64 = count(|r| r.early).sum();
            let latest = count(|r| r.latest_ns).max().unwrap_or(0);
            let surplus = count(|r| r.most_surplus).max().unwrap_or(0);
            [
                at_most(format!("metronome: early of {taken} interrupts"), early as f64, "", 0.0),
                at_most("metronome: latest interrupt", latest as f64, "ns", quantum_ns as f64),
                at_most("metronome: most instructions beyond the time", surplus as f64, "", 0.0),
                at_most(
                    "metronome: counters apart",
                    report.farthest_behind_ns as f64,
                    "ns",
                    quantum_ns as f64,
                ),
            ]
        };
        reports.flat_map(check).collect()
    }

    fn cyclictest(&self) -> Vec<Check> {
        let histograms: Vec<&BTreeMap<u32, u64>> = self
            .0
            .iter()
            .filter_map(|m| match &m.figures {
                Figures::Cyclictest(histogram) => Some(histogram),
                _ => None,
            })
            .collect();
        let Some((first, rest)) = histograms.split_first() else { return Vec::new() };
        let greatest = rest.iter().map(|other| distance(first, other)).max().unwrap_or(0);
        let total: u64 = first.values().sum();
        let percent = 100.0 * greatest as f64 / total.max(1) as f64;
        let name = format!(
            "cyclictest: wake-ups in another bin, of {total}, in {} runs",
            histograms.len()
        );
        vec![at_most(name, percent, "%", 0.0)]
    }

    fn cost(&self) -> Vec<Check> {
        let boot = |cores, plain| {
            let is = |m: &&Measurement| {
                m.case.guest == Guest::Boot && m.case.cores == cores && m.case.plain == plain
            };
            self.0.iter().find(is).map(|m| m.real_s)
        };
        let mut checks = Vec::new();
        if let Some(real_s) = boot(4, false) {
            checks.push(at_most("boot on 4 cores: real time", real_s, "s", 40.0));
        }
        if let (Some(plain), Some(virtual_time)) = (boot(1, true), boot(1, false)) {
            checks.push(at_most(
                "boot on 1 core: slowdown against plain QEMU",
                virtual_time / plain,
                "",
                2.0,
            ));
        }
        checks
    }
}

/// How many wake-ups of one histogram are in another bin than in the other.
fn distance(a: &BTreeMap<u32, u64>, b: &BTreeMap<u32, u64>) -> u64 {
    let bins: std::collections::BTreeSet<&u32> = a.keys().chain(b.keys()).collect();
    let in_bin = |h: &BTreeMap<u32, u64>, bin: &u32| h.get(bin).copied().unwrap_or(0);
    bins.into_iter().map(|bin| in_bin(a, bin).saturating_sub(in_bin(b, bin))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Case;

    fn measurement(case: Case, real_s: f64, figures: Figures) -> Measurement {
        Measurement { case, real_s, statistics: None, figures }
    }

    fn hackbench(cores: u32, busy_host: bool, seconds: &[f64]) -> Measurement {
        let case = Case { busy_host, ..Case::new(Guest::Hackbench { runs: 4 }, cores) };
        measurement(case, 1.0, Figures::Hackbench(Sample(seconds.into())))
    }

    fn named<'a>(checks: &'a [Check], start: &str) -> &'a Check {
        checks
            .iter()
            .find(|c| c.name.starts_with(start))
            .unwrap_or_else(|| panic!("no {start}: {checks:?}"))
    }

    #[test]
    fn judges_hackbench_by_its_steady_runs() {
        let checks = check(&[
            hackbench(1, false, &[9.0, 1.0, 1.01, 0.99]),
            hackbench(2, false, &[9.0, 0.5, 0.5, 0.5]),
            hackbench(4, false, &[9.0, 0.5, 0.5, 0.5]),
            hackbench(4, true, &[9.0, 0.6, 0.6, 0.6]),
        ]);
        assert!(named(&checks, "hackbench: speed-up from 1 to 2").holds);
        assert!(!named(&checks, "hackbench: speed-up from 1 to 4").holds);
        assert!(named(&checks, "hackbench: relative standard deviation on 1").holds);
        assert!(!named(&checks, "hackbench: movement").holds);
    }

    #[test]
    fn compares_histograms_and_times() {
        let boot = |cores, plain, s| {
            measurement(Case { plain, ..Case::new(Guest::Boot, cores) }, s, Figures::Booted)
        };
        let cyclic = |h: &[(u32, u64)]| {
            let figures = Figures::Cyclictest(h.iter().copied().collect());
            measurement(Case::new(Guest::Cyclictest { loops: 5 }, 4), 1.0, figures)
        };
        let checks = check(&[
            boot(1, true, 2.0),
            boot(1, false, 5.0),
            boot(4, false, 4.0),
            cyclic(&[(2, 15), (3, 5)]),
            cyclic(&[(2, 14), (3, 5), (9, 1)]),
        ]);
        assert!(named(&checks, "boot on 4 cores").holds);
        assert!(!named(&checks, "boot on 1 core").holds);
        assert!((named(&checks, "cyclictest").value - 5.0).abs() < 1e-9);
    }

    #[test]
    fn an_early_interrupt_fails() {
        let mut report = crate::metronome::Report::default();
        report.records.push(crate::metronome::Record {
            interrupts: 10,
            early: 1,
            ..Default::default()
        });
        let case = Case::new(Guest::Metronome { interrupts: 10 }, 1);
        let checks = check(&[measurement(case, 1.0, Figures::Metronome(report))]);
        assert!(!named(&checks, "metronome: early of 10").holds);
        assert!(named(&checks, "metronome: latest").holds);
    }

    #[test]
    fn nothing_measured_nothing_checked() {
        assert_eq!(check(&[]), []);
    }
}
