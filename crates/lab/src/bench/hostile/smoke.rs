//! All of it in short, as machine tests: what must hold beside any adversary, and the goal for
//! latencies beside each that meets it.

use super::case::{Adversary, CROWD, Case, WITHOUT_DMA};
use super::leaks;
use super::mode::{ABOVE_THE_GOAL, Figure, GICV2_MIXTURE, MODES, check, least_operations};
use super::report::{MOST_ADDED_NS, MOST_CHANGE_PERCENT};
use super::seen::Seen;
use crate::bench::store::Case as _;
use crate::quantity::real;
use crate::results::{Check, Goal, Outcome};
use crate::suite::{Bench, Scenario, gicv2};
use miette::{IntoDiagnostic, Result, ensure};
use std::fs;

/// Virtual time of each run, ms.
const LENGTH_MS: u64 = 15;
/// Virtual time of each run with many vCPUs, each of which has the core for a short time only, ms.
const CROWD_MS: u64 = 30;
/// The worst dispatch latency of FreeRTOS without an adversary, ns: the test `hostile-alone` fails
/// if it is another one.
const ALONE_NS: u64 = 667;
/// Like [`ALONE_NS`] where another core wakes FreeRTOS: `hostile-woken-alone` fails if it is another one.
const ALONE_WOKEN_NS: u64 = 1_538;
/// The mean time in which the neighbour does its work beside no adversary, rounded to 1 ns: the test
/// `hostile-alone` fails if it is another one.
const NEIGHBOUR_NS: u64 = 96_733;
/// Like [`NEIGHBOUR_NS`] where another core wakes FreeRTOS, in `hostile-woken-alone`.
const NEIGHBOUR_WOKEN_NS: u64 = 96_649;
/// Virtual time of each run in which another core wakes FreeRTOS, ms.
const WOKEN_MS: u64 = 20;
/// Fewer activations than that in those tell nothing: one in the mean of a tenth of a millisecond.
const LEAST_WOKEN: f64 = 150.0;
/// Hostile operations of the mixtures, beside the build that ships.
const OPERATIONS: u64 = 1_000_000;
/// The same beside the build that checks its invariants after each exit, which is far slower.
const CHECKED_OPERATIONS: u64 = 60_000;
/// vCPUs of each mixture, and the seed from which it follows.
const MIXTURES: [(u32, u64); 3] = [(1, 1), (2, 2), (8, 3)];
/// Fewer starts than that are no storm: ten in a millisecond.
const LEAST_STARTS: f64 = 150.0;
/// Looks at a machine are a millisecond apart, and a VM that resets or crashes is back in less than two: one that does
/// nothing for longer at the end has stopped.
const MOST_IDLE_NS: u64 = 3_000_000;
/// When the neighbour has its first activation at the latest, ns, and how far apart these are: EL2 has compared what it
/// starts with digests, and the guest has booted.
const NEIGHBOUR_BEGINS_NS: u64 = 8_000_000;
const NEIGHBOUR_PERIOD_NS: u64 = 500_000;
/// FreeRTOS begins later, as it waits for 15 ms of these where its timer wakes it.
const RTOS_BEGINS_NS: u64 = 21_000_000;
const RTOS_PERIOD_NS: u64 = 200_000;
/// Guests begin as much later where EL2 checks its invariants, ns.
const CHECKS_NS: u64 = 4_000_000;
/// Virtual time in which a mixture must have done its part, ms.
const MIXTURE_MS: u64 = 20_000;

/// What the description says for a board with a GICv2.
const GICV2: [gicv2::Edit; 5] =
    [WITHOUT_DMA[0], WITHOUT_DMA[1], gicv2::BOARD, gicv2::FREERTOS, gicv2::PROBE];

/// Returns all of them.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    let about = "what latencies are compared with";
    let alone = [false, true].map(|is_woken| {
        let name = if is_woken { "hostile-woken-alone" } else { "hostile-alone" };
        Scenario::new(name, about, move |bench: &Bench| self::alone(is_woken, bench)).shipped()
    });
    let woken = [Adversary::many("messages"), Adversary::crowd("messages")].map(|adversary| {
        let name = if adversary.crowds { "hostile-woken-crowd" } else { "hostile-woken" };
        let about =
            "FreeRTOS, which another core wakes, beside as many messages to its core as can be";
        let attacks = move |bench: &Bench| attack(adversary.clone(), true, WOKEN_MS, bench);
        Scenario::new(name, about, attacks).shipped()
    });
    let about = "the same beside such messages to a real-time VM below it";
    let below = Scenario::new("hostile-woken-below", about, |bench: &Bench| {
        let adversary = Adversary { is_realtime: true, ..Adversary::many("messages") };
        attack(adversary, true, WOKEN_MS, bench)
    });
    let below = below.shipped();
    let modes = MODES.iter().map(|mode| {
        let about = format!("beside the attack `{mode}`, nothing is missed, lost or late");
        let attacks = |bench: &Bench| attack(Adversary::plain(mode), false, LENGTH_MS, bench);
        Scenario::new(format!("hostile-{mode}"), about, attacks).shipped()
    });
    let crowds = MODES.iter().map(|mode| {
        let about = format!("nor beside {CROWD} vCPUs on the same core that attack by `{mode}`");
        let attacks = |bench: &Bench| attack(Adversary::crowd(mode), false, CROWD_MS, bench);
        Scenario::new(format!("hostile-crowd-{mode}"), about, attacks).shipped()
    });
    let mixtures = MIXTURES.map(|(vcpus, seed)| {
        let about = format!("a third of a million operations by chance, on {vcpus} vCPUs");
        let name = format!("hostile-operations-{vcpus}");
        let run =
            move |bench: &Bench| mixture(OPERATIONS, (vcpus, seed), &[], compare_neighbour, bench);
        Scenario::new(name, about, run).shipped()
    });
    let checked = MIXTURES.map(|(vcpus, seed)| {
        let about = format!("no invariant breaks beside {vcpus} vCPUs that attack by chance");
        let name = format!("hostile-checked-{vcpus}");
        Scenario::new(name, about, move |bench: &Bench| {
            mixture(CHECKED_OPERATIONS, (vcpus, seed), &[], |_, _| {}, bench)
        })
    });
    let about = "nor on a board with a GICv2, whose CPU interface is attacked, too";
    let older = Scenario::new("hostile-checked-gicv2", about, |bench: &Bench| {
        mixture(CHECKED_OPERATIONS, MIXTURES[2], &gicv2::edits(GICV2), |_, _| {}, bench)
    });
    let about =
        "beside a mixture of attacks on a board with a GICv2, nothing is missed, lost or late";
    let late = Scenario::new("hostile-gicv2", about, |bench: &Bench| {
        mixture(OPERATIONS, MIXTURES[1], &gicv2::edits(GICV2), compare_with_gicv3, bench)
    });
    let late = late.shipped();
    let about = "what one VM writes, another one on its core does not find";
    let leaks = Scenario::new("hostile-leaks", about, leaks::run);
    let storms = [false, true].map(|is_realtime| {
        let (name, of) = if is_realtime {
            ("hostile-storm-realtime", "a real-time VM")
        } else {
            ("hostile-storm", "a VM")
        };
        let about = format!("{of} that does nothing but reset itself makes no other VM late");
        Scenario::new(name, about, move |bench: &Bench| storm(is_realtime, bench)).shipped()
    });
    let attacks = modes.chain(crowds).chain(mixtures).chain(checked);
    alone.into_iter().chain([leaks, below, older, late]).chain(storms).chain(woken).chain(attacks)
}

/// Returns the worst dispatch latency of FreeRTOS without an adversary, ns.
const fn alone_ns(is_woken: bool) -> u64 {
    if is_woken { ALONE_WOKEN_NS } else { ALONE_NS }
}

/// Returns the mean time of the neighbour's work without an adversary, ns.
const fn neighbour_ns(is_woken: bool) -> u64 {
    if is_woken { NEIGHBOUR_WOKEN_NS } else { NEIGHBOUR_NS }
}

fn alone(is_woken: bool, bench: &Bench) -> Result<()> {
    let length_ms = if is_woken { WOKEN_MS } else { LENGTH_MS };
    let seen = Case { adversary: None, is_woken, length_ms }.run(bench, &mut |_| {})?;
    let mut outcome = Outcome::new("hostile-alone");
    let worst = seen.rtos.worst_dispatch_ns().map(real);
    let goal = Goal::Exactly(real(alone_ns(is_woken)));
    outcome.check(Check::new("worst dispatch latency alone", worst, "ns", goal));
    let mean = seen.neighbour.dispatch.mean().map(f64::round);
    let goal = Goal::Exactly(real(neighbour_ns(is_woken)));
    outcome.check(Check::new("mean time of the neighbour's work alone", mean, "ns", goal));
    conclude(&seen, outcome, bench)
}

fn attack(adversary: Adversary, is_woken: bool, length_ms: u64, bench: &Bench) -> Result<()> {
    let mut outcome = Outcome::new(&format!("hostile-{}", adversary.name()));
    let case = Case { adversary: Some(adversary), is_woken, length_ms };
    let seen = case.run(bench, &mut |_| {})?;
    attacks(&seen, &mut outcome);
    let (worst, goal) = (seen.rtos.worst_dispatch_ns(), alone_ns(is_woken) + MOST_ADDED_NS);
    outcome.check(check(ABOVE_THE_GOAL, &case.name(), Figure::DispatchNs, worst, goal));
    compare_neighbour(&seen, &mut outcome);
    conclude(&seen, outcome, bench)
}

/// Demands that the adversary has attacked, and did so to the end.
fn attacks(seen: &Seen, outcome: &mut Outcome) {
    let mode = seen.case.adversary.as_ref().map_or("", |adversary| &adversary.mode);
    let least = Goal::AtLeast(real(least_operations(mode)));
    outcome.check(Check::new("operations", real(seen.operations), "", least));
    let idle = Goal::AtMost(real(MOST_IDLE_NS));
    outcome.check(Check::new(
        "time without an operation at the end",
        real(seen.idle_ns),
        "ns",
        idle,
    ));
    outcome.check(Check::done("the adversary is on at the end", seen.is_on));
}

/// Demands that the neighbours had an activation in each period since they have begun: what they missed is counted from
/// their first one on.
fn compare_activations(seen: &Seen, is_checked: bool, outcome: &mut Outcome) {
    let ran_ns = seen.virtual_ns.saturating_sub(if is_checked { CHECKS_NS } else { 0 });
    let due = |begins_ns, period_ns| real(ran_ns.saturating_sub(begins_ns) / period_ns);
    let rtos = if seen.case.is_woken { LEAST_WOKEN } else { due(RTOS_BEGINS_NS, RTOS_PERIOD_NS) };
    let neighbour = due(NEIGHBOUR_BEGINS_NS, NEIGHBOUR_PERIOD_NS);
    for (name, activations, least) in [
        ("activations of FreeRTOS", seen.rtos.activations, rtos),
        ("activations of the neighbour", seen.neighbour.activations, neighbour),
    ] {
        outcome.check(Check::new(name, real(activations), "", Goal::AtLeast(least)));
    }
}

/// A guest of three instructions resets its VM at once, for ever: EL2 does nothing but start and
/// stop that one.
fn storm(is_realtime: bool, bench: &Bench) -> Result<()> {
    /// MOVZ W0, #9; MOVK W0, #0x8400, LSL #16; HVC #0: SYSTEM_RESET.
    const GUEST: [u32; 3] = [0x5280_0120, 0x72b0_8000, 0xd400_0002];
    let kernel = bench.directory.join("reset.bin");
    fs::write(&kernel, GUEST.map(u32::to_le_bytes).concat()).into_diagnostic()?;
    let probe = "kernel = \"../../build/guests/probe.elf\"\ncmdline = \"probe.run=hostile";
    let flat = format!("kernel = \"{}\"\nformat = \"flat\"\ncmdline = \"", kernel.display());
    let mut edits = vec![(probe.to_owned(), flat)];
    if is_realtime {
        let usual = "migration_policy = \"none\"\n";
        edits.push((usual.to_owned(), format!("{usual}realtime = true\n")));
    }
    let case = Case { adversary: None, is_woken: false, length_ms: LENGTH_MS };
    let seen = case.run_edited(&edits, bench, &mut |_| {}, |_| false)?;
    let mut outcome = Outcome::new("hostile-storm");
    compare_dispatch(&seen, &mut outcome);
    outcome.check(Check::new("starts", real(seen.starts), "", Goal::AtLeast(LEAST_STARTS)));
    compare_neighbour(&seen, &mut outcome);
    conclude(&seen, outcome, bench)
}

/// Runs one of the mixtures, which have so many `operations` together, with more edits of the description;
/// `judge` checks what else it brings.
fn mixture(
    operations: u64,
    (vcpus, seed): (u32, u64),
    more: &[(String, String)],
    judge: fn(&Seen, &mut Outcome),
    bench: &Bench,
) -> Result<()> {
    let adversary = Adversary { vcpus, seed, ..Adversary::plain("mix") };
    let case = Case { adversary: Some(adversary), is_woken: false, length_ms: MIXTURE_MS };
    let share = operations.div_ceil(MIXTURES.len() as u64);
    let seen = case.run_for(share, more, bench, &mut |_| {})?;
    let mut outcome = Outcome::new(&format!("hostile-mixture-{vcpus}"));
    let done = real(seen.operations);
    outcome.check(Check::new("hostile operations", done, "", Goal::AtLeast(real(share))));
    judge(&seen, &mut outcome);
    conclude(&seen, outcome, bench)
}

/// Demands that FreeRTOS on a board with a GICv2 is hardly later than alone with a GICv3.
fn compare_with_gicv3(seen: &Seen, outcome: &mut Outcome) {
    let (worst, goal) = (seen.rtos.worst_dispatch_ns(), ALONE_NS + MOST_ADDED_NS);
    outcome.check(check(ABOVE_THE_GOAL, GICV2_MIXTURE, Figure::DispatchNs, worst, goal));
}

/// Demands that FreeRTOS is hardly later than alone.
fn compare_dispatch(seen: &Seen, outcome: &mut Outcome) {
    let worst = seen.rtos.worst_dispatch_ns().map(real);
    let goal = Goal::AtMost(real(ALONE_NS + MOST_ADDED_NS));
    outcome.check(Check::new("worst dispatch latency", worst, "ns", goal));
}

/// Demands that the neighbour does its work in the time that it takes alone. That time is of the build that
/// ships: the checks of the other one are in it.
fn compare_neighbour(seen: &Seen, outcome: &mut Outcome) {
    let alone = real(neighbour_ns(seen.case.is_woken));
    let change = seen.change_of_work(alone).map(f64::abs);
    let goal = Goal::AtMost(MOST_CHANGE_PERCENT);
    outcome.check(Check::new("change of what the neighbour takes for its work", change, "%", goal));
}

/// Writes down what a run brought, and fails if something does not hold.
fn conclude(seen: &Seen, mut outcome: Outcome, bench: &Bench) -> Result<()> {
    let (lost, name) = (seen.console_lost, seen.case.name());
    outcome.check(check(ABOVE_THE_GOAL, &name, Figure::ConsoleBytes, lost, 0));
    compare_activations(seen, bench.hypervisor.is_checked, &mut outcome);
    for (name, value) in [
        ("operations", seen.operations),
        ("idle_ns", seen.idle_ns),
        ("neighbour_activations", seen.neighbour.activations),
        ("exits", seen.exits),
        ("starts", seen.starts),
        ("longest_el2_ns", seen.longest_el2_ns),
        ("activations", seen.rtos.activations),
        ("worst_response_ns", seen.rtos.response.max().unwrap_or(0).into()),
        ("worst_dispatch_ns", seen.rtos.worst_dispatch_ns().unwrap_or(0)),
        ("neighbour_worst_ns", seen.neighbour.worst_dispatch_ns().unwrap_or(0)),
    ] {
        outcome.figure(name, value);
    }
    outcome.figure("neighbour_mean_ns", seen.neighbour.dispatch.mean());
    let objections = [seen.objections(), outcome.objections()].concat();
    outcome.check(Check::done("nothing is missed or broken", seen.objections().is_empty()));
    bench.keep(&outcome)?;
    let logs = bench.directory.display();
    ensure!(objections.is_empty(), "{}\n(logs in {logs})", objections.join("\n"));
    Ok(())
}
