//! Runs that never end: a guest that hangs, and a clock that stands still.

use super::staged::description;
use crate::results::{Check, Outcome};
use crate::session::{End, Session};
use crate::suite::{Bench, Scenario};
use miette::{Result, miette};
use rustix::process::{Pid, Signal, kill_process};
use std::time::Duration;

/// A system that never ends.
const ENDLESS: &str = "visitor-gone";
/// Virtual time after which the first scenario ends, no multiple of what a machine is held at.
const SHORT: Duration = Duration::from_micros(20_300);
/// Real time after which the second one is reported.
const PATIENCE: Duration = Duration::from_secs(12);

/// Returns the scenario of a guest that hangs.
#[must_use]
pub fn hung() -> Scenario {
    let about = "a guest that never ends is ended at the limit, to the nanosecond";
    Scenario::new("hung", about, |bench: &Bench| {
        let run = session(bench, SHORT)?.run(|_| false)?;
        let at = run.virtual_time();
        let mut outcome = Outcome::new("hung");
        let is_exact = run.end == End::TimeOver && at == Some(SHORT);
        outcome.check(Check::done("the run ends at its limit", is_exact));
        let objection = (!is_exact).then(|| format!("it ended at {at:?}, not {SHORT:?}"));
        bench.judge(&run, outcome, &Vec::from_iter(objection))
    })
}

/// Returns the scenario of a clock that stands still: QEMU is stopped.
#[must_use]
pub fn stalled() -> Scenario {
    let about = "virtual time that stands still is reported, with what each core was doing";
    Scenario::new("stalled", about, |bench: &Bench| {
        let mut stopped = Ok(());
        let session = session(bench, Duration::from_secs(5))?.patient_for(PATIENCE);
        let cores = session.layout.pcpus;
        let ended = session.run(|now| {
            // The instrument has counted on every core, and has written that down.
            let counts = now.machine.statistics();
            if counts.is_some_and(|counts| counts.vcpus.len() == cores) {
                stopped = stop(now.machine.id());
            }
            stopped.is_err()
        });
        stopped?;
        let text = match ended {
            Err(error) => error.to_string(),
            Ok(run) => return Err(miette!("it did not stall: {:?}", run.end)),
        };
        let is_complete = text.contains("virtual time has stood at ")
            && (0..cores).all(|core| text.contains(&format!("core {core}: ")));
        let mut outcome = Outcome::new("stalled");
        outcome.check(Check::done("the report names the time and every core", is_complete));
        bench.keep(&outcome)?;
        is_complete.then_some(()).ok_or_else(|| miette!("the report says: {text}"))
    })
}

fn session(bench: &Bench, limit: Duration) -> Result<Session<'_>> {
    let bundle = bench.pack(&bench.described(&description(ENDLESS), &[])?)?;
    bench.session(&bundle, limit)
}

/// Stops a process, which then does nothing more.
fn stop(id: u32) -> Result<()> {
    let id = i32::try_from(id).ok().and_then(Pid::from_raw);
    let id = id.ok_or_else(|| miette!("QEMU has no process id"))?;
    kill_process(id, Signal::STOP).map_err(|error| miette!("cannot stop QEMU: {error}"))
}
