//! The demonstration as a test: until Linux has finished one run.

use super::{DemoError, LinuxWork, Options, outcome, run};
use crate::bundle::Bundle;
use crate::machine::{Time, VirtualTime};
use crate::suite::{Bench, Scenario};
use crate::view::Silent;
use miette::{Result, miette};
use std::time::Duration;

/// Long for a busy host, short for a hang.
const LIMIT: Duration = Duration::from_secs(120);

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario {
    let about = "Linux and FreeRTOS share cores and both do their work";
    Scenario::new("demo", about, demonstrate)
}

fn demonstrate(bench: &Bench) -> Result<()> {
    let checked = system::load(&bench.root.join("systems/demo.toml"))?;
    let image = bench.directory.join("system.elf");
    let bundle = Bundle::pack(&checked, bench.hypervisor, &image)?;
    let time = VirtualTime::new(&bench.instrument, &bench.qemu, &bench.directory)?;
    let options = Options {
        time: Time::Virtual(time),
        limit: LIMIT,
        work: LinuxWork::Runs(1),
        directory: bench.directory.clone(),
    };
    let interrupt = bench.interrupt.clone();
    let demo = run(&bundle, &bench.qemu, &options, &mut Silent, interrupt)
        .map_err(|error: DemoError| miette::Report::from(error))?;
    let outcome = outcome(&demo);
    let failed = outcome.checks().iter().filter(|check| !check.holds());
    let failed: Vec<_> = failed
        .map(|check| format!("{}: {}, goal {}", check.name, check.value_text(), check.goal))
        .collect();
    if failed.is_empty() { Ok(()) } else { Err(miette!("{}", failed.join("\n"))) }
}
