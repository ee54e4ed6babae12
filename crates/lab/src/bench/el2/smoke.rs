//! The bench in short, as a test: no event costs more instructions than when that was last
//! recorded, and a mutex is granted in the time that is the goal.

use super::case::{self, Case, Seen};
use super::events::{self, Build, KINDS};
use super::grant::{self, Grant};
use super::lines::{DEPARTURE, Line};
use super::longest;
use super::migration;
use super::records::Recorded;
use crate::bench::campaign::room;
use crate::bench::store::Case as _;
use crate::looks::Exception;
use crate::paths::Paths;
use crate::quantity::real;
use crate::results::{Check, Goal, Outcome};
use crate::suite::{Bench, Scenario};
use analysis::overheads::instructions;
use miette::{Result, ensure};

/// How often each event is counted. Each takes the same instructions every time, so a few
/// tell what the bench's thousands do.
const EVENTS: u64 = 1_000;
/// The system for which the bounds of other duties are compared with what is assumed of those.
const DESCRIBED: &str = "systems/sharing.toml";
/// Kinds of visits for other duties: the console's, those of devices that are passed through, and of
/// guests that use emulated ones. They are as long as EL2 has something to do, but each piece of that
/// ends with a look, where an interrupt for something else comes first.
const DUTIES: [&str; 3] =
    ["interrupt: console", "interrupt: device", "synchronous: emulated device or unmapped address"];
/// Instructions by which a median may exceed what is recorded.
const SLACK: u32 = 3;

/// Returns the scenario.
pub fn scenario() -> Scenario {
    let about = "no event costs more than recorded, and a mutex is granted in time";
    Scenario::new("el2-instructions", about, count).shipped()
}

fn count(bench: &Bench) -> Result<()> {
    let boot = |case: Case| case::run(&case, &room(bench, &case.name())?, &mut |_| {});
    let cases = Build::ALL.map(|build| events::cases(EVENTS, build));
    let cases = cases.into_iter().flatten().chain(migration::counted(EVENTS));
    let cases = cases.chain([grant::case(EVENTS)]);
    let seen: Vec<Seen> = cases.map(boot).collect::<Result<_>>()?;
    let mut outcome = Outcome::new("el2-instructions");
    for build in Build::ALL {
        for kind in KINDS.iter().filter(|kind| build.has(kind)) {
            let visits = events::visits(kind, &seen, EVENTS, build);
            outcome.check(kind.check_count(&visits, EVENTS, build));
        }
    }
    for kind in &KINDS {
        let visits = events::visits(kind, &seen, EVENTS, Build::Plain);
        outcome.check(check(kind.name, kind.typical(&visits, EVENTS).map(f64::from), kind.line));
    }
    let departure = migration::departure(&seen, EVENTS);
    outcome.check(check("departure of a vCPU, beyond the wake", departure, DEPARTURE));
    Grant::of(&seen, EVENTS).judge(&mut outcome, EVENTS);
    Recorded::judge(&Recorded::all(&seen, EVENTS), &mut outcome);
    let paths = Paths::of(bench.hypervisor.with_parts, None).report()?;
    let stretches = longest::stretches(&seen, &paths);
    stretches.iter().for_each(|stretch| outcome.check(stretch.check()));
    let described = bench.described(DESCRIBED, &[])?;
    let paths = Paths::of(bench.hypervisor.of(&described), Some(&described)).report()?;
    for duty in DUTIES {
        let figure = paths.figures.iter().find(|figure| figure.name == duty);
        let piece = figure.and_then(|figure| figure.deaf).filter(|piece| piece.bounded);
        let piece = piece.map(|piece| real(piece.instructions));
        let most = Goal::AtMost(real(instructions::DUTY));
        let name = format!("{duty}, longest without a look: what bounds assume");
        outcome.check(Check::new(&name, piece, "instructions", most));
    }
    bench.demand(&outcome)?;
    ensure!(stretches.len() == Exception::ALL.len(), "looks were not seen: {stretches:?}");
    Ok(())
}

fn check(name: &str, median: Option<f64>, line: Line) -> Check {
    let most = f64::from(line.recorded + SLACK);
    Check::new(&format!("{name}, median"), median, "instructions", Goal::AtMost(most))
}
