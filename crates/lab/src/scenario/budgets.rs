//! Budgets: what each vCPU gets of its core in every period.
//!
//! The machine is held once in each period, at whatever phase of it: in any stretch as long
//! as a period, a vCPU that always has work gets its budget, no more and no less.

use super::LIMIT;
use super::staged::description;
use crate::figures;
use crate::session::Moment;
use crate::suite::{Bench, Scenario};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Between two looks: a multiple of every period that is described.
const STRETCH: Duration = Duration::from_millis(10);
/// Looks before the guests have booted.
const BOOT: usize = 10;
/// Stretches that are judged.
const STRETCHES: usize = 100;
/// What a switch may add to what a vCPU gets in a stretch, or take from it.
const SWITCH_NS: u64 = 1_000;

/// What a vCPU gets in a stretch, nanoseconds.
type Supply = (&'static str, RangeInclusive<u64>);

/// All of them.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    const ALWAYS_BUSY: [Supply; 3] =
        [("hostile", about(3_000_000)), ("second", about(2_000_000)), ("rest", about(5_000_000))];
    let busy = "a budget is all that a hostile guest gets, in every period";
    let kept = "a deferrable server keeps what is not used, and others have the core meanwhile";
    let idled = "a periodic server idles its budget away, and nobody has the core meanwhile";
    [
        scenario("budgets.deferrable", "budgets", "deferrable", busy, ALWAYS_BUSY.to_vec()),
        scenario("budgets.periodic", "budgets", "periodic", busy, ALWAYS_BUSY.to_vec()),
        scenario(
            "budget-unused.deferrable",
            "budget-unused",
            "deferrable",
            kept,
            vec![("sleepy", 0..=500_000), ("rest", 9_500_000..=10_000_000)],
        ),
        scenario(
            "budget-unused.periodic",
            "budget-unused",
            "periodic",
            idled,
            vec![("sleepy", about(3_000_000)), ("rest", about(7_000_000))],
        ),
    ]
    .into_iter()
}

/// The descriptions that they use.
#[cfg(test)]
pub fn descriptions() -> [&'static str; 2] {
    ["budgets", "budget-unused"]
}

const fn about(ns: u64) -> RangeInclusive<u64> {
    ns - SWITCH_NS..=ns + SWITCH_NS
}

fn scenario(
    name: &'static str,
    file: &'static str,
    server: &'static str,
    what: &'static str,
    supplies: Vec<Supply>,
) -> Scenario {
    Scenario::new(name, what, move |bench: &Bench| {
        let edit = ("\"deferrable\"".to_owned(), format!("{server:?}"));
        let bundle = bench.pack(&bench.described(&description(file), &[edit])?)?;
        let mut looks = Vec::new();
        let session = bench.session(&bundle, LIMIT)?.held_every(STRETCH);
        let mut last = 0;
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
        let names: Vec<_> = run.observer.layout.vms.iter().map(|vm| vm.name.clone()).collect();
        for (name, wanted) in &supplies {
            let Some(vm) = names.iter().position(|other| other == name) else {
                objections.push(format!("there is no VM {name}"));
                continue;
            };
            let got: Vec<_> = looks
                .windows(2)
                .skip(BOOT)
                .map(|pair| pair[1][vm].saturating_sub(pair[0][vm]))
                .collect();
            let (least, most) = (got.iter().min().copied(), got.iter().max().copied());
            outcome.figure(&format!("{name} least_supply_ns"), least.unwrap_or(0));
            outcome.figure(&format!("{name} most_supply_ns"), most.unwrap_or(0));
            let fits = |supply: Option<u64>| supply.is_some_and(|ns| wanted.contains(&ns));
            if got.len() < STRETCHES || !fits(least) || !fits(most) {
                objections.push(format!(
                    "{name} had {least:?} to {most:?} ns in {} stretches, not {wanted:?}",
                    got.len()
                ));
            }
        }
        bench.judge(&run, outcome, &objections)
    })
}

/// What the first vCPU of each VM has had of its core so far, nanoseconds.
fn look(now: &Moment) -> Option<Vec<u64>> {
    let snapshot = now.observer.latest()?;
    let vms = &now.observer.layout.vms;
    let ran = |ticks| u64::try_from(snapshot.time(ticks).as_nanos()).unwrap_or(u64::MAX);
    Some(vms.iter().map(|vm| ran(snapshot.vcpus[vm.vcpus.start].run)).collect())
}
