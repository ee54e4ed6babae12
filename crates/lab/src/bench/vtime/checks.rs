//! What must hold.

use super::Vtime;
use super::case::{Case, Guest, Mode};
use super::figures::Figures;
use super::run::Measurement;
use crate::observe::Distribution;
use crate::quantity::real;
use crate::results::{Check, Goal};
use std::collections::BTreeMap;
use vtime::metronome::Record;
use vtime::options::Options;

/// Most real time for a boot on four cores, seconds.
const BOOT_S: f64 = 40.0;
/// Most real time of a boot on one core, that of plain QEMU being 1.
const SLOWDOWN: f64 = 2.0;

impl Vtime {
    /// Compares with the goals. What should have been measured and was not
    /// meets none.
    pub fn checks(&self) -> Vec<Check> {
        let parts = [self.scaling(), self.steadiness(), self.interrupts(), self.wake_ups()];
        parts.into_iter().flatten().chain([self.sameness()]).chain(self.cost()).collect()
    }

    fn interrupts(&self) -> Vec<Check> {
        let found = self.measurements.iter().find_map(|m| match &m.figures {
            Figures::Metronome(report) => Some(report),
            _ => None,
        });
        let records = found.map(|report| report.records.iter());
        let sum = |of: fn(&Record) -> u64| Some(real(records.clone()?.map(of).sum()));
        let max = |of: fn(&Record) -> u64| Some(real(records.clone()?.map(of).max().unwrap_or(0)));
        let planned = self.planned.iter().find_map(|case| match case.guest {
            Guest::Metronome { interrupts } => Some(f64::from(interrupts * case.cores * 4)),
            _ => None,
        });
        let quantum = Goal::AtMost(real(Options::DEFAULT_QUANTUM_NS));
        let apart = found.map(|report| real(report.farthest_behind_ns));
        let (unit, none) = ("interrupts", Goal::Exactly(0.0));
        let all = Goal::Exactly(planned.unwrap_or(f64::NAN));
        vec![
            Check::new("metronome: interrupts", sum(|r| r.interrupts), unit, all),
            Check::new("metronome: early interrupts", sum(|r| r.early), unit, none),
            Check::new("metronome: latest interrupt", max(|r| r.latest_ns), "ns", quantum),
            Check::new(
                "metronome: most instructions beyond the time",
                max(|r| r.most_surplus),
                "",
                none,
            ),
            Check::new("metronome: counters apart", apart, "ns", quantum),
        ]
    }

    /// The histograms of cyclictest, in the order of its runs.
    pub(super) fn histograms(&self) -> Vec<&Distribution> {
        let found = self.measurements.iter().filter_map(|m| match &m.figures {
            Figures::Cyclictest(histogram) => Some(histogram),
            _ => None,
        });
        found.collect()
    }

    fn wake_ups(&self) -> Vec<Check> {
        let planned =
            self.planned.iter().filter(|case| matches!(case.guest, Guest::Cyclictest { .. }));
        let planned = planned.count();
        let histograms = self.histograms();
        let complete = histograms.len() == planned;
        let apart = histograms.split_first().filter(|_| complete).map(|(first, rest)| {
            let greatest = rest.iter().map(|other| distance(first, other)).max().unwrap_or(0);
            let total = first.count();
            100.0 * real(greatest) / real(total.max(1))
        });
        let name = format!("cyclictest: wake-ups in another bin, greatest of {planned} runs");
        vec![Check::new(&name, apart, "%", Goal::Exactly(0.0))]
    }

    /// Runs of the same, each with the first of them; a busy host makes none
    /// different.
    pub(super) fn repetitions(&self) -> Vec<(&Measurement, &Measurement)> {
        let plainly = |case: &Case| Case { busy_host: false, ..*case };
        let in_turns = self.measurements.iter().filter(|m| m.case.mode == Mode::Turns);
        let with_first = in_turns.filter_map(|m| {
            let same = |first: &&Measurement| plainly(&first.case).repeats(&plainly(&m.case));
            let first = self.measurements.iter().find(same)?;
            (first.case != m.case).then_some((first, m))
        });
        with_first.collect()
    }

    fn sameness(&self) -> Check {
        let apart = |(first, m): (&Measurement, &Measurement)| {
            Some(real(first.instructions()?.abs_diff(m.instructions()?)))
        };
        let apart: Option<Vec<f64>> = self.repetitions().into_iter().map(apart).collect();
        let most = apart.and_then(|all| all.into_iter().reduce(f64::max));
        let name = "runs of the same, idle host or busy: instructions apart";
        Check::new(name, most, "", Goal::Exactly(0.0))
    }

    /// The quickest of several boots, real time in seconds.
    pub(super) fn boot_s(&self, cores: u32, mode: Mode) -> Option<f64> {
        let boots = self.measurements.iter().filter(|m| m.case.guest == Guest::Boot);
        let same = boots.filter(|m| (m.case.cores, m.case.mode) == (cores, mode));
        same.map(|m| m.real_s).min_by(f64::total_cmp)
    }

    fn cost(&self) -> Vec<Check> {
        let four = self.boot_s(4, Mode::Turns);
        let slowdown = self.boot_s(1, Mode::Turns).zip(self.boot_s(1, Mode::Plain));
        let slowdown = slowdown.map(|(virtual_time, plain)| virtual_time / plain);
        let goal = Goal::AtMost(SLOWDOWN);
        vec![
            Check::new("boot on 4 cores: real time", four, "s", Goal::AtMost(BOOT_S)),
            Check::new("boot on 1 core: slowdown against plain QEMU", slowdown, "", goal),
        ]
    }
}

/// How many wake-ups of one histogram are in another bin than in the other.
pub(super) fn distance(a: &Distribution, b: &Distribution) -> u64 {
    let in_b: BTreeMap<u32, u64> = b.iter().collect();
    a.iter().map(|(bin, n)| n.saturating_sub(in_b.get(&bin).copied().unwrap_or(0))).sum()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use vtime::metronome::Report;

    pub fn vtime(measurements: Vec<Measurement>) -> Vtime {
        Vtime::of(measurements.iter().map(|m| m.case).collect(), measurements)
    }

    pub fn holds(vtime: &Vtime, start: &str) -> bool {
        let checks = vtime.checks();
        let found = checks.iter().find(|check| check.name.starts_with(start));
        found.unwrap_or_else(|| panic!("no {start}: {checks:?}")).holds()
    }

    #[test]
    fn compares_histograms_and_times() {
        let boot = |cores, mode, s| {
            let case = Case { mode, ..Case::new(Guest::Boot, cores) };
            Measurement::bare(case, s, Figures::Booted)
        };
        let cyclic = |h: &[(u32, u64)]| {
            let figures = Figures::Cyclictest(h.iter().copied().collect::<BTreeMap<_, _>>().into());
            Measurement::bare(Case::new(Guest::Cyclictest { loops: 5 }, 4), 1.0, figures)
        };
        let vtime = vtime(vec![
            boot(1, Mode::Plain, 2.0),
            boot(1, Mode::Plain, 7.0),
            boot(1, Mode::Turns, 5.0),
            boot(4, Mode::Turns, 4.0),
            cyclic(&[(2, 15), (3, 5)]),
            cyclic(&[(2, 14), (3, 5), (9, 1)]),
        ]);
        assert!(holds(&vtime, "boot on 4 cores"));
        assert!(!holds(&vtime, "boot on 1 core"));
        assert!(!holds(&vtime, "cyclictest"));
        let [a, b] = vtime.histograms()[..] else { panic!() };
        assert_eq!((distance(a, b), distance(a, a)), (1, 0));
    }

    #[test]
    fn runs_of_the_same_are_compared() {
        let counting = |busy_host, instructions: u64| {
            let case = Case { busy_host, ..Case::new(Guest::Boot, 4) };
            let mut m = Measurement::bare(case, 1.0, Figures::Booted);
            m.statistics = Some(crate::testing::statistics([(instructions, ())]));
            m
        };
        let twice = |second| {
            let idle = counting(false, 700);
            vtime(vec![idle, counting(true, second)])
        };
        assert!(holds(&twice(700), "runs of the same"));
        assert!(!holds(&twice(701), "runs of the same"));
    }

    #[test]
    fn an_early_interrupt_fails() {
        let mut report = Report::default();
        let record = Record { interrupts: 40, early: 1, ..Default::default() };
        report.records.push(record);
        let case = Case::new(Guest::Metronome { interrupts: 10 }, 1);
        let vtime = vtime(vec![Measurement::bare(case, 1.0, Figures::Metronome(report))]);
        assert!(holds(&vtime, "metronome: interrupts"));
        assert!(!holds(&vtime, "metronome: early"));
        assert!(holds(&vtime, "metronome: latest"));
    }

    #[test]
    fn what_is_missing_meets_no_goal() {
        let vtime = Vtime::of(super::super::matrix::cases(crate::bench::Extent::Quick), Vec::new());
        assert!(vtime.checks().len() > 10);
        assert!(vtime.checks().iter().all(|check| !check.holds()));
    }
}
