//! What one VM finds of another one on its core, and of its own former life.

use crate::results::{Check, Outcome};
use crate::session::{End, Run};
use crate::suite::{Bench, Scenario};
use miette::{Result, ensure};
use std::collections::BTreeSet;
use std::time::Duration;

/// What boots, from the project's root.
const SYSTEM: &str = "systems/bench/hostile-leaks.toml";
/// What boots where the one that looks resets itself.
const RESTART: &str = "systems/bench/hostile-leaks-restart.toml";
/// Virtual time: the one that looks needs half a second.
const LIMIT: Duration = Duration::from_secs(2);
/// What the writer must have written to have written everything between two looks, on the
/// average.
const LEAST_WRITES: u64 = 3 * 32_768;

/// Places that are known to leak. One that does not any more makes the test fail until it is taken
/// from here.
const KNOWN: &[&str] = &[];

/// Words that are loaded beside the image, at most: a device tree.
const LOADED_WORDS: u64 = 4_096;

/// Runs both VMs, and fails if there is a leak that is not known, or none where one is.
pub fn run(bench: &Bench) -> Result<()> {
    judge("hostile-leaks", SYSTEM, compared, bench)
}

/// Returns the test in which the VM that looks resets itself after both have written to everything.
pub fn restart() -> Scenario {
    const NAME: &str = "hostile-leaks-restart";
    let about = "nor does a VM find after a reset what it, or another one, wrote before";
    Scenario::new(NAME, about, |bench: &Bench| judge(NAME, RESTART, left_behind, bench))
}

/// Runs a system, and fails where `leaks` objects to what was found.
fn judge(
    name: &str,
    system: &str,
    leaks: fn(&BTreeSet<String>) -> Vec<String>,
    bench: &Bench,
) -> Result<()> {
    let bundle = bench.pack(&bench.described(system, &[])?)?;
    let run = bench.session(&bundle, LIMIT)?.run(|now| now.said.guests[1].probe.done.is_some())?;
    let mut outcome = Outcome::new(name);
    let found = &run.said.guests[1].probe.leaks;
    outcome.figure("leaks", found.iter().cloned().collect::<Vec<_>>());
    let objections = [objections(&run, system == RESTART), leaks(found)].concat();
    outcome.check(Check::done("nothing leaks but what is known", objections.is_empty()));
    bench.keep(&outcome)?;
    ensure!(objections.is_empty(), "{}", objections.join("\n"));
    Ok(())
}

fn objections(run: &Run, restarts: bool) -> Vec<String> {
    let mut all = run.hypervisor_faults();
    if run.end != End::Reached {
        all.push(format!("it did not come to its end: {}", run.end.about()));
    }
    let probe = &run.said.guests[1].probe;
    all.extend(probe.objection(&[]));
    let test = if restarts { "leak.restart" } else { "leak.look" };
    if probe.figure(test, "there").is_none_or(|there| there < 100) {
        all.push("it did not find the registers that there are".into());
    }
    if restarts {
        // A first life that found more would not notice what the second finds.
        match probe.figure(test, "loaded") {
            Some(1..=LOADED_WORDS) => {}
            found => all.push(format!("memory was not clear at the first boot: {found:?} words")),
        }
    }
    let header = run.observer.reports(0).and_then(|reports| reports.header);
    let written = header.map_or(0, |header| header.load_units);
    if written < LEAST_WRITES {
        all.push(format!("the writer wrote {written} registers only"));
    }
    all
}

/// Returns an objection to each place that is not after a reset as it was at the first boot.
fn left_behind(found: &BTreeSet<String>) -> Vec<String> {
    found.iter().map(|place| format!("{place} is not as at the first boot")).collect()
}

/// How `found` differs from what is known.
fn compared(found: &BTreeSet<String>) -> Vec<String> {
    let known: BTreeSet<String> = KNOWN.iter().map(|&place| place.into()).collect();
    let new = found.difference(&known).map(|place| format!("{place} leaks"));
    let gone = known.difference(found);
    let gone = gone.map(|place| format!("{place} does not leak any more: take it from the list"));
    new.chain(gone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leak_that_is_new_and_one_that_is_gone_are_both_objected_to() {
        let known: BTreeSet<String> = KNOWN.iter().map(|&place| place.into()).collect();
        assert!(compared(&known).is_empty());
        let more = known.iter().cloned().chain(["GICR+0x100".into()]).collect();
        assert_eq!(compared(&more), ["GICR+0x100 leaks"]);
        assert_eq!(compared(&BTreeSet::new()).len(), KNOWN.len());
    }

    #[test]
    fn whatever_a_reset_leaves_behind_is_objected_to() {
        assert!(left_behind(&BTreeSet::new()).is_empty());
        assert_eq!(left_behind(&["FP3".into()].into()), ["FP3 is not as at the first boot"]);
    }
}
