//! How late a real-time process of Linux's is beside the RTOS, and the RTOS beside it (vlk, section 4.3).

use super::plan::{JITTER_PERCENT, LONG_PERIOD_US};
use super::point::{Experiment, Linux, Point, Rank, Rtos, Stage, beside};
use super::policy::NONE;
use super::run::Measurement;
use super::throughput::timed;
use super::{Lhp, estimated};
use crate::bench::Extent;
use crate::bench::sample::Estimate;
use crate::dataset::{Dataset, Unit};
use crate::guests::Wakes;
use crate::observe::Distribution;
use crate::results::{Check, Goal};

/// What the RTOS burns of its period, in thousandths.
const LOAD_PERMILLE: u32 = 300;
/// The policy of the RTOS where it makes way.
const MAKES_WAY: &str = "rt-vcpu";
/// Most that the RTOS may be late where it makes way: a stay of another guest at EL2 and a migration,
/// nanoseconds. Each is 3 µs at most (`lab::paths`, `bench el2`).
const STAY_AND_MIGRATION_NS: f64 = 6_000.0;

/// Most that the longest latency of Linux's process is above the RTOS, that below it being 1, if it waits
/// for no work of the RTOS's: that work is what most of the latter is, and half of it cannot be chance.
const SOONER: f64 = 0.5;
/// Most that hackbench takes longer where the RTOS makes way, if that does "not harm too much" (vlk, section
/// 4.3): no more than the goal of on-demand is above the ideal line.
const HARMED: f64 = 1.05;

/// A figure of something, nanoseconds, with its name.
type Figure<T> = (&'static str, fn(&T) -> Option<f64>);

/// A row: what Linux's other vCPUs do, and where the first one stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    hackbench: bool,
    rank: Rank,
}

impl Row {
    /// All that are measured.
    fn all() -> impl Iterator<Item = Self> {
        let loads = [false, true].into_iter();
        loads.flat_map(|hackbench| Rank::ALL.map(|rank| Self { hackbench, rank }))
    }

    fn policy(self) -> &'static str {
        if self.rank == Rank::Below { NONE } else { MAKES_WAY }
    }

    fn name(self) -> String {
        format!("{}, {}", beside(self.hackbench), self.rank.about())
    }
}

/// Returns the points. There is no room for them in a quick run.
pub fn points(extent: Extent) -> Vec<Point> {
    let wakes = match extent {
        Extent::Paper => 10_000,
        Extent::Full => 800,
        Extent::Quick => return Vec::new(),
    };
    let point = |row: Row| {
        let rtos = Rtos::new(LOAD_PERMILLE, LONG_PERIOD_US, 0);
        let rtos = Rtos { jitter_percent: JITTER_PERCENT, ..rtos };
        let Row { hackbench, rank } = row;
        let stage = Stage::Shared { policy: row.policy().into() };
        let linux = Linux::Realtime { wakes, hackbench, rank };
        Point::new(Experiment::Realtime, &linux, stage, Some(rtos))
    };
    Row::all().map(point).collect()
}

impl Rank {
    const ALL: [Self; 4] = [Self::Below, Self::Above, Self::Unmarked, Self::Marked];
    /// Each rank in which the process is more urgent than the RTOS, beside that in which it is not.
    const PAIRS: [[Self; 2]; 2] = [[Self::Above, Self::Below], [Self::Marked, Self::Unmarked]];

    fn about(self) -> &'static str {
        match self {
            Self::Below => "below the RTOS",
            Self::Above => "above the RTOS",
            Self::Unmarked => "not marked",
            Self::Marked => "marked",
        }
    }
}

impl Lhp {
    fn realtime(&self, row: Row) -> Option<&Measurement> {
        let here = |m: &&Measurement| {
            matches!(m.point.linux, Linux::Realtime { hackbench, rank, .. }
                if Row { hackbench, rank } == row)
        };
        self.of(Experiment::Realtime).find(here)
    }

    fn realtime_rows(&self) -> Vec<Row> {
        Row::all().filter(|row| self.realtime(*row).is_some()).collect()
    }

    /// Returns the longest latency of Linux's process, nanoseconds.
    fn process_max(&self, row: Row) -> Option<f64> {
        Some(self.realtime(row)?.wakes?.max_ns as f64)
    }

    /// Returns the mean latency of Linux's process, nanoseconds. The process tells no single latency.
    fn process_mean(&self, row: Row) -> Option<Estimate> {
        let Wakes { count, min_ns, mean_ns, max_ns } = self.realtime(row)?.wakes?;
        Some(Estimate::between(count, mean_ns as f64, [min_ns as f64, max_ns as f64]))
    }

    /// Returns hackbench's time beside Linux's process.
    fn beside_process(&self, row: Row) -> Option<Estimate> {
        Some(timed(&self.realtime(row)?.runs.steady()))
    }

    pub(super) fn realtime_checks(&self) -> Vec<Check> {
        if !self.plans(Experiment::Realtime) {
            return Vec::new();
        }
        let mut checks = Vec::new();
        for hackbench in [false, true] {
            let planned = |p: &Point| matches!(p.linux, Linux::Realtime { hackbench: its, .. } if its == hackbench);
            if !self.planned.iter().any(planned) {
                continue;
            }
            let load = beside(hackbench);
            for [urgent, other] in Rank::PAIRS {
                let [urgent, other] = [urgent, other].map(|rank| Row { hackbench, rank });
                let how = urgent.rank.about();
                checks.extend(self.process_checks(urgent, other));
                let rtos = self.realtime(urgent).and_then(|m| m.rtos.as_ref());
                let name = format!("{load}, Linux {how}: activations that the RTOS missed");
                let missed = rtos.map(|rtos| rtos.missed as f64);
                checks.push(Check::new(&name, missed, "activations", Goal::AtMost(0.0)));
                let name = format!("{load}, Linux {how}: worst dispatch latency of the RTOS");
                let worst = rtos.and_then(|rtos| rtos.dispatch.max()).map(f64::from);
                checks.push(Check::new(&name, worst, "ns", Goal::AtMost(STAY_AND_MIGRATION_NS)));
            }
        }
        checks
    }

    /// Returns what is stated of a process that is more urgent than the RTOS, beside one that is not.
    fn process_checks(&self, urgent: Row, other: Row) -> Vec<Check> {
        let (load, how, instead) =
            (beside(urgent.hackbench), urgent.rank.about(), other.rank.about());
        let both = |of: &dyn Fn(Row) -> Option<Estimate>| Some(of(urgent)?.over(of(other)?));
        let name = |which: &str| {
            format!("{load}: {which} latency of Linux's process {how}, {instead} being 1")
        };
        let mean = both(&|row| self.process_mean(row));
        let max = |row| self.process_max(row);
        let longest = max(urgent).zip(max(other)).map(|(a, b)| a / b);
        let mut checks = vec![
            estimated(&name("mean"), mean, "", Goal::AtMost(1.0)),
            Check::new(&name("longest"), longest, "", Goal::AtMost(SOONER)),
        ];
        if urgent.hackbench {
            let name = format!("time of hackbench, Linux {how}, {instead} being 1");
            let ratio = both(&|row| self.beside_process(row));
            checks.push(estimated(&name, ratio, "", Goal::AtMost(HARMED)));
        }
        checks.into_iter().map(Check::as_statement).collect()
    }

    /// Returns what both were like, row by row.
    pub(super) fn realtime_data(&self) -> Dataset {
        let of = |row: &Row| self.realtime(*row);
        let title = "A real-time process of Linux's on core 0, and the RTOS there";
        let mut all = Dataset::of("realtime", title, self.realtime_rows())
            .name("setting", |row| row.name())
            .head("Linux's other vCPUs, its first")
            .name("wakes", |row| of(row)?.wakes.map(|wakes| wakes.count))
            .head("process: n");
        let process: [Figure<Wakes>; 3] = [
            ("min", |wakes| Some(wakes.min_ns as f64)),
            ("mean", |wakes| Some(wakes.mean_ns as f64)),
            ("max", |wakes| Some(wakes.max_ns as f64)),
        ];
        for (name, figure) in process {
            let value = |row: &Row| of(row)?.wakes.as_ref().and_then(figure);
            all = all
                .column(&format!("process_{name}"), Unit::Nanoseconds, value)
                .head(&format!("process: {name}"));
        }
        let rtos: [Figure<Distribution>; 2] =
            [("mean", Distribution::mean), ("max", |all| all.max().map(f64::from))];
        for (name, figure) in rtos {
            let value = |row: &Row| of(row)?.rtos.as_ref().and_then(|rtos| figure(&rtos.dispatch));
            all = all
                .column(&format!("rtos_{name}"), Unit::Nanoseconds, value)
                .head(&format!("RTOS: {name}"));
        }
        all.name("activations", |row| Some(of(row)?.rtos.as_ref()?.activations))
            .head("RTOS: n")
            .name("missed", |row| Some(of(row)?.rtos.as_ref()?.missed))
            .column("hackbench", Unit::Seconds, |row| {
                let runs = &of(row)?.runs;
                (runs.0.len() > 1).then(|| runs.steady().mean())
            })
            .shown_in(Unit::Milliseconds, 1)
            .column("interval", Unit::Seconds, |row| {
                let half = self.beside_process(*row)?.half;
                half.is_finite().then_some(half)
            })
            .head("95 % interval, ±")
            .shown_in(Unit::Milliseconds, 1)
            .name("runs", |row| Some(of(row)?.runs.steady().0.len()).filter(|runs| *runs > 0))
            .head("hackbench: n")
            .name("migrations", |row| self.rtos_migrations(*row))
            .head("RTOS migrated")
            .done()
    }

    fn rtos_migrations(&self, row: Row) -> Option<u64> {
        let vcpus = &self.realtime(row)?.vcpus;
        Some(vcpus.iter().filter(|vcpu| vcpu.name.starts_with("rtos")).map(|v| v.migrations).sum())
    }

    /// Ours, for the text.
    pub(super) fn realtime_finding(&self) -> String {
        let each = self.realtime_rows().into_iter().filter_map(|row| {
            let rtos = self.realtime(row)?.rtos.as_ref()?.dispatch.max()?;
            let (process, rtos) = (self.process_max(row)? / 1e3, f64::from(rtos) / 1e3);
            Some(format!("{}: {process:.1} µs, and the RTOS {rtos:.2} µs", row.name()))
        });
        let each: Vec<_> = each.collect();
        format!("Ours, the longest latency of Linux's process: {}.", each.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{late, only};
    use crate::bench::sample::Sample;
    use crate::guests::Wakes;
    use crate::results::UNDECIDED;

    #[test]
    fn a_process_above_the_rtos_has_to_be_sooner() {
        let found = |above_ns, rtos_ns, missed| {
            let process = |name: &str, max_ns, late_ns| {
                let mut all = late(name, &[(600, 99), (late_ns, 1)]);
                let mean_ns = max_ns / 2;
                all.wakes = Some(Wakes { count: 900, min_ns: 5_000, mean_ns, max_ns });
                all.runs = Sample(vec![9.0, 0.1, 0.1]);
                all
            };
            let mut above = process("realtime-rt-vcpu-above-hackbench", above_ns, rtos_ns);
            above.rtos.as_mut().unwrap().missed = missed;
            let all = only(vec![process("realtime-none-below-hackbench", 300_000, 900), above]);
            assert!(all.realtime_finding().contains("300.0 µs"));
            assert_eq!(all.realtime_data().json()[0]["process_max_ns"], 300_000.0);
            let known = all.realtime_checks().into_iter().filter(|check| check.value.is_some());
            known.map(|check| check.verdict()).collect::<Vec<_>>()
        };
        // The process in the mean and at worst, hackbench; missed activations, the RTOS at worst.
        let fine = ["agrees", "agrees", "agrees", "holds", "holds"];
        assert_eq!(found(20_000, 6_000, 0), fine);
        let equal = [UNDECIDED, "differs", "agrees", "FAILS", "FAILS"];
        assert_eq!(found(300_000, 6_001, 1), equal);
        assert_eq!(found(160_000, 6_000, 0)[..2], ["agrees", "differs"], "more than half is left");
        assert_eq!(found(310_000, 6_000, 0)[..2], [UNDECIDED, "differs"]);
        assert_eq!(found(400_000, 6_000, 0)[..2], ["differs", "differs"]);
    }
}
