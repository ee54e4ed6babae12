//! The bench in short, as a test: Linux on several cores does the same every
//! time, to the instruction, whatever else the host does.

use super::case::{Case, Guest};
use super::run;
use crate::bench::campaign::room;
use crate::bench::store::Case as _;
use crate::results::{Check, Outcome};
use crate::suite::{Bench, Scenario};
use miette::{Result, miette};

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario {
    let about = "Linux on four cores repeats to the instruction, on an idle host and a busy one";
    Scenario::new("vtime-repeats", about, repeat).shipped()
}

fn repeat(bench: &Bench) -> Result<()> {
    let case = Case::new(Guest::Hackbench { runs: 1 }, 4);
    let [idle, busy] =
        [false, true].map(|busy_host| instructions(Case { busy_host, ..case }, bench));
    let (idle, busy) = (idle?, busy?);
    let agree = idle == busy && idle.len() == 4;
    let mut outcome = Outcome::new("vtime-repeats");
    outcome.figure("instructions", idle.clone());
    outcome.check(Check::done("a busy host changes nothing", agree));
    bench.keep(&outcome)?;
    agree.then_some(()).ok_or_else(|| miette!("instructions by core: {idle:?}, busy host {busy:?}"))
}

/// The instructions of each core.
fn instructions(case: Case, bench: &Bench) -> Result<Vec<u64>> {
    let measured = run::run(&case, &room(bench, &case.name())?, &mut |_| {})?;
    let counts = measured.statistics.ok_or_else(|| miette!("there are no statistics"))?;
    Ok(counts.vcpus.iter().map(|vcpu| vcpu.instructions).collect())
}
