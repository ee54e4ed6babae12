//! What interrupt priority separation is worth to the RTOS: the demonstration
//! with it and without.

use crate::bench::Told;
use crate::bundle::Bundle;
use crate::demo::{self, LinuxWork, Options, RTOS};
use crate::machine::{Time, VirtualTime};
use crate::observe::{Distribution, Reports};
use crate::progress::Progress;
use crate::suite::Bench;
use miette::{Result, miette};
use std::time::Duration;

/// Real time for one machine: long for a busy host, short for a hang.
const LIMIT: Duration = Duration::from_secs(90);

/// Latencies of the RTOS, in ticks of a counter of 1 GHz: nanoseconds.
#[derive(Clone, Debug)]
pub struct Latencies {
    /// Interrupt response times.
    pub response: Distribution,
    /// Dispatch latencies.
    pub dispatch: Distribution,
}

/// The demonstration until Linux has run hackbench once, with priority
/// separation `on` or off.
pub fn measure(on: bool, bench: &Bench, progress: &mut Progress) -> Result<Latencies> {
    let word = if on { "on" } else { "off" };
    let directory = bench.directory.join(format!("separation-{word}"));
    std::fs::create_dir_all(&directory)
        .map_err(|error| miette!("cannot make {}: {error}", directory.display()))?;
    let mut checked = system::load(&bench.root.join("systems/demo.toml"))?;
    checked.priority_separation = on;
    let bundle = Bundle::pack(&checked, bench.hypervisor, &directory.join("system.elf"))?;
    let time = VirtualTime::new(&bench.instrument, &bench.qemu, &directory)?;
    let options =
        Options { time: Time::Virtual(time), limit: LIMIT, work: LinuxWork::Runs(1), directory };
    let what = format!("the demonstration, priority separation {word}");
    let mut view = Told::of(&what, progress);
    let demo = demo::run(&bundle, &bench.qemu, &options, &mut view, bench.interrupt.clone())?;
    let rtos = demo.observer.layout().vm(RTOS).and_then(|vm| demo.observer.reports(vm));
    let seen = rtos.filter(|_| demo.linux.did(options.work)).map(|reports: &Reports| Latencies {
        response: reports.response().clone(),
        dispatch: reports.dispatch().clone(),
    });
    seen.ok_or_else(|| miette!("Linux did not do its work ({what})"))
}
