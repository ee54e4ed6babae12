//! What Linux loses to the hypervisor, and to an RTOS that only ticks.

use super::Lhp;
use super::point::{Experiment, Linux, Point, Stage};
use crate::bench::vtime::case::Work;
use crate::dataset::{Dataset, Unit};
use crate::results::{Check, Goal};

/// Most that computing may lose to Cassata alone, percent.
const ALONE_PERCENT: f64 = 1.0;
/// And beside an RTOS that ticks each millisecond, its own time included.
const TICKING_PERCENT: f64 = 1.4;

/// Where Linux runs.
const NATIVE: &str = "native";
pub(super) const ALONE: &str = "alone";
pub(super) const TICKING: &str = "beside a tick each ms";

fn place(point: &Point) -> &'static str {
    match point.stage {
        Stage::Native => NATIVE,
        Stage::Alone { .. } => ALONE,
        Stage::Shared { .. } => TICKING,
    }
}

fn about(work: Work) -> &'static str {
    match work {
        Work::Cpu => "computing (sha256sum)",
        Work::Calls => "system calls (dd, a byte each)",
        Work::Forks => "fork, exec, exit",
    }
}

impl Lhp {
    /// Returns the mean time, in seconds.
    fn time(&self, work: Work, place: &str) -> Option<f64> {
        let here = |m: &&super::run::Measurement| {
            let same = matches!(m.point.linux, Linux::Timed { work: w, .. } if w == work);
            same && self::place(&m.point) == place
        };
        Some(self.of(Experiment::Overhead).find(here)?.runs.steady().mean())
    }

    /// Returns how much more than native it is, in percent.
    pub(super) fn lost(&self, work: Work, place: &str) -> Option<f64> {
        Some(100.0 * (self.time(work, place)? / self.time(work, NATIVE)? - 1.0))
    }

    pub(super) fn overhead_checks(&self) -> Vec<Check> {
        if !self.plans(Experiment::Overhead) {
            return Vec::new();
        }
        let check = |name, place, most| {
            Check::new(name, self.lost(Work::Cpu, place), "%", Goal::AtMost(most))
        };
        vec![
            check("computing under Cassata: loss", ALONE, ALONE_PERCENT),
            check("computing beside a tick each ms: loss", TICKING, TICKING_PERCENT),
        ]
    }

    /// The mean of each kind of work in each place, and what is lost against the bare board.
    pub(super) fn overhead_data(&self) -> Dataset {
        let places = [NATIVE, ALONE, TICKING];
        let all = Work::ALL.into_iter().flat_map(|work| places.map(|place| (work, place)));
        let measured = all.filter(|(work, place)| self.time(*work, place).is_some());
        Dataset::of("overhead", "What Linux loses", measured)
            .name("what", |(work, place)| format!("{}, {}", work.name(), *place))
            .head("")
            .for_people()
            .name("work", |(work, _)| work.name())
            .for_programs()
            .name("stage", |(_, place)| *place)
            .for_programs()
            .name("doing", |(work, _)| about(*work))
            .head("four vCPUs do")
            .for_people()
            .column("mean", Unit::Seconds, |(work, place)| self.time(*work, place))
            .shown_in(Unit::Milliseconds, 2)
            .column("lost", Unit::Change, |(work, place)| {
                self.lost(*work, place).filter(|_| *place != NATIVE)
            })
            .digits(2)
            .done()
    }

    /// Ours beside the paper's.
    pub(super) fn overhead_finding(&self) -> String {
        let of = |work| self.lost(work, TICKING).map_or("-".into(), |lost| format!("{lost:.2} %"));
        format!(
            "Ours, beside a tick each millisecond: {} computing, {} in system calls, {} in fork \
             and exec. All four vCPUs have the same to do, and the last to finish counts: the one \
             that shares its core with the RTOS.",
            of(Work::Cpu),
            of(Work::Calls),
            of(Work::Forks)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{lhp, measured};
    use crate::results::Check;

    #[test]
    fn a_loss_is_against_native() {
        let holding = |alone, ticking| {
            let all = lhp(vec![
                measured("overhead-native-cpu", &[7.0, 1.0, 1.0]),
                measured("overhead-alone-4-cpu", &[7.0, alone]),
                measured("overhead-none-cpu", &[7.0, ticking]),
            ]);
            let data = all.overhead_data().json();
            assert_eq!((&data[0]["stage"], &data[0]["mean_s"]), (&"native".into(), &1.0.into()));
            assert_eq!(
                (data[1]["mean_s"].as_f64(), data[0]["lost_percent"].as_f64()),
                (Some(alone), None)
            );
            all.overhead_checks().iter().map(Check::holds).collect::<Vec<_>>()
        };
        assert_eq!(holding(1.009, 1.013), [true, true]);
        assert_eq!(holding(1.011, 1.015), [false, false]);
    }
}
