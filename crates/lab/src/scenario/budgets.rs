//! Budgets: what each vCPU gets of its core in every period.
//!
//! The machine is held once in each period, at whatever phase of it: in any stretch as long
//! as a period, a vCPU that always has work gets its budget, no more and no less.

use super::LIMIT;
use super::expect::Expect::{self, Endures, Passes};
use super::staged::{Staged, description};
use crate::figures;
use crate::quantity::ns;
use crate::session::Moment;
use crate::suite::{Bench, Scenario};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Between two looks: a multiple of every period that is described.
const STRETCH: Duration = Duration::from_millis(10);
/// Looks before the guests have booted.
const BOOT: usize = 20;
/// Stretches that are judged.
const STRETCHES: usize = 100;
/// What a switch may add to what a vCPU gets in a stretch, or take from it.
const SWITCH_NS: u64 = 1_000;

/// What the first vCPU of a VM gets in each stretch.
#[derive(Clone, Debug)]
struct Supply {
    vm: &'static str,
    /// Of its core, nanoseconds.
    ns: RangeInclusive<u64>,
    /// Of its interrupts, at least.
    interrupts: u64,
    /// How often it uses its budget up, and how many periods begin.
    periods: Option<RangeInclusive<u64>>,
}

/// All of them.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    let hostile = [
        supply("hostile", about(3_000_000), 0),
        supply("second", about(2_000_000), 0),
        supply("rest", about(5_000_000), 0),
    ];
    let kept = [supply("sleepy", 0..=500_000, 9), supply("rest", 9_500_000..=10_000_000, 0)];
    // What EL2 takes while it idles is charged to it, and is no run time.
    let idled = [supply("sleepy", 2_998_000..=3_000_000, 2), supply("rest", about(7_000_000), 0)];
    // What it has of a period when a stretch begins depends on where it was meanwhile.
    let moved = [
        supply("hostile", 1_980_000..=2_020_000, 0).periods(9..=11),
        supply("below", 2_950_000..=3_050_000, 0).periods(9..=11),
    ];
    [
        scenario("budgets.deferrable", "a budget is all that a hostile guest gets", "", &hostile),
        scenario(
            "budgets.periodic",
            "a budget is all that a hostile guest gets",
            PERIODIC,
            &hostile,
        ),
        scenario(
            "budget-alone",
            "a core sleeps until a budget is replenished",
            "",
            &[supply("alone", about(3_000_000), 0)],
        ),
        scenario("budget-kept", "others have the core while a budget is kept", "", &kept),
        scenario("budget-idled", "no other has the core while a budget is idled away", "", &idled),
        // What the checks take would be of its budget.
        scenario(MOVED, "a budget is all that a guest gets that migrates all the time", "", &moved)
            .shipped(),
        counted_moved("moved-supply.counted", DEFERRABLE),
        counted_moved("moved-supply.periodic", PERIODIC),
        counted("supply.deferrable", DEFERRABLE, 10_000),
        counted("supply.periodic", PERIODIC, 10_000),
        counted("supply-1000000.deferrable", DEFERRABLE, 1_000_000).by_name(),
        counted("supply-1000000.periodic", PERIODIC, 1_000_000).by_name(),
        asked("varied.deferrable", DEFERRABLE, 10_000),
        asked("varied.periodic", PERIODIC, 10_000),
        asked("varied-1000000.deferrable", DEFERRABLE, 1_000_000).by_name(),
        asked("varied-1000000.periodic", PERIODIC, 1_000_000).by_name(),
    ]
    .into_iter()
}

/// Where a vCPU with a budget migrates.
const MOVED: &str = "moved-supply";

/// What takes the place of the kind of server that is described.
const PERIODIC: &str = "\"periodic\"";
const DEFERRABLE: &str = "\"deferrable\"";

/// The descriptions that they use.
#[cfg(test)]
pub fn descriptions() -> [&'static str; 7] {
    ["budgets", "budget-alone", "budget-kept", "budget-idled", "supply", "varied", MOVED]
}

const fn supply(vm: &'static str, ns: RangeInclusive<u64>, interrupts: u64) -> Supply {
    Supply { vm, ns, interrupts, periods: None }
}

impl Supply {
    /// Expects that it uses up so many budgets in each stretch, and that as many periods begin.
    fn periods(self, periods: RangeInclusive<u64>) -> Self {
        Self { periods: Some(periods), ..self }
    }
}

const fn about(ns: u64) -> RangeInclusive<u64> {
    ns - SWITCH_NS..=ns + SWITCH_NS
}

/// A vCPU that counts what it gets in so many periods of 100 us.
fn counted(name: &'static str, server: &str, periods: u64) -> Scenario {
    const ABOUT: &str = "a hostile guest counts its budget, no more and no less in every period";
    const EXPECT: &[(&str, Expect)] = &[("hostile", Passes), ("rest", Endures)];
    periods_of(Staged::new("supply", ABOUT, EXPECT), name, server, periods, 100)
}

/// A vCPU that asks for another part of its core in each of so many periods of 200 us.
fn asked(name: &'static str, server: &str, periods: u64) -> Scenario {
    const ABOUT: &str = "a demand that varies gets the lesser of itself and the budget";
    const EXPECT: &[(&str, Expect)] = &[("varying", Passes), ("rest", Endures)];
    periods_of(Staged::new("varied", ABOUT, EXPECT), name, server, periods, 200)
}

/// Runs `staged` for so many periods of a length in us, with a server of this kind.
fn periods_of(
    staged: Staged,
    name: &'static str,
    server: &str,
    periods: u64,
    length: u64,
) -> Scenario {
    let idles = if server == PERIODIC { " probe.idles=1" } else { "" };
    let edits = [
        ("probe.periods=10000".to_owned(), format!("probe.periods={periods}{idles}")),
        (DEFERRABLE.to_owned(), server.to_owned()),
    ];
    let limit = LIMIT + Duration::from_micros(length * periods);
    let staged = Staged { limit, ..staged };
    Scenario::new(name, staged.about, move |bench: &Bench| staged.run(bench, &edits, |_| None))
        .shipped()
}

/// A vCPU that counts what it gets while it migrates, whatever becomes of what it does not use.
fn counted_moved(name: &'static str, server: &str) -> Scenario {
    const ABOUT: &str =
        "a hostile guest that migrates counts its budget in every period, on all cores together";
    // The server that is described first is its own.
    let edits = [(DEFERRABLE.to_owned(), server.to_owned())];
    let expect = &[("hostile", Passes), ("below", Endures), ("rtos", Endures)];
    let staged = Staged::new(MOVED, ABOUT, expect);
    Scenario::new(name, ABOUT, move |bench: &Bench| staged.run(bench, &edits, |_| None)).shipped()
}

fn scenario(
    name: &'static str,
    about: &'static str,
    server: &'static str,
    supplies: &[Supply],
) -> Scenario {
    let supplies = supplies.to_vec();
    Scenario::new(name, about, move |bench: &Bench| {
        let file = name.split('.').next().unwrap_or(name);
        let edit = (!server.is_empty()).then(|| (DEFERRABLE.to_owned(), server.to_owned()));
        let edits: Vec<_> = edit.into_iter().collect();
        let bundle = bench.pack(&bench.described(&description(file), &edits)?)?;
        let (mut looks, mut last) = (Vec::new(), 0);
        let session = bench.session(&bundle, LIMIT)?.held_every(STRETCH);
        let run = session.run(|now| {
            let time = now.observer.latest().map_or(0, |snapshot| snapshot.now);
            // At its end a run is looked at twice.
            if time > last {
                looks.extend(look(now));
            }
            last = time;
            looks.len() > BOOT + STRETCHES
        })?;
        let mut outcome = figures::outcome(name, &run);
        let mut objections = Vec::new();
        for supply in &supplies {
            let Some(vm) = run.observer.layout.vms.iter().position(|vm| vm.name == supply.vm)
            else {
                objections.push(format!("there is no VM {}", supply.vm));
                continue;
            };
            let got = |of: fn(&Look) -> u64| {
                let pairs = looks.windows(2).skip(BOOT);
                let all = pairs.map(|pair| of(&pair[1][vm]).saturating_sub(of(&pair[0][vm])));
                all.fold((u64::MAX, 0), |(least, most), one| (least.min(one), most.max(one)))
            };
            let ((least, most), (interrupts, _)) =
                (got(|look| look.ran_ns), got(|look| look.interrupts));
            if let Some(periods) = &supply.periods {
                let counts = [got(|look| look.throttled), got(|look| look.replenished)];
                if counts
                    .iter()
                    .any(|(least, most)| !periods.contains(least) || !periods.contains(most))
                {
                    objections.push(format!(
                        "in a stretch {} was throttled and replenished {counts:?} times, not \
                         {periods:?}",
                        supply.vm
                    ));
                }
            }
            outcome.figure(&format!("{} least_supply_ns", supply.vm), least);
            outcome.figure(&format!("{} most_supply_ns", supply.vm), most);
            outcome.figure(&format!("{} least_interrupts", supply.vm), interrupts);
            if looks.len() <= BOOT + STRETCHES
                || !supply.ns.contains(&least)
                || !supply.ns.contains(&most)
                || interrupts < supply.interrupts
            {
                objections.push(format!(
                    "{} looks; in a stretch {} had {least} to {most} ns, and {interrupts} \
                     interrupts or more: not {supply:?}",
                    looks.len(),
                    supply.vm
                ));
            }
        }
        bench.judge(&run, outcome, &objections)
    })
}

/// What a vCPU has had so far.
struct Look {
    ran_ns: u64,
    interrupts: u64,
    throttled: u64,
    replenished: u64,
}

/// Looks at the first vCPU of each VM.
fn look(now: &Moment) -> Option<Vec<Look>> {
    let snapshot = now.observer.latest()?;
    let vms = &now.observer.layout.vms;
    let look = |vcpu: usize| {
        let vcpu = &snapshot.vcpus[vcpu];
        let ran_ns = ns(snapshot.time(vcpu.run));
        let (throttled, replenished) = (vcpu.throttled, vcpu.replenished);
        Look { ran_ns, interrupts: vcpu.injected, throttled, replenished }
    };
    Some(vms.iter().map(|vm| look(vm.vcpus.start)).collect())
}
