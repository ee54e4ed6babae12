//! Parts of the bench as machine tests: a stock Linux says by the module what it runs, and FreeRTOS by its hook.

use super::super::pair::CONTROL;
use super::super::program::Program;
use super::case::{Case, Control, Tuning};
use super::{machine, run};
use crate::bench::campaign::room;
use crate::bench::store::Case as _;
use crate::results::Outcome;
use crate::suite::{Bench, Scenario};
use miette::{Result, ensure};
use serde_json::json;
use std::time::Duration;

/// A process that waits for its own guest's other work, or for the other guest, is late by much more.
const PROMPT_NS: u64 = 500_000;

/// FreeRTOS begins as soon as no other guest is waited for.
const FREERTOS_PROMPT_NS: u64 = 5_000;

/// Processes that `boosted-itself` sees, each with one wake-up.
const PROCESSES: u64 = 12;
/// Boosts that each of them brings at least: one when it becomes a real-time process, and one when it wakes. A guest that
/// tells of switches only brings the latter.
const LEAST_EACH: u64 = 2;
/// Virtual time for wake-ups, in which Linux boots.
const WAKES_LIMIT: Duration = Duration::from_secs(20);

/// Waits of `boosted-packets` of which it tells at once, and how often it does: the other guest's program begins and
/// ends meanwhile.
const WAITS: u32 = 20;
const TOLD: u64 = 4;

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
    let about = "a process of Linux is urgent as soon as it has become a real-time one";
    let itself = Scenario::new("boosted-itself", about, becomes_urgent);
    let about = "a process of Linux that a softirq wakes is not late, either";
    let packets = Scenario::new("boosted-packets", about, waits_for_packets);
    let about = "each program of `bench kvm-rt` runs beside a guest with a boost";
    let programs = Scenario::new("programs-boosted", about, run_programs).shipped().by_name();
    vec![linux.shipped(), itself.shipped(), packets.shipped(), freertos.shipped(), programs]
}

/// Has one process after the other make itself a real-time one: there is no switch to it then. A process that its
/// guest does not tell of waits for the other guest until it first sleeps, which few do in a run.
fn becomes_urgent(bench: &Bench) -> Result<()> {
    let case =
        Case { control: Control::Linux, tuning: Tuning::Calls, program: Program::Idle, runs: 1 };
    let seen = wake(bench, "boosted-itself", &case, "cassata.wakes=1", PROCESSES)?;
    let Woken { wakes: processes, boosts, .. } = seen;
    ensure!(
        boosts >= LEAST_EACH * processes,
        "{processes} processes that became urgent brought {boosts} boosts"
    );
    Ok(())
}

/// Has a process wait for what softirqs do, behind the handler of an interrupt. If the boost ends with the handler, the
/// other guest has the core then until the next interrupt, a tick later or more.
fn waits_for_packets(bench: &Bench) -> Result<()> {
    let program = Program::Compute;
    let case = Case { control: Control::Linux, tuning: Tuning::Calls, program, runs: 8 };
    let told = format!("cassata.wakes={WAITS} cassata.packets");
    let seen = wake(bench, "boosted-packets", &case, &told, TOLD * u64::from(WAITS))?;
    let latest_ns = seen.latest_ns;
    ensure!(latest_ns < PROMPT_NS, "a process that a softirq wakes is late by {latest_ns} ns");
    Ok(())
}

/// What [`wake`] saw of the guest that is boosted.
#[derive(Default)]
struct Woken {
    wakes: u64,
    latest_ns: u64,
    boosts: u64,
}

/// Runs `case` until processes of its Linux have woken `least` times, and keeps what it saw as `name`. The words `told`
/// on the kernel's command line say what they wait for.
fn wake(bench: &Bench, name: &str, case: &Case, told: &str, least: u64) -> Result<Woken> {
    let text = machine::description(case, &bench.root)
        .replace(&format!("cassata.wakes={}", machine::WAKES), told);
    let bundle = bench.pack(&bench.kept(&text)?)?;
    let mut seen = Woken::default();
    let run = bench.session(&bundle, WAKES_LIMIT)?.run(|now| {
        if let Some(wakes) = now.said.guests.get(CONTROL).and_then(|guest| guest.linux.all_wakes())
        {
            (seen.wakes, seen.latest_ns) = (wakes.count, wakes.max_ns);
        }
        seen.boosts = now.observer.latest().map_or(0, |now| now.vcpus[CONTROL].boosts);
        seen.wakes >= least
    })?;
    run.without_faults()?;
    let mut outcome = Outcome::new(name);
    let Woken { wakes, latest_ns, boosts } = seen;
    outcome.figure("wakes", json!({ "count": wakes, "max_ns": latest_ns, "boosts": boosts }));
    bench.keep(&outcome)?;
    ensure!(wakes >= least, "{}", run.unfinished("too few wake-ups"));
    Ok(seen)
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
