//! The bench in short, as a test: both guests make every call.

use super::case::{Case, Seen};
use super::rows::ROWS;
use super::table::Table;
use crate::bench::campaign::room;
use crate::bench::store::Case as _;
use crate::suite::{Bench, Scenario};
use miette::Result;

/// How often each call is made.
const ROUNDS: u64 = 100;
/// The call whose instructions at EL2 are counted.
const COUNTED: &str = "start_gcs";

/// Returns the scenario.
pub fn scenario() -> Scenario {
    let about = "FreeRTOS and a program of Linux make each of the fourteen calls of vMPCP";
    Scenario::new("vmpcp-calls", about, count).shipped()
}

fn count(bench: &Bench) -> Result<()> {
    let counted: Vec<_> = (0..ROWS.len()).filter(|&row| ROWS[row].key == COUNTED).collect();
    let cases = counted.iter().flat_map(|&row| Case::around(row));
    let cases = Case::measuring(ROUNDS).into_iter().chain(cases);
    let boot = |case: Case| case.run(&room(bench, &case.name())?, &mut |_| {});
    let seen: Vec<Seen> = cases.map(boot).collect::<Result<_>>()?;
    let outcome = Table::of(&seen, ROUNDS, counted.iter().copied()).answer().outcome;
    bench.demand(&outcome)
}
