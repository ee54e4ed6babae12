//! A part of the bench as a machine test: the board and a guest above another Linux.

use super::super::program::Program;
use super::case::{Case, Kernel, Place};
use super::run;
use crate::bench::campaign::room;
use crate::bench::store::Case as _;
use crate::results::Outcome;
use crate::suite::{Bench, Scenario};
use miette::{Result, ensure};
use serde_json::json;

/// Wake-ups of each.
const WAKES: u32 = 50;
/// How much later a process may be at worst in a guest than on the board: the other guest's quantum is a hundred
/// times that.
const BEYOND_NS: u32 = 50_000;

/// Returns the scenario, which needs what the launcher makes only when it is asked for.
pub fn scenario() -> Scenario {
    let about =
        "a process of a PREEMPT_RT guest is hardly later beside hackbench than on the board";
    Scenario::new("programs-dispatch", about, measure).shipped().by_name()
}

fn measure(bench: &Bench) -> Result<()> {
    let mut outcome = Outcome::new("programs-dispatch");
    let mut longest = Vec::new();
    for (place, load) in [(Place::Board, Program::Idle), (Place::Above, Program::Hackbench)] {
        let case = Case { kernel: Kernel::Rt, place, load, wakes: WAKES };
        let name = case.name();
        let seen = run::run(&case, &room(bench, &name)?, &mut |_| {})?;
        outcome.figure(&name, json!({ "latencies_ns": seen.latencies }));
        longest.extend(seen.latencies.max());
    }
    let [board, guest] = longest[..] else { unreachable!("a run without wake-ups is an error") };
    ensure!(guest <= board + BEYOND_NS, "late by {guest} ns, on the board by {board} ns at most");
    bench.keep(&outcome)
}
