//! No simulated response exceeds its bound, over random systems.
//!
//! A system is drawn, analysed, and if every deadline is to hold, simulated
//! several times: in the worst case and with shorter execution times, with
//! releases and budgets shifted against each other. The checker objects if a
//! vCPU has more than budget and permitted overrun, a resource two holders, or
//! a queue another order than the protocol's.
//!
//! The bounds are the corrected ones. Published bounds are exceeded where there
//! are local resources (Equation 7), and not where there are none.
//!
//! The same where EL2 takes time: the simulator charges it, and the bounds contain it. And the same
//! where vCPUs have handlers of interrupts, with and without EL2's time.
//!
//! The long test:
//!
//!     cargo test --release -p cassata-lab --test bounds -- --ignored --nocapture

use analysis::bounds::{Bounds, Verdict, analyze, analyze_with};
use analysis::model::{Cause, Handler, Section, System, Traffic, Visits};
use analysis::overheads::{DEFAULT_MARGIN_PERMILLE, Overheads, Paces, VIRTUAL_INSTRUCTION_PS};
use analysis::random::{Chance, LONGEST_PERIOD, draw, lengthen};
use lab::simulate::model::simulated;
use sim::checker::Checker;
use sim::system::{Execution, Protocol};
use sim::{System as Simulated, World};
use std::collections::BTreeSet;

/// Simulated time, in which most tasks have ten jobs or more, ns.
const HORIZON: u64 = 6_000;

/// How often each system is simulated.
const RUNS: u64 = 4;

/// What EL2 takes: each visit nothing or a few percent of a segment.
fn overheads(chance: &mut Chance) -> Overheads {
    let most = *[2, 5, 20].get(chance.between(0, 2) as usize).unwrap_or(&2);
    let mut visit = || chance.between(0, most);
    let mut overheads = Overheads {
        release_ns: visit(),
        switch_on_wake_ns: visit(),
        switch_on_sleep_ns: visit(),
        timer_ns: visit(),
        doorbell_ns: visit(),
        gcs_call_ns: visit(),
        grant_ns: visit(),
        departure_ns: visit(),
        timer_advance_ns: visit(),
        ..Overheads::NONE
    };
    if chance.one_in(2) {
        (overheads.duty_ns, overheads.duty_every_ns) = (most, chance.between(500, 10_000));
    }
    overheads
}

/// Some vCPUs of a pCPU displace others, for which EL2 visits several.
fn traffic(system: &mut System, chance: &mut Chance) {
    for _ in 0..chance.between(0, 2) {
        // Many of them show whether they are counted.
        let most = if chance.one_in(3) { 40 } else { 3 };
        let base = system.vcpus[chance.between(0, system.vcpus.len() as u64 - 1) as usize].pcpu;
        let here = (0..system.vcpus.len()).filter(|&vcpu| system.vcpus[vcpu].pcpu == base);
        let by: Vec<usize> = here.filter(|_| chance.one_in(2)).collect();
        let pcpus: BTreeSet<u32> = system.vcpus.iter().map(|vcpu| vcpu.pcpu).collect();
        let visits = pcpus.into_iter().map(|pcpu| Visits {
            pcpu,
            doorbells: chance.between(0, most),
            timers: 0,
            departures: chance.between(0, most),
        });
        let visits = visits.collect();
        if !by.is_empty() {
            system.traffic.push(Traffic { cause: Cause::Displacement { by }, visits });
        }
    }
}

/// Some vCPUs have one handler or two: short ones that come often, and longer ones.
fn handlers(system: &mut System, scale: u64, chance: &mut Chance) {
    for vcpu in 0..system.vcpus.len() {
        for _ in 0..chance.between(0, 2) {
            let period_ns = scale * chance.between(8, 120);
            let wcet_ns = (scale * chance.between(1, 3)).div_ceil(chance.between(1, 8));
            let id = format!("h{}", system.handlers.len());
            system.handlers.push(Handler { id, vcpu, period_ns, wcet_ns });
        }
    }
}

/// Everything begins at another time. No task arrives before every vCPU has had
/// its first period: a bound says nothing of a time without servers.
fn shift(system: &mut System, scale: u64, chance: &mut Chance) {
    for vcpu in &mut system.vcpus {
        vcpu.offset_ns = chance.between(0, vcpu.period_ns - 1);
    }
    for task in &mut system.tasks {
        task.offset_ns = scale * LONGEST_PERIOD + chance.between(0, 2 * task.period_ns);
    }
}

/// The longest response of each task. Panics if the protocol was not kept.
fn responses(system: &Simulated, of: &System, horizon: u64) -> Vec<u64> {
    let mut world = World::watched(system, Checker::new(system)).unwrap();
    world.run_until(horizon);
    assert_eq!(world.observer().objection(), None, "{}", of.to_json());
    let complete = world.records().map(|record| record.longest);
    complete.zip(world.unfinished()).map(|(seen, open)| seen.max(open.unwrap_or(0))).collect()
}

/// What came out of many systems.
#[derive(Debug, Default)]
struct Tally {
    /// Systems whose deadlines are all to hold.
    schedulable: u64,
    /// Of these, systems with a response above its bound.
    exceeded: u64,
    /// The most of a bound that was seen, percent.
    most: u64,
    /// The sum over systems of the most that was seen in each, percent.
    total: u64,
    /// Systems with a response above the bound that takes EL2 as nothing.
    beyond_plain: u64,
    /// Systems with a response above the bound that takes what displacements cause as nothing.
    beyond_own: u64,
    /// Systems with a response above the bound of a system without handlers.
    beyond_bare: u64,
    /// The smallest system whose bound was exceeded, as JSON.
    smallest: Option<String>,
}

/// What is drawn.
#[derive(Clone, Copy, PartialEq)]
enum Resources {
    /// Global and local ones.
    All,
    /// No task uses a local one.
    GlobalOnly,
}

/// What EL2 takes.
#[derive(Clone, Copy, PartialEq)]
enum El2 {
    /// Nothing.
    Nothing,
    /// What chance says.
    Some,
    /// What `cassata bench el2` measures, with the usual margin, beside segments of 50 us and more.
    Measured,
}

impl El2 {
    /// Returns how much longer everything is than what is drawn: EL2's visits are short beside it.
    fn scale(self) -> u64 {
        match self {
            Self::Nothing => 1,
            Self::Some => 200,
            Self::Measured => 50_000,
        }
    }

    fn overheads(self, chance: &mut Chance) -> Overheads {
        match self {
            Self::Nothing => Overheads::NONE,
            Self::Some => overheads(chance),
            Self::Measured => {
                Overheads::measured(&Paces::all(VIRTUAL_INSTRUCTION_PS), DEFAULT_MARGIN_PERMILLE)
            }
        }
    }
}

/// True if vCPUs have handlers.
#[derive(Clone, Copy, PartialEq)]
enum Handlers {
    /// None has.
    None,
    /// What chance says.
    Some,
}

/// Draws systems until `wanted` are schedulable.
fn explore(
    first: u64,
    wanted: u64,
    resources: Resources,
    bounds: Bounds,
    el2: El2,
    with: Handlers,
) -> Tally {
    let mut tally = Tally::default();
    for seed in first.. {
        if tally.schedulable == wanted {
            break;
        }
        let mut chance = Chance::seeded(seed);
        let mut system = draw(&mut chance);
        if resources == Resources::GlobalOnly {
            forget_local_resources(&mut system);
        }
        if system.check().is_err() {
            continue; // a task that is longer than its period
        }
        if el2 != El2::Nothing {
            lengthen(&mut system, el2.scale());
            traffic(&mut system, &mut chance);
        }
        let overheads = el2.overheads(&mut chance);
        if with == Handlers::Some {
            handlers(&mut system, el2.scale(), &mut chance);
        }
        // EL2 alone may take all of a pCPU.
        let Ok(verdict) = analyze_with(&system, bounds, overheads) else { continue };
        if verdict.schedulable() {
            tally.schedulable += 1;
            compare(&system, &verdict, seed, el2.scale(), &mut chance, &mut tally);
        }
    }
    tally
}

/// Draws systems until `wanted` are schedulable, and demands that no response of them exceeds its
/// corrected bound.
fn none_exceeds(first: u64, wanted: u64, el2: El2, with: Handlers) -> Tally {
    let tally = explore(first, wanted, Resources::All, Bounds::Corrected, el2, with);
    println!("systems from seed {first}: {tally:?}");
    assert_eq!(tally.exceeded, 0, "{}", tally.smallest.as_deref().unwrap_or_default());
    tally
}

fn forget_local_resources(system: &mut System) {
    for segment in system.tasks.iter_mut().flat_map(|task| &mut task.segments) {
        if matches!(segment.section, Section::Local(_)) {
            segment.section = Section::Normal;
        }
    }
}

fn compare(
    system: &System,
    verdict: &Verdict,
    seed: u64,
    scale: u64,
    chance: &mut Chance,
    tally: &mut Tally,
) {
    let (mut exceeded, mut most) = (None, 0);
    let bare = System { handlers: Vec::new(), ..system.clone() };
    let bare = analyze_with(&bare, verdict.bounds, verdict.overheads).unwrap();
    let plain = analyze(system, verdict.bounds).unwrap();
    // EL2 takes no more without traffic.
    let own = System { traffic: Vec::new(), ..system.clone() };
    let own = analyze_with(&own, verdict.bounds, verdict.overheads).unwrap();
    let (mut beyond_plain, mut beyond_own, mut beyond_bare) = (false, false, false);
    for run in 0..RUNS {
        let execution = match run {
            0 | 1 => Execution::Worst,
            2 => Execution::Random { least: 50 },
            _ => Execution::Random { least: 1 },
        };
        let mut shifted = system.clone();
        shift(&mut shifted, scale, chance);
        let mut simulated =
            simulated(&shifted, Protocol::Vmpcp, execution, verdict.overheads, seed).unwrap();
        for handler in simulated.tasks.iter_mut().filter(|task| task.handler) {
            handler.offset += chance.between(0, handler.period);
        }
        let responses = responses(&simulated, &shifted, scale * HORIZON);
        for (task, seen) in responses.into_iter().enumerate().take(system.tasks.len()) {
            let bound = verdict.tasks[task].response_ns.unwrap();
            most = most.max(seen * 100 / bound);
            let beyond = |less: &Verdict| less.tasks[task].response_ns.is_some_and(|of| seen > of);
            beyond_plain |= beyond(&plain);
            beyond_own |= beyond(&own);
            beyond_bare |= beyond(&bare);
            if seen > bound {
                exceeded = Some(format!(
                    "seed {seed}: {seen} ns of {bound}, {}, {:?}:\n{}",
                    shifted.tasks[task].id,
                    verdict.overheads,
                    shifted.to_json()
                ));
            }
        }
    }
    tally.most = tally.most.max(most);
    tally.total += most;
    tally.beyond_plain += u64::from(beyond_plain);
    tally.beyond_own += u64::from(beyond_own);
    tally.beyond_bare += u64::from(beyond_bare);
    if let Some(case) = exceeded {
        tally.exceeded += 1;
        if tally.smallest.as_ref().is_none_or(|smallest| case.len() < smallest.len()) {
            tally.smallest = Some(case);
        }
    }
}

#[test]
fn no_response_exceeds_its_corrected_bound() {
    let tally = none_exceeds(0, 2_500, El2::Nothing, Handlers::None);
    assert_eq!(tally.most, 100, "some bounds are met exactly, or nothing was tried");
}

#[test]
fn published_bounds_are_exceeded_with_local_resources_only() {
    let published =
        |resources| explore(0, 2_500, resources, Bounds::Published, El2::Nothing, Handlers::None);
    assert!(published(Resources::All).exceeded > 0);
    let tally = published(Resources::GlobalOnly);
    assert_eq!(tally.exceeded, 0, "{}", tally.smallest.unwrap_or_default());
}

#[test]
#[ignore = "takes minutes; see the top of this file"]
fn no_response_of_a_hundred_thousand_systems_exceeds_its_corrected_bound() {
    none_exceeds(1 << 32, 100_000, El2::Nothing, Handlers::None);
}

#[test]
fn no_response_exceeds_the_bound_that_contains_what_el2_takes() {
    let tally = none_exceeds(7 << 32, 2_000, El2::Some, Handlers::None);
    assert!(tally.most >= 95, "the bounds are not far away: {} %", tally.most);
    assert!(tally.beyond_plain > 0, "what EL2 takes is seen in responses");
}

#[test]
#[ignore = "takes minutes; see the top of this file"]
fn no_response_of_a_hundred_thousand_systems_exceeds_the_bound_that_contains_what_el2_takes() {
    none_exceeds(9 << 32, 100_000, El2::Some, Handlers::None);
}

#[test]
fn no_response_exceeds_the_bound_that_contains_what_el2_was_measured_to_take() {
    let tally = none_exceeds(19 << 32, 1_000, El2::Measured, Handlers::None);
    assert!(tally.most >= 90, "the bounds are not far away: {} %", tally.most);
    assert!(tally.beyond_plain > 0, "what EL2 takes is seen in responses");
}

#[test]
#[ignore = "takes minutes; see the top of this file"]
fn no_response_of_a_hundred_thousand_systems_exceeds_the_bound_with_what_was_measured() {
    none_exceeds(21 << 32, 100_000, El2::Measured, Handlers::None);
}

#[test]
fn no_response_exceeds_the_bound_that_contains_handlers() {
    for (first, el2) in [(11 << 32, El2::Nothing), (13 << 32, El2::Some)] {
        let tally = none_exceeds(first, 2_000, el2, Handlers::Some);
        assert!(tally.beyond_bare > 0, "handlers are seen in responses");
    }
}

#[test]
#[ignore = "takes minutes; see the top of this file"]
fn no_response_of_a_hundred_thousand_systems_exceeds_the_bound_that_contains_handlers() {
    for (first, el2) in [(15 << 32, El2::Nothing), (17 << 32, El2::Some)] {
        none_exceeds(first, 50_000, el2, Handlers::Some);
    }
}

/// The same on purpose: two jobs on pCPU 0 displace another vCPU while the task on pCPU 1 executes.
/// Each time that pCPU has twenty doorbells of 10.
#[test]
fn what_a_displacement_takes_of_another_pcpu_is_seen_and_in_the_bound() {
    let text = r#"{"server": "deferrable", "overrun": false,
      "vcpus": [{"id": "d", "pcpu": 0, "budget": 9000, "period": 9000, "priority": 1},
                {"id": "v", "pcpu": 1, "budget": 9000, "period": 9000, "priority": 2}],
      "tasks": [{"id": "displaces", "vcpu": "d", "period": 3000, "priority": 1, "offset": 500,
                 "segments": [{"wcet": 100}]},
                {"id": "t", "vcpu": "v", "period": 9000, "priority": 1,
                 "segments": [{"wcet": 5000}]}],
      "traffic": [{"by": ["d"], "visits": [{"pcpu": 1, "doorbells": 20}]}]}"#;
    let system = System::from_json(text).unwrap();
    let overheads = Overheads { doorbell_ns: 10, ..Overheads::NONE };
    let simulated = simulated(&system, Protocol::Vmpcp, Execution::Worst, overheads, 0).unwrap();
    let seen = responses(&simulated, &system, 60_000)[1];
    let bound = |system: &System| {
        let verdict = analyze_with(system, Bounds::Corrected, overheads).unwrap();
        verdict.tasks[1].response_ns.unwrap()
    };
    let without = bound(&System { traffic: Vec::new(), ..system.clone() });
    assert_eq!((without, seen), (5_000, 5_400));
    // Windows of 7,000 and less: four jobs and two periods, and what one earlier time has left.
    assert_eq!(bound(&system), 5_000 + (4 + 2 + 1) * 200);
}

/// Equation 7, in the simulator: low locks L and high, whose lock gives L its
/// ceiling, must wait for it. The bound as published forgets that
/// (crates/analysis/tests/counterexamples.rs, where the same is done by hand).
#[test]
fn equation_7_forgets_the_lock_of_the_highest_user() {
    let text = r#"{"server": "deferrable", "overrun": false,
      "vcpus": [{"id": "v", "pcpu": 0, "budget": 100, "period": 100, "priority": 1}],
      "tasks": [{"id": "low", "vcpu": "v", "period": 100, "priority": 1,
                 "segments": [{"wcet": 10, "lcs": "L"}]},
                {"id": "high", "vcpu": "v", "period": 100, "priority": 2, "offset": 1,
                 "segments": [{"wcet": 1}, {"wcet": 1, "lcs": "L"}]}]}"#;
    let system = System::from_json(text).unwrap();
    let none = Overheads::NONE;
    let simulated = simulated(&system, Protocol::Vmpcp, Execution::Worst, none, 0).unwrap();
    let seen = responses(&simulated, &system, HORIZON)[1];
    let bound = |bounds| analyze(&system, bounds).unwrap().tasks[1].response_ns.unwrap();
    assert_eq!((seen, bound(Bounds::Published), bound(Bounds::Corrected)), (11, 2, 12));
}
