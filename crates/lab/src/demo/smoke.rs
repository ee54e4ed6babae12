//! The demonstration as a test: until Linux has finished one run.

use super::run;
use crate::guests::LinuxWork;
use crate::suite::{Bench, Scenario};
use miette::Result;
use std::time::Duration;

/// Virtual time within which Linux boots and has done its work: it needs less than two seconds.
const LIMIT: Duration = Duration::from_secs(10);

/// Returns the scenario.
#[must_use]
pub fn scenario() -> Scenario {
    let about = "Linux and FreeRTOS share cores and both do their work";
    Scenario::new("demo", about, demonstrate).shipped()
}

fn demonstrate(bench: &Bench) -> Result<()> {
    let bundle = bench.pack(&bench.described("systems/demo.toml", &[])?)?;
    let demo = run(bench.session(&bundle, LIMIT)?, LinuxWork::Runs(1))?;
    let outcome = demo.answer().outcome;
    let objections = outcome.objections();
    bench.judge(&demo.run, outcome, &objections)
}
