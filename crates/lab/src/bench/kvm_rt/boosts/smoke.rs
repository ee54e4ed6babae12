//! Parts of the bench as machine tests: a stock Linux says by the module what it runs, and FreeRTOS by its hook.

use super::super::program::Program;
use super::case::{Case, Control, Tuning};
use super::run;
use crate::bench::campaign::room;
use crate::bench::store::Case as _;
use crate::results::Outcome;
use crate::suite::{Bench, Scenario};
use miette::{Result, ensure};
use serde_json::json;

/// A process that waits for its own guest's other work, or for the other guest, is late by much more.
const PROMPT_NS: u64 = 500_000;

/// FreeRTOS begins as soon as no other guest is waited for.
const FREERTOS_PROMPT_NS: u64 = 5_000;

/// Runs of the program. With fewer a process that waits for the end of one may have been lucky.
const RUNS: u32 = 3;

/// Returns the scenarios. The first takes a minute, as two Linuxes boot: no other test has the module. The
/// others need what the launcher makes only when they are asked for.
pub fn scenarios() -> Vec<Scenario> {
    let about = "a stock Linux is boosted by what a module says of its real-time process";
    let linux = Scenario::new("boosted-linux", about, |bench| {
        run_line(bench, "boosted-linux", Control::Linux, PROMPT_NS)
    });
    let about = "FreeRTOS is boosted by what its line says of the task that it runs";
    let freertos = Scenario::new("boosted-freertos", about, |bench| {
        run_line(bench, "boosted-freertos", Control::Freertos, FREERTOS_PROMPT_NS)
    });
    let about = "each program of `bench kvm-rt` runs beside a guest with a boost";
    let programs = Scenario::new("programs-boosted", about, run_programs).shipped().by_name();
    vec![linux.shipped(), freertos.shipped(), programs]
}

fn run_programs(bench: &Bench) -> Result<()> {
    let mut outcome = Outcome::new("programs-boosted");
    for program in Program::packed() {
        let case = Case { control: Control::Freertos, tuning: Tuning::Calls, program, runs: 1 };
        measure(bench, &case, PROMPT_NS, &mut outcome)?;
    }
    bench.keep(&outcome)
}

fn run_line(bench: &Bench, name: &str, control: Control, prompt_ns: u64) -> Result<()> {
    let mut outcome = Outcome::new(name);
    let case = Case { control, tuning: Tuning::Line, program: Program::Compute, runs: RUNS };
    measure(bench, &case, prompt_ns, &mut outcome)?;
    bench.keep(&outcome)
}

/// Refuses a run in which what is urgent was later than `prompt_ns`.
fn measure(bench: &Bench, case: &Case, prompt_ns: u64, outcome: &mut Outcome) -> Result<()> {
    let name = case.name();
    let seen = run::run(case, &room(bench, &name)?, &mut |_| {})?;
    outcome.figure(&name, json!({ "wakes": seen.wakes, "runs_s": seen.runs }));
    let latest = seen.wakes.max_ns;
    ensure!(latest <= prompt_ns, "{name}: what is urgent was late by {latest} ns");
    Ok(())
}
