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
    let case = Case::new(Control::Linux, Tuning::Calls, Program::Idle, 1);
    let told = Told { words: "cassata.wakes=1", each: 1, by: "timer" };
    let seen = wake(bench, "boosted-itself", &case, &told, PROCESSES)?;
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
    let case = Case::new(Control::Linux, Tuning::Calls, program, 8);
    let words = format!("cassata.wakes={WAITS} cassata.packets");
    let told = Told { words: &words, each: WAITS.into(), by: "softirq" };
    let seen = wake(bench, "boosted-packets", &case, &told, TOLD * u64::from(WAITS))?;
    let latest_ns = seen.latest_ns;
    ensure!(latest_ns < PROMPT_NS, "a process that a softirq wakes is late by {latest_ns} ns");
    Ok(())
}

/// What Linux is told of its real-time processes, and has to say of them.
struct Told<'a> {
    /// Words on the kernel's command line.
    words: &'a str,
    /// How often each wakes.
    each: u64,
    /// What wakes it.
    by: &'a str,
}

/// What [`wake`] saw of the guest that is boosted.
#[derive(Default)]
struct Woken {
    wakes: u64,
    latest_ns: u64,
    /// Since the first of the processes was to begin.
    boosts: u64,
}

/// Runs `case` until processes of its Linux, which is `told` what these wait for, have woken `least` times, and keeps
/// what it saw as `name`.
fn wake(bench: &Bench, name: &str, case: &Case, told: &Told<'_>, least: u64) -> Result<Woken> {
    let (text, usual) = (
        machine::description(case, &bench.root),
        format!("cassata.wakes={}", machine::wakes_at_once(case)),
    );
    ensure!(text.contains(&usual), "there is no `{usual}` to replace");
    let bundle = bench.pack(&bench.kept(&text.replace(&usual, told.words))?)?;
    let (mut seen, mut before) = (Woken::default(), None);
    let run = bench.session(&bundle, WAKES_LIMIT)?.run(|now| {
        let Some(linux) = now.said.guests.get(CONTROL).map(|guest| &guest.linux) else {
            return false;
        };
        if let Some(wakes) = linux.all_wakes() {
            (seen.wakes, seen.latest_ns) = (wakes.count, wakes.max_ns);
        }
        let boosts = now.observer.latest().map_or(0, |now| now.vcpus[CONTROL].boosts);
        // Kernel threads were boosted while Linux booted.
        if linux.busy {
            seen.boosts = boosts - *before.get_or_insert(boosts);
        }
        seen.wakes >= least
    })?;
    run.without_faults()?;
    let mut outcome = Outcome::new(name);
    let Woken { wakes, latest_ns, boosts } = seen;
    outcome.figure("wakes", json!({ "count": wakes, "max_ns": latest_ns, "boosts": boosts }));
    bench.keep(&outcome)?;
    ensure!(wakes >= least, "{}", run.unfinished("too few wake-ups"));
    let linux = &run.said.guests[CONTROL].linux;
    ensure!(
        linux.woken_by.as_deref() == Some(told.by),
        "its processes wait for {:?}, not for a {}",
        linux.woken_by,
        told.by
    );
    let odd = linux.wakes.iter().find(|wakes| wakes.count != told.each);
    ensure!(odd.is_none(), "a process woke {odd:?}, not {} times", told.each);
    Ok(seen)
}

fn run_programs(bench: &Bench) -> Result<()> {
    let mut outcome = Outcome::new("programs-boosted");
    for program in Program::packed() {
        let case = Case::new(Control::Freertos, Tuning::Calls, program, 1);
        measure(bench, &case, PROMPT_NS, &mut outcome)?;
    }
    bench.keep(&outcome)
}

fn run_line(bench: &Bench, name: &str, control: Control, prompt_ns: u64) -> Result<()> {
    let mut outcome = Outcome::new(name);
    let case = Case::new(control, Tuning::Line, Program::Compute, RUNS);
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
