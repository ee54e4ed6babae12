//! The demonstrations as tests: that of shared cores until Linux has finished one run, and that of a link.

use super::{control, run};
use crate::guests::LinuxWork;
use crate::suite::{Bench, Scenario};
use miette::Result;
use std::time::Duration;

/// Virtual time within which Linux boots and has done its work: it needs less than two seconds.
const LIMIT: Duration = Duration::from_secs(10);

/// Virtual time within which the motor has turned for long enough.
const CONTROL_LIMIT: Duration = Duration::from_secs(20);

/// Returns the scenarios.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    let about = "Linux and FreeRTOS share cores and both do their work";
    let demo = Scenario::new("demo", about, demonstrate).shipped();
    let about = "a motor that FreeRTOS controls follows what Linux orders, and Linux sees that";
    vec![demo, Scenario::new("demo-control", about, control).shipped()]
}

fn control(bench: &Bench) -> Result<()> {
    let bundle = bench.pack(&bench.described(control::SYSTEM, &control::edits())?)?;
    let control = control::run(bench.session(&bundle, CONTROL_LIMIT)?)?;
    let outcome = control.answer()?.outcome;
    let objections = outcome.objections();
    bench.judge(&control.run, outcome, &objections)
}

fn demonstrate(bench: &Bench) -> Result<()> {
    let bundle = bench.pack(&bench.described("systems/demo.toml", &[])?)?;
    let demo = run(bench.session(&bundle, LIMIT)?, LinuxWork::Runs(1))?;
    let outcome = demo.answer().outcome;
    let objections = outcome.objections();
    bench.judge(&demo.run, outcome, &objections)
}
