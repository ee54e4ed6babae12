//! A part of the bench as a machine test: a stock Linux says by the module what it runs.

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

/// Runs of the program. With fewer a process that waits for the end of one may have been lucky.
const RUNS: u32 = 3;

/// Returns the scenarios. The first takes a minute, as two Linuxes boot: no other test has the module. The
/// others need what the launcher makes only when they are asked for.
pub fn scenarios() -> Vec<Scenario> {
    let about = "a stock Linux is boosted by what a module says of its real-time process";
    let boosted = Scenario::new("boosted-linux", about, measure).shipped();
    let about = "each program of `bench kvm-rt` runs beside a guest with a boost";
    let programs = Scenario::new("programs-boosted", about, run_programs).shipped().by_name();
    vec![boosted, programs]
}

fn run_programs(bench: &Bench) -> Result<()> {
    let mut outcome = Outcome::new("programs-boosted");
    for program in Program::packed() {
        let case = Case { control: Control::Freertos, tuning: Tuning::Calls, program, runs: 1 };
        let name = case.name();
        let seen = run::run(&case, &room(bench, &name)?, &mut |_| {})?;
        outcome.figure(&name, json!({ "wakes": seen.wakes, "runs_s": seen.runs }));
        let latest = seen.wakes.max_ns;
        ensure!(latest <= PROMPT_NS, "beside {} FreeRTOS was late by {latest} ns", program.name());
    }
    bench.keep(&outcome)
}

fn measure(bench: &Bench) -> Result<()> {
    let mut outcome = Outcome::new("boosted-linux");
    let (control, tuning) = (Control::Linux, Tuning::Line);
    let case = Case { control, tuning, program: Program::Compute, runs: RUNS };
    let name = case.name();
    let seen = run::run(&case, &room(bench, &name)?, &mut |_| {})?;
    outcome.figure(&name, json!({ "wakes": seen.wakes, "runs_s": seen.runs }));
    let latest = seen.wakes.max_ns;
    ensure!(latest <= PROMPT_NS, "the process was late by {latest} ns");
    bench.keep(&outcome)
}
