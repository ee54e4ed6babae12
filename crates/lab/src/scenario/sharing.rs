//! FreeRTOS guests that share a page under a mutex of the hypervisor, one of which dies with it.

use super::LIMIT;
use crate::bundle::channel;
use crate::figures;
use crate::observe::Observer;
use crate::results::Outcome;
use crate::session::Run;
use crate::suite::{Bench, Scenario};
use abi::status::vm_state;

/// Its name.
const NAME: &str = "sharing";
/// Its description, below the project's root.
const DESCRIPTION: &str = "guests/freertos/systems/sharing.toml";
/// The guests that come to an end, and the one that does not, in the description's order.
const ENDING: usize = 2;
const DIES: usize = 2;
/// How often the latter has to have started.
const STARTS: u64 = 10;
/// Rounds of each of the others, and in how many of all they have to wait for the mutex.
const ROUNDS: u64 = 500;
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
    now.vms[..ENDING].iter().all(|vm| vm.state == vm_state::OFF)
}

fn judged(run: &Run) -> (Outcome, Vec<String>) {
    let mut outcome = figures::outcome(NAME, run);
    let (mut objections, mut died, mut waited) = (Vec::new(), 0, 0);
    for vm in 0..ENDING {
        let name = &run.observer.layout.vms[vm].name;
        let sum =
            run.lines_of(channel(vm)).filter_map(|line| line.strip_prefix("freertos: shared "));
        let Some(sum) = sum.last() else {
            objections.push(format!("{name} did not come to its end"));
            continue;
        };
        outcome.figure(&format!("{name} shared"), sum);
        let figure = |name: &str| figure(sum, name);
        if (figure("rounds"), figure("violations")) != (Some(ROUNDS), Some(0)) {
            objections.push(format!("{name}: {sum}"));
        }
        died += figure("owner_died").unwrap_or(0);
        waited += figure("waited").unwrap_or(0);
    }
    let starts = run.observer.latest().map_or(0, |now| now.vms[DIES].starts);
    if starts < STARTS {
        objections.push(format!("the guest that dies started {starts} times, not {STARTS}"));
    }
    // Each of its deaths is told to whichever guest has the mutex next, itself among them.
    if died == 0 || died > starts {
        objections.push(format!("{died} deaths were told of {starts} starts"));
    }
    if waited < WAITED {
        objections.push(format!("they waited {waited} times for the mutex, not {WAITED}"));
    }
    (outcome, objections)
}

/// Returns the number in `name=number` among words.
fn figure(words: &str, name: &str) -> Option<u64> {
    let value = |word: &str| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok();
    words.split_whitespace().find_map(value)
}
