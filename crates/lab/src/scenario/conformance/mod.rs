//! Guests that others wrote: that they run, and that tests which others wrote end here as on the
//! bare board.
//!
//! | module | story |
//! | --- | --- |
//! | [`differences`] | what may differ, as the book has it |
//! | [`kernels`] | Debian's other kernels, beside an RTOS |
//! | [`u_boot`] | U-Boot, and the tests of its EFI interface |
//! | [`selftests`] | the tests that the Linux kernel's own authors have |
//!
//! The launcher fetches what a scenario needs from Debian's packages (`guests/others`).

mod differences;
mod kernels;
mod selftests;
mod u_boot;

use crate::guests::{Verdict, Verdicts};
use crate::results::Outcome;
use crate::suite::{Bench, Scenario};
use miette::Result;

/// All of them.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    kernels::scenarios().chain([u_boot::scenario()]).chain(selftests::scenarios())
}

/// Returns where the description `name` is, below the project's root.
fn description(name: &str) -> String {
    format!("guests/others/systems/{name}.toml")
}

/// Compares how tests ended on the bare board and here, and records the latter. Returns what is
/// different and not documented, or documented and not different.
///
/// # Errors
/// When the document cannot be read.
fn compare(
    bench: &Bench,
    [bare, here]: [&Verdicts; 2],
    outcome: &mut Outcome,
) -> Result<Vec<String>> {
    let tests: serde_json::Map<_, _> =
        here.iter().map(|(name, verdict)| (name.into(), verdict.to_string().into())).collect();
    outcome.figure("tests", tests);
    let documented = differences::documented(&bench.root)?;
    Ok(differences::objections(&outcome.name, [bare, here], &documented))
}

/// Returns how many tests ended how, in words.
fn sum(verdicts: &Verdicts) -> String {
    let [passed, skipped, failed] =
        [Verdict::Passed, Verdict::Skipped, Verdict::Failed].map(|one| verdicts.count(one));
    format!("{passed} passed, {skipped} skipped, {failed} failed")
}
