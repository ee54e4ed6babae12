//! What Linux loses to the hypervisor, and to an RTOS that only ticks.

use super::Lhp;
use super::point::{Experiment, Linux, Point, Stage};
use crate::bench::sample::Sample;
use crate::bench::vtime::case::{BUILT, Work};
use crate::dataset::{Dataset, Unit};
use crate::guests::Build;
use crate::results::{Check, Goal};

/// Most that computing may lose to Cassata alone, percent.
const ALONE_PERCENT: f64 = 1.0;
/// And beside an RTOS that ticks each millisecond, its own time included.
const TICKING_PERCENT: f64 = 1.4;

/// The work of building a part of Linux, as vlk's.
const BUILDING: &str = "building Linux";

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

    /// Returns the builds that count in a place: all but the first.
    fn builds(&self, place: &str) -> Option<&[Build]> {
        let here =
            |m: &&super::run::Measurement| m.point.builds() && self::place(&m.point) == place;
        self.of(Experiment::Overhead).find(here)?.builds.get(1..).filter(|all| !all.is_empty())
    }

    /// Returns the mean of a figure of the builds there, seconds.
    fn build(&self, place: &str, figure: impl Fn(&Build) -> f64) -> Option<f64> {
        let all = Sample(self.builds(place)?.iter().map(figure).collect());
        Some(all.mean())
    }

    /// Returns how much longer than on the bare board a build takes, in percent.
    fn build_lost(&self, place: &str) -> Option<f64> {
        let seconds = |place| self.build(place, |build| build.seconds);
        Some(100.0 * (seconds(place)? / seconds(NATIVE)? - 1.0))
    }

    /// Returns what builds took on the wall, in programs and in the kernel.
    pub(super) fn builds_data(&self) -> Dataset {
        let there = [NATIVE, ALONE, TICKING].into_iter().filter(|p| self.builds(p).is_some());
        let title = format!("Building {BUILT} of Linux with make -j4");
        Dataset::of("builds", &title, there)
            .name("stage", |place| *place)
            .column("mean", Unit::Seconds, |place| self.build(place, |build| build.seconds))
            .column("user", Unit::Seconds, |place| self.build(place, |build| build.user))
            .column("system", Unit::Seconds, |place| self.build(place, |build| build.system))
            .column("lost", Unit::Change, |place| {
                self.build_lost(place).filter(|_| *place != NATIVE)
            })
            .digits(2)
            .done()
    }

    /// Returns how much more than native it is, in percent.
    pub(super) fn lost(&self, work: Work, place: &str) -> Option<f64> {
        Some(100.0 * (self.time(work, place)? / self.time(work, NATIVE)? - 1.0))
    }

    pub(super) fn overhead_checks(&self) -> Vec<Check> {
        let is_timed = |point: &Point| point.experiment == Experiment::Overhead && !point.builds();
        if !self.planned.iter().any(is_timed) {
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

    pub(super) fn builds_checks(&self) -> Vec<Check> {
        if !self.planned.iter().any(Point::builds) {
            return Vec::new();
        }
        let name = format!("{BUILDING} beside a tick each ms: loss");
        let goal = Goal::AtMost(TICKING_PERCENT);
        vec![Check::new(&name, self.build_lost(TICKING), "%", goal).as_statement()]
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
        let built = self.build_lost(TICKING).map_or(String::new(), |lost| {
            format!(" {BUILDING} ({BUILT}) takes {lost:.2} % longer.")
        });
        let of = |work| self.lost(work, TICKING).map_or("-".into(), |lost| format!("{lost:.2} %"));
        format!(
            "Ours, beside a tick each millisecond: {} computing, {} in system calls, {} in fork \
             and exec. All four vCPUs have the same to do, and the last to finish counts: the one \
             that shares its core with the RTOS.{built}",
            of(Work::Cpu),
            of(Work::Calls),
            of(Work::Forks)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{lhp, measured, only};
    use crate::guests::Build;
    use crate::results::Check;

    #[test]
    fn a_build_is_against_native_and_the_first_is_left_out() {
        let built = |name: &str, seconds: f64| {
            let mut all = measured(name, &[9.0, seconds]);
            let build = |seconds| Build { seconds, user: 2.0 * seconds, system: 0.1 };
            all.builds = vec![build(9.0), build(seconds), build(seconds)];
            all
        };
        let found = |ticking| {
            let all = only(vec![
                built("overhead-native-kbuild", 1.0),
                built("overhead-alone-4-kbuild", 1.005),
                built("overhead-none-kbuild", ticking),
            ]);
            assert_eq!(all.builds_data().json()[2]["user_s"], 2.0 * ticking);
            assert!(all.overhead_finding().contains("% longer"));
            all.builds_checks().last().unwrap().holds()
        };
        assert!(found(1.0135) && !found(1.0145));
    }

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
