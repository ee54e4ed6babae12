//! The runs of hackbench: what more cores bring, and how runs agree.
//!
//! That ten runs agree can be read in two ways, and both are measured:
//!
//! - *The same run on ten boots*: each machine is started anew and does one run
//!   to warm up and one that counts. They differ by what instrument and host
//!   contribute.
//! - *The runs within one boot*: each finds Linux as the one before has left
//!   it. They differ by what Linux's scheduler makes of that as well.
//!
//! The goal is the same for both.

use super::Vtime;
use super::case::{Case, Guest, Mode};
use super::figures::Figures;
use crate::bench::sample::Sample;
use crate::results::{Check, Goal};
use std::collections::BTreeSet;
use vtime::options::Options;

/// Speed-ups demanded: from one core to so many.
const SPEED_UPS: [(u32, f64); 2] = [(2, 1.5), (4, 2.2)];
/// Most relative standard deviation of steady runs, and most that a busy host
/// may move their mean, percent.
const STEADY_PERCENT: f64 = 3.0;

impl Vtime {
    /// The machines that did several steady runs, each with all its runs.
    pub(super) fn hackbenches(&self) -> impl Iterator<Item = (&Case, &Sample)> {
        self.measurements.iter().filter_map(|m| match &m.figures {
            Figures::Hackbench(sample) if m.case.guest.several_steady_runs() => {
                Some((&m.case, sample))
            }
            _ => None,
        })
    }

    /// The steady runs within one boot, with the default quantum.
    fn within_a_boot(&self, cores: u32, mode: Mode, busy_host: bool) -> Option<Sample> {
        self.hackbenches().find_map(|(case, sample)| {
            let quantum = case.quantum_ns == Options::DEFAULT_QUANTUM_NS;
            let kind = (case.cores, case.mode, case.busy_host) == (cores, mode, busy_host);
            (quantum && kind).then(|| sample.steady())
        })
    }

    /// The one steady run of each boot, in the order of the boots; empty if any
    /// that was planned is missing.
    pub(super) fn over_boots(&self, cores: u32) -> Sample {
        let boot = Case::new(Guest::ONE_STEADY_RUN, cores);
        let planned = self.planned.iter().filter(|case| case.repeats(&boot)).count();
        let boots = self.measurements.iter().filter(|m| m.case.repeats(&boot));
        let steady = boots.filter_map(|m| match &m.figures {
            Figures::Hackbench(sample) => sample.steady().0.first().copied(),
            _ => None,
        });
        let found = Sample(steady.collect());
        if found.0.len() == planned { found } else { Sample::default() }
    }

    /// The cores on which hackbench should have run.
    pub(super) fn hackbench_cores(&self) -> BTreeSet<u32> {
        let hackbench = |case: &&Case| matches!(case.guest, Guest::Hackbench { .. });
        self.planned.iter().filter(hackbench).map(|case| case.cores).collect()
    }

    pub(super) fn scaling(&self) -> Vec<Check> {
        let mean = |cores| self.within_a_boot(cores, Mode::Turns, false).map(|s| s.mean());
        let check = |(cores, goal)| {
            let name = format!("hackbench: speed-up from 1 to {cores} cores");
            let speed_up = mean(1).zip(mean(cores)).map(|(one, many)| one / many);
            Check::new(&name, speed_up, "", Goal::AtLeast(goal))
        };
        SPEED_UPS.into_iter().map(check).collect()
    }

    pub(super) fn steadiness(&self) -> Vec<Check> {
        let goal = Goal::AtMost(STEADY_PERCENT);
        let check = |what: &str, cores: u32, sample: Option<Sample>| {
            let name = format!("hackbench, {what}: relative standard deviation on {}", on(cores));
            let several = sample.filter(|sample| sample.0.len() > 1);
            Check::new(&name, several.map(|sample| sample.deviation_percent()), "%", goal)
        };
        let within = |cores, busy| self.within_a_boot(cores, Mode::Turns, busy);
        let all = self.hackbench_cores();
        let over = all.iter().map(|&cores| {
            let sample = self.over_boots(cores);
            check("the same run on several boots", cores, Some(sample))
        });
        let inside =
            all.iter().map(|&cores| check("runs within a boot", cores, within(cores, false)));
        let mut checks: Vec<_> = over.chain(inside).collect();
        let moved = within(4, false).zip(within(4, true));
        let moved = moved.map(|(idle, busy)| 100.0 * (busy.mean() / idle.mean() - 1.0).abs());
        checks.push(Check::new("hackbench: movement of the mean on a busy host", moved, "%", goal));
        checks
    }
}

fn on(cores: u32) -> String {
    if cores == 1 { "1 core".into() } else { format!("{cores} cores") }
}

#[cfg(test)]
mod tests {
    use super::super::checks::tests::{holds, vtime};
    use super::super::run::Measurement;
    use super::*;

    fn of(case: Case, seconds: &[f64]) -> Measurement {
        Measurement::bare(case, 1.0, Figures::Hackbench(Sample(seconds.into())))
    }

    fn within(cores: u32, busy_host: bool, seconds: &[f64]) -> Measurement {
        of(Case { busy_host, ..Case::new(Guest::Hackbench { runs: 4 }, cores) }, seconds)
    }

    fn boots(cores: u32, seconds: &[[f64; 2]]) -> Vec<Measurement> {
        let boot = |(repetition, runs): (u32, &[f64; 2])| {
            of(Case { repetition, ..Case::new(Guest::ONE_STEADY_RUN, cores) }, runs)
        };
        (1..).zip(seconds).map(boot).collect()
    }

    #[test]
    fn judges_steady_runs_within_a_boot() {
        let vtime = vtime(vec![
            within(1, false, &[9.0, 1.0, 1.01, 0.99]),
            within(2, false, &[9.0, 0.5, 0.5, 0.5]),
            within(4, false, &[9.0, 0.5, 0.5, 0.55]),
            within(4, true, &[9.0, 0.6, 0.6, 0.6]),
        ]);
        assert!(holds(&vtime, "hackbench: speed-up from 1 to 2"));
        assert!(!holds(&vtime, "hackbench: speed-up from 1 to 4"));
        assert!(holds(&vtime, WITHIN_1));
        assert!(!holds(&vtime, WITHIN_4));
        assert!(!holds(&vtime, "hackbench: movement"));
    }

    const WITHIN_1: &str = "hackbench, runs within a boot: relative standard deviation on 1 core";
    const WITHIN_4: &str = "hackbench, runs within a boot: relative standard deviation on 4";
    const OVER_4: &str =
        "hackbench, the same run on several boots: relative standard deviation on 4 cores";

    #[test]
    fn each_boot_counts_with_its_second_run() {
        let same = vtime(boots(4, &[[9.0, 0.5], [7.0, 0.5], [8.0, 0.5]]));
        assert!(holds(&same, OVER_4));
        assert!(!holds(&same, WITHIN_4), "nothing was measured within a boot");
        let apart = vtime(boots(4, &[[9.0, 0.5], [9.0, 0.6], [9.0, 0.5]]));
        assert!(!holds(&apart, OVER_4));
        let one = vtime(boots(4, &[[9.0, 0.5]]));
        assert!(!holds(&one, OVER_4), "one run agrees with nothing");
    }

    #[test]
    fn a_boot_that_is_missing_is_not_made_good_by_the_others() {
        let mut vtime = vtime(boots(4, &[[9.0, 0.5], [9.0, 0.5], [9.0, 0.5]]));
        assert!(holds(&vtime, OVER_4));
        vtime.measurements.pop();
        assert!(!holds(&vtime, OVER_4));
    }

    #[test]
    fn other_modes_and_quanta_are_not_judged() {
        let slow = |case: fn(Case) -> Case| {
            let m = within(2, false, &[9.0, 9.0, 5.0, 9.0]);
            Measurement { case: case(m.case), ..m }
        };
        let vtime = vtime(vec![
            within(1, false, &[9.0, 1.0, 1.0, 1.0]),
            slow(|case| Case { mode: Mode::Parallel, ..case }),
            slow(|case| Case { quantum_ns: 500, ..case }),
            within(2, false, &[9.0, 0.5, 0.5, 0.5]),
        ]);
        assert!(holds(&vtime, "hackbench: speed-up from 1 to 2"));
        assert!(holds(&vtime, &WITHIN_4.replace("on 4", "on 2")));
    }
}
