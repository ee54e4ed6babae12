//! The first hundred systems, as machine tests.

use super::case::Case;
use super::cases;
use crate::results::{Check, Outcome};
use crate::suite::{Bench, Scenario};
use miette::{Result, ensure};

/// How many systems the tests run, at least.
pub(super) const SYSTEMS: u64 = 100;
/// The seed of the first machine.
pub(super) const FIRST: u64 = 1;

/// Returns a scenario for each machine.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    cases(FIRST, SYSTEMS).into_iter().map(|case| {
        let name = format!("promises-{}", case.seed);
        let about = "no response of random systems exceeds its bound, no mutex is out of order";
        Scenario::new(name, about, move |bench: &Bench| run(case, bench)).shipped()
    })
}

fn run(case: Case, bench: &Bench) -> Result<()> {
    let seen = case.run(bench, &mut |_| {})?;
    let mut outcome = Outcome::new(&format!("promises-{}", case.seed));
    let responses = seen.tasks.iter().map(|task| (task.name.clone(), task.longest_ns.into()));
    outcome.figures.extend(responses);
    outcome.check(Check::done("every promise was kept", seen.broken.is_empty()));
    let [judged, supplies] = seen.supplies;
    let is_judged = supplies > 0 && judged == supplies;
    outcome.check(Check::done("what each vCPU had was judged", is_judged));
    bench.keep(&outcome)?;
    ensure!(is_judged, "what {judged} of {supplies} vCPUs had in their periods was judged");
    let hint = format!("./cassata bench promises --seed {} --systems 1", case.seed);
    ensure!(seen.broken.is_empty(), "{}\n(again: {hint})", seen.broken.join("\n"));
    Ok(())
}
