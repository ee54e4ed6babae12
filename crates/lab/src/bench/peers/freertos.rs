//! FreeRTOS as the real-time guest: what it is told, how late its task was, and what is demanded.

use super::Found;
use super::case::{Case, Load, Measure, PERIOD_US};
use super::machine::begin_ms;
use super::system::System;
use super::table::beside;
use crate::dataset::{Dataset, Unit};
use crate::guests::{Lateness, Spread};
use crate::results::{Check, Goal};

/// Returns its command line. It sleeps until the bare-metal guest would begin.
pub fn told(system: System, activations: u32) -> String {
    let start_ms = begin_ms(system);
    format!("load=0 period_us={PERIOD_US} start_ms={start_ms} activations={activations}")
}

/// Returns true if a run has FreeRTOS, and a Linux beside it that does this.
fn is_beside(case: &Case, beside: Load) -> bool {
    matches!(case.measure, Measure::Freertos { load, .. } if load == beside)
}

/// One of the two times that FreeRTOS measures.
type Kind = fn(Lateness) -> Spread;

impl Found {
    /// Returns what FreeRTOS measured under `system`.
    fn freertos_of(&self, system: System, beside: Load) -> Option<Lateness> {
        self.find(|case| is_beside(case, beside) && case.system == system)?.lateness
    }

    /// How late FreeRTOS is.
    pub fn freertos(&self) -> Dataset {
        let rows = self.measurements.iter().filter_map(|seen| Some((seen, seen.lateness?)));
        let title = "FreeRTOS as the real-time guest, one core: from its tick until its vector, and until its task";
        let ns = |of: fn(Spread) -> u64, spread| Some(of(spread) as f64);
        Dataset::of("freertos", title, rows)
            .name("system", |row| row.0.case.system.words())
            .head("")
            .name("beside", |row| beside(row.0))
            .name("missed", |row| row.1.missed)
            .column("vector_min", Unit::Nanoseconds, |row| ns(|all| all.min_ns, row.1.response))
            .head("vector: min")
            .column("vector_mean", Unit::Nanoseconds, |row| ns(|all| all.mean_ns, row.1.response))
            .head("vector: mean")
            .column("vector_max", Unit::Nanoseconds, |row| ns(|all| all.max_ns, row.1.response))
            .head("vector: max")
            .column("task_min", Unit::Nanoseconds, |row| ns(|all| all.min_ns, row.1.dispatch))
            .head("task: min")
            .column("task_mean", Unit::Nanoseconds, |row| ns(|all| all.mean_ns, row.1.dispatch))
            .head("task: mean")
            .column("task_max", Unit::Nanoseconds, |row| ns(|all| all.max_ns, row.1.dispatch))
            .head("task: max")
            .done()
    }

    /// Returns what is demanded: the longest time until the vector, and until the task, beside the best peer's, and
    /// that no period is missed.
    pub fn freertos_checks(&self) -> Vec<Check> {
        let kinds: [(&str, Kind); 2] =
            [("vector", |all| all.response), ("task", |all| all.dispatch)];
        let mut all = Vec::new();
        for load in Load::ALL.into_iter().filter(|&load| self.plans(|case| is_beside(case, load))) {
            for (name, kind) in kinds {
                let most = |system| Some(kind(self.freertos_of(system, load)?).max_ns as f64);
                all.push(self.latency_check(&format!("FreeRTOS's {name}, {}", load.words()), most));
            }
            let missed = self.freertos_of(System::PLAIN, load).map(|late| late.missed as f64);
            let name = format!("periods missed by FreeRTOS, {}", load.words());
            all.push(Check::new(&name, missed, "", Goal::Exactly(0.0)));
        }
        all
    }
}
