//! What Linux loses to the hypervisor, and to an RTOS that only ticks.

use super::Lhp;
use super::point::{Experiment, Linux, Point, Stage};
use crate::bench::vtime::case::Work;
use crate::report::{Row, rows};
use crate::results::{Check, Goal};
use crate::table::Table;
use maud::Markup;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// Most that computing may lose to Cassata alone, percent.
const ALONE_PERCENT: f64 = 1.0;
/// And beside an RTOS that ticks each millisecond, its own time included.
const TICKING_PERCENT: f64 = 1.4;

/// Where Linux runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Native,
    Alone,
    Ticking,
}

impl Place {
    fn of(point: &Point) -> Self {
        match point.stage {
            Stage::Native => Self::Native,
            Stage::Alone { .. } => Self::Alone,
            Stage::Shared { .. } => Self::Ticking,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Alone => "alone",
            Self::Ticking => "beside a tick each ms",
        }
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
    /// Mean time, in seconds.
    fn time(&self, work: Work, place: Place) -> Option<f64> {
        let here = |m: &&super::run::Measurement| {
            let same = matches!(m.point.linux, Linux::Timed { work: w, .. } if w == work);
            same && Place::of(&m.point) == place
        };
        Some(self.of(Experiment::Overhead).find(here)?.runs.steady().mean())
    }

    /// More than native, in percent.
    fn lost(&self, work: Work, place: Place) -> Option<f64> {
        Some(100.0 * (self.time(work, place)? / self.time(work, Place::Native)? - 1.0))
    }

    /// The goals.
    pub(super) fn overhead_checks(&self) -> Vec<Check> {
        if !self.planned.iter().any(|point| point.experiment == Experiment::Overhead) {
            return Vec::new();
        }
        let check = |name, place, most| {
            Check::new(name, self.lost(Work::Cpu, place), "%", Goal::AtMost(most))
        };
        vec![
            check("computing under Cassata: loss", Place::Alone, ALONE_PERCENT),
            check("computing beside a tick each ms: loss", Place::Ticking, TICKING_PERCENT),
        ]
    }

    /// All times.
    pub(super) fn overhead_table(&self) -> Table {
        let head = ["four vCPUs do", "native", "under Cassata", "beside a tick each ms"];
        let mut table = Table::new("What Linux loses", head);
        let measured = |work: &Work| {
            [Place::Native, Place::Alone, Place::Ticking]
                .iter()
                .any(|&p| self.time(*work, p).is_some())
        };
        for work in Work::ALL.into_iter().filter(measured) {
            let native = self.time(work, Place::Native);
            let cell = |place| {
                let (time, lost) = (self.time(work, place)?, self.lost(work, place)?);
                Some(format!("{:.2} ms ({lost:+.2} %)", 1e3 * time))
            };
            table.row([
                about(work).into(),
                native.map_or("-".into(), |s| format!("{:.2} ms", 1e3 * s)),
                cell(Place::Alone).unwrap_or_else(|| "-".into()),
                cell(Place::Ticking).unwrap_or_else(|| "-".into()),
            ]);
        }
        table
    }

    /// One line for each mean.
    pub(super) fn overhead_csv(&self) -> String {
        let mut text = String::from("work,stage,mean_s,lost_percent\n");
        for work in Work::ALL {
            for place in [Place::Native, Place::Alone, Place::Ticking] {
                if let Some(time) = self.time(work, place) {
                    let lost = self.lost(work, place);
                    let lost = lost.map_or_else(String::new, |lost| lost.to_string());
                    let _ = writeln!(text, "{},{},{time},{lost}", work.name(), place.name());
                }
            }
        }
        text
    }

    /// A bar for each loss; who is faster has none.
    pub(super) fn overhead_figure(&self) -> Markup {
        let mut losses = Vec::new();
        for work in Work::ALL {
            for place in [Place::Alone, Place::Ticking] {
                if let Some(lost) = self.lost(work, place) {
                    let name = format!("{}, {}", work.name(), place.name());
                    losses.push(Row { name, value: lost.max(0.0), text: format!("{lost:+.2} %") });
                }
            }
        }
        rows(&losses, "longer than on the bare board, %")
    }

    /// For programs.
    pub(super) fn overhead_json(&self) -> Value {
        let one = |work: Work| {
            let value = json!({
                "native_s": self.time(work, Place::Native),
                "alone_s": self.time(work, Place::Alone),
                "ticking_s": self.time(work, Place::Ticking),
                "alone_lost_percent": self.lost(work, Place::Alone),
                "ticking_lost_percent": self.lost(work, Place::Ticking),
            });
            (work.name().to_owned(), value)
        };
        Value::Object(Work::ALL.map(one).into_iter().collect::<Map<_, _>>())
    }

    /// Ours beside the paper's.
    pub(super) fn overhead_finding(&self) -> String {
        let of = |work| {
            self.lost(work, Place::Ticking).map_or("-".into(), |lost| format!("{lost:.2} %"))
        };
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
            assert!(all.overhead_csv().contains("cpu,native,1,0\n"), "{}", all.overhead_csv());
            all.overhead_checks().iter().map(Check::holds).collect::<Vec<_>>()
        };
        assert_eq!(holding(1.009, 1.013), [true, true]);
        assert_eq!(holding(1.011, 1.015), [false, false]);
    }
}
