//! Linux with PREEMPT_RT as the real-time guest: what it is told, how late its process was, and what is demanded.

use super::case::{Case, Load, Measure};
use super::system::System;
use super::table::beside;
use super::{Found, Seen};
use crate::dataset::{Dataset, Unit};
use crate::observe::Distribution;
use crate::results::{Check, Goal};

/// What the latencies are called in what was measured.
pub const NAME: &str = "cyclictest";

/// Microseconds between two wake-ups: that of `bench kvm-rt` beside a load, which divides neither Linux's tick nor a
/// millisecond.
pub const PERIOD_US: u64 = 1_009;
pub const PERIOD_NS: u32 = 1_000 * PERIOD_US as u32;

/// Returns the uptime at which it begins, hundredths of a second: by then the other Linux has booted and set to work. A
/// run in which it has not is an error.
const fn begin(system: System) -> u32 {
    match system {
        // There is nothing to wait for. Bao has the bare-metal guest only.
        System::Board | System::Bao => 200,
        // Both boot at once, on one core.
        System::Cassata { .. } | System::Xen(_) => 400,
        // The other one has booted, and is interrupted while this one boots.
        System::Kvm(_) => 300,
    }
}

/// Returns its command line, for so many wake-ups.
pub fn told(system: System, wakes: u32) -> String {
    format!(
        "console=ttyAMA0 rdinit=/peers/cyclictest quiet loglevel=4 nokaslr peers.begin={} \
         peers.wakes={wakes} peers.period_us={PERIOD_US}",
        begin(system)
    )
}

/// Returns true if a run has it, and another Linux beside it that does this.
fn is_beside(case: &Case, beside: Load) -> bool {
    matches!(case.measure, Measure::Cyclictest { load, .. } if load == beside)
}

impl Found {
    fn cyclictest_of(&self, system: System, beside: Load) -> Option<&Distribution> {
        self.find(|case| is_beside(case, beside) && case.system == system)?.values_ns.get(NAME)
    }

    /// How late a process of a real-time Linux is.
    pub fn cyclictest(&self) -> Dataset {
        let is_it = |seen: &&Seen| matches!(seen.case.measure, Measure::Cyclictest { .. });
        let rows = self.measurements.iter().filter(is_it);
        let title = "PREEMPT_RT Linux as the real-time guest, one core: wake-ups of cyclictest, from when the timer was \
                     due until the process ran";
        Dataset::of("cyclictest", title, rows)
            .name("system", |seen| seen.case.system.words())
            .head("")
            .name("beside", |seen| beside(seen))
            .name("missed", |seen| seen.missed)
            .summary(Unit::Nanoseconds, |_| 1.0, |seen| seen.values_ns.get(NAME))
            .done()
    }

    /// Returns how many periods cyclictest slept through under Cassata, however that is set; `None` unless all of
    /// these rows were measured.
    fn cyclictest_missed(&self, beside: Load) -> Option<f64> {
        let is_ours =
            |case: &&Case| matches!(case.system, System::Cassata { .. }) && is_beside(case, beside);
        let missed = |case: &Case| Some(self.find(|seen| seen == case)?.missed as f64);
        self.planned.iter().filter(is_ours).map(missed).sum()
    }

    /// Returns what is demanded: the longest latency beside the best peer's, and that no period is missed, since
    /// cyclictest has no latency of those.
    pub fn cyclictest_checks(&self) -> Vec<Check> {
        let planned = |load: &Load| self.plans(|case| is_beside(case, *load));
        let loads = Load::ALL.into_iter().filter(planned);
        let check = |load: Load| {
            let most = |system| Some(f64::from(self.cyclictest_of(system, load)?.max()?));
            let (beside, missed) = (load.words(), self.cyclictest_missed(load));
            let none = format!("periods missed by cyclictest, {beside}");
            [
                self.latency_check(&format!("cyclictest in Linux, {beside}"), most),
                Check::new(&none, missed, "", Goal::Exactly(0.0)),
            ]
        };
        loads.flat_map(check).collect()
    }
}
