//! A guest on Embassy, which is no FreeRTOS: its task has a deadline beside hackbench, on a core that Linux has too.

use super::stock;
use crate::demo::{self, RTOS};
use crate::guests::LinuxWork;
use crate::suite::{Bench, Scenario};
use miette::Result;
use std::time::Duration;

/// The description, below the project's root.
const SYSTEM: &str = "systems/embassy.toml";
/// Virtual time within which Linux boots and has done its work: it needs three seconds.
const LIMIT: Duration = Duration::from_secs(20);
/// How late the guest's task may be at worst, nanoseconds.
const LATEST_NS: u64 = 1_000;

/// Returns the scenario.
pub fn scenario() -> Scenario {
    let about = "a guest on Embassy meets each deadline beside hackbench, on a shared core";
    Scenario::new("embassy", about, meet).shipped()
}

fn meet(bench: &Bench) -> Result<()> {
    let bundle = bench.pack(&bench.described(SYSTEM, &[])?)?;
    let demo = demo::run(bench.session(&bundle, LIMIT)?, LinuxWork::Runs(2))?;
    let observer = &demo.run.observer;
    let mut objections = stock::late(observer);
    if !demo.linux().did(demo.work) {
        objections.push(format!("hackbench did not finish ({:?})", demo.linux().failed));
    }
    let reports = observer.layout.vm(RTOS).and_then(|vm| observer.reports(vm));
    let seen = reports.and_then(|reports| reports.lateness()).unwrap_or_default();
    let worst_ns = seen.worst_dispatch_ns();
    if worst_ns.is_none_or(|worst_ns| worst_ns > LATEST_NS) {
        objections.push(format!("its task was {worst_ns:?} ns late, not {LATEST_NS}"));
    }
    bench.tell(&format!(
        "{} activations, {} missed, {} ns late at worst",
        seen.activations,
        seen.missed,
        worst_ns.unwrap_or_default()
    ))?;
    bench.judge(&demo.run, demo.answer().outcome, &objections)
}
