//! FreeRTOS guests that share a page under a mutex of the hypervisor, one of which dies with it.

use crate::figures;
use crate::observe::{Observer, VmSnapshot};
use crate::promises::SeenResponse;
use crate::results::Outcome;
use crate::session::Run;
use crate::suite::{Bench, Scenario};
use std::time::Duration;

/// The name.
const NAME: &str = "sharing";
/// The description, below the project's root.
const DESCRIPTION: &str = "guests/freertos/systems/sharing.toml";
/// Virtual time within which they come to their ends: they need some eight seconds.
const LIMIT: Duration = Duration::from_secs(20);
/// The guests that come to an end, and the one that does not, in the description's order.
const ENDING: usize = 2;
const DIES: usize = 2;
/// How often the latter has to have started.
const STARTS: u64 = 10;
/// All declared tasks, and of how many jobs of each the guests have to report. One dies in its twentieth
/// round each time.
const TASKS: [(&str, u64); 5] = [
    ("one/one", ROUNDS),
    ("two/two", ROUNDS),
    ("dies/dies", (STARTS - 1) * 19),
    ("alone/alone", 90),
    ("alone/load", 90),
];
/// Rounds of each of the others, and in how many of all they have to wait for the mutex.
const ROUNDS: u64 = 1500;
const WAITED: u64 = 50;

/// Returns the scenario.
#[must_use]
pub fn scenario() -> Scenario {
    let about = "guests that share a page under a mutex find it sound, or are told that one died";
    Scenario::new(NAME, about, |bench: &Bench| {
        let bundle = bench.pack(&bench.described(DESCRIPTION, &[])?)?;
        let run = bench.session(&bundle, LIMIT)?.run(|now| have_ended(now.observer))?;
        let (outcome, objections) = judged(&run);
        bench.judge(&run, outcome, &objections)
    })
}

/// Returns true once the guests that come to an end have.
fn have_ended(observer: &Observer) -> bool {
    let Some(now) = observer.latest() else { return false };
    now.vms[..ENDING].iter().all(VmSnapshot::is_over)
}

fn judged(run: &Run) -> (Outcome, Vec<String>) {
    let mut outcome = figures::outcome(NAME, run);
    let (mut objections, mut died, mut waited) = (Vec::new(), 0, 0);
    for vm in 0..ENDING {
        let name = &run.observer.layout.vms[vm].name;
        let Some(sum) = &run.said.guests[vm].freertos.shared else {
            objections.push(format!("{name} did not come to its end"));
            continue;
        };
        outcome.figure(&format!("{name} shared"), sum.words.as_str());
        if (sum.rounds, sum.violations) != (ROUNDS, 0) {
            objections.push(format!("{name}: {}", sum.words));
        }
        died += sum.owner_died;
        waited += sum.waited;
    }
    let starts = run.observer.latest().map_or(0, |now| now.vms[DIES].starts);
    if starts < STARTS {
        objections.push(format!("the guest that dies started {starts} times, not {STARTS}"));
    }
    // Each of its deaths is told to whichever guest has the mutex next, itself among them.
    if died == 0 || died > starts {
        objections.push(format!("{died} deaths were told of {starts} starts"));
    }
    let responses = run.promises.responses(&run.observer);
    objections.extend(unreported(&responses));
    if !run.promises.schedulable() {
        objections.push("no bound is certain".into());
    }
    if waited < WAITED {
        objections.push(format!("they waited {waited} times for the mutex, not {WAITED}"));
    }
    (outcome, objections)
}

/// Returns which declared tasks were not compared with a bound, or too seldom.
fn unreported(seen: &[SeenResponse]) -> Vec<String> {
    let is_missing = |&(task, jobs): &(&str, u64)| {
        !seen.iter().any(|seen| seen.task == task && seen.jobs >= jobs && seen.bound.is_some())
    };
    let missing = TASKS.into_iter().filter(is_missing);
    missing.map(|(task, jobs)| format!("{jobs} jobs of {task} were to be compared")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_are_not_compared_are_named() {
        let seen = TASKS.map(|(task, jobs)| SeenResponse {
            task: task.into(),
            vcpu: String::new(),
            jobs,
            late: 0,
            mean: None,
            longest: Duration::ZERO,
            bound: Some(Duration::from_millis(1)),
            period: Duration::from_millis(1),
        });
        assert_eq!(unreported(&seen), [""; 0]);
        assert_eq!(unreported(&seen[1..]), ["1500 jobs of one/one were to be compared"]);
        let bad: [fn(&mut SeenResponse); 2] = [|seen| seen.jobs = 89, |seen| seen.bound = None];
        for spoil in bad {
            let mut seen = seen.clone();
            spoil(&mut seen[4]);
            assert_eq!(unreported(&seen), ["90 jobs of alone/load were to be compared"]);
        }
    }
}
