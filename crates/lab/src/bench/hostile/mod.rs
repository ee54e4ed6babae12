//! What the worst guest does to its neighbours: each attack, on one, two and eight vCPUs, beside
//! FreeRTOS on a shared core and a second real-time VM, and under each policy.
//!
//! | module | story |
//! | --- | --- |
//! | `mode` | the attacks, and what of the machine tests is above the goal |
//! | `case` | one machine: its description, run and judged |
//! | `seen` | what a run brought, and what must hold whatever the figures are |
//! | `known` | what is known to miss a goal of the bench, and why |
//! | `remains` | what is in the memory that a machine has left |
//! | `report` | the page, the tables, the checks |
//! | `quote` | what the book says of them |
//! | `leaks` | what one VM finds of another, and of its own former life |
//! | `fuzz` | mixtures by seed, as many as asked for |
//! | `smoke` | all of it in short, as machine tests |

mod case;
mod fuzz;
mod known;
mod leaks;
mod mode;
mod quote;
mod remains;
mod report;
mod seen;
mod smoke;

use super::campaign::Findings;
use super::experiment::{Experiment, Extent};
use super::inputs::Inputs;
use super::{Conduct, Label, Tell};
use crate::answer::Answer;
use crate::guests::Images;
use crate::suite::{Bench, Scenario, side_by_side};
use case::{Adversary, Case, SYSTEM};
pub use fuzz::Fuzz;
use miette::Result;
use mode::{MODES, WOKEN};
use sched::policy::MigrationPolicy;
use seen::Seen;

/// How long each machine runs, ms of virtual time: all of them together run for two minutes.
const LENGTH_MS: u64 = 200;
/// The same with `--quick`.
const QUICK_MS: u64 = 40;
/// vCPUs that an adversary has.
const VCPUS: [u32; 3] = [1, 2, 8];

/// What is conducted from here.
pub(super) const EXPERIMENTS: &[&dyn Conduct] = &[&Hostile, &Fuzz];

/// The experiment.
#[derive(Clone, Copy, Debug)]
pub struct Hostile;

impl Experiment for Hostile {
    const LABEL: Label = Label {
        name: "hostile",
        about: "Attack the hypervisor in every known way, beside FreeRTOS and another real-time VM",
        details: "A bare-metal guest does one thing for as long as it runs: it floods the virtual \
                  interrupt controller, writes every system register, calls with random \
                  arguments, resets and crashes, switches its vCPUs on and off, and so on, or \
                  mixes all of that. Measured is what its neighbours notice: the latencies of \
                  FreeRTOS, which shares a core with it, what a second real-time VM on another \
                  core does in its time, and what of that VM's console arrives.\n\n\
                  Each attack has one, two and eight vCPUs, and eight on FreeRTOS's core, runs as a \
                  real-time VM too, and under each policy. Attacks that make cores send each other \
                  messages also run beside a FreeRTOS that another core wakes. All of it is not three \
                  minutes of virtual time, an hour or more for two processors.",
        examples: "  cassata bench hostile\n  cassata bench hostile --quick\n  \
                   cassata bench hostile --point pending",
    };
    type Options = ();
    type Case = Case;
    type Seen = Seen;

    fn inputs(&self, bench: &Bench) -> Result<Inputs> {
        inputs(bench)
    }

    fn side_by_side(&self) -> usize {
        side_by_side()
    }

    fn cases(&self, extent: Extent, (): &()) -> Vec<Case> {
        let length_ms = match extent {
            Extent::Paper | Extent::Full => LENGTH_MS,
            Extent::Quick => QUICK_MS,
        };
        cases(length_ms)
    }

    fn run(&self, case: &Case, bench: &Bench, tell: Tell<'_>) -> Result<Seen> {
        case.run(bench, tell)
    }

    fn answer(&self, found: Findings<Seen>, _: &Bench) -> Result<Answer> {
        Ok(report::answer(&found.measurements))
    }

    fn scenarios(&self) -> Vec<Scenario> {
        smoke::scenarios().chain([leaks::restart()]).collect()
    }
}

/// What every run depends on.
fn inputs(bench: &Bench) -> Result<Inputs> {
    let images = Images::of(&bench.root);
    let inputs = Inputs::of(bench)?.hypervisor(bench).files("rtos", &[&images.rtos])?;
    let inputs = inputs.files("probe", &[&images.probe, &images.probe_high])?;
    inputs.files("systems", &[&bench.root.join(SYSTEM)])
}

/// Returns all cases: first the neighbours alone, then each attack on each number of vCPUs, on
/// many of one core, as a real-time VM, and under each policy; then some beside a FreeRTOS that another
/// core wakes.
fn cases(length_ms: u64) -> Vec<Case> {
    let of = |adversary, is_woken| Case { adversary, is_woken, length_ms };
    let mut cases = vec![of(None, false), of(None, true)];
    let mut add = |adversary| cases.push(of(Some(adversary), false));
    for mode in MODES {
        VCPUS.iter().for_each(|&vcpus| add(Adversary { vcpus, ..Adversary::plain(mode) }));
        add(Adversary::crowd(mode));
        add(Adversary { is_realtime: true, ..Adversary::plain(mode) });
        for policy in MigrationPolicy::ALL.iter().filter(|policy| policy.name() != case::NONE) {
            add(Adversary { policy: policy.name().into(), ..Adversary::plain(mode) });
        }
    }
    let mut add = |adversary| cases.push(of(Some(adversary), true));
    WOKEN.iter().for_each(|mode| add(Adversary::many(mode)));
    add(Adversary::crowd("messages"));
    add(Adversary { is_realtime: true, ..Adversary::many("messages") });
    for policy in MigrationPolicy::ALL.iter().filter(|policy| policy.name() != case::NONE) {
        if !policy.needs().for_realtime {
            add(Adversary { policy: policy.name().into(), ..Adversary::many("messages") });
        }
    }
    cases
}

/// Returns true if these are all cases, each at its full length.
fn is_whole<'a>(measured: impl Iterator<Item = &'a Case>) -> bool {
    let measured: Vec<_> = measured.collect();
    cases(LENGTH_MS).iter().all(|case| measured.contains(&case))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::store::Case as _;
    use std::collections::BTreeSet;

    #[test]
    fn every_case_has_a_name_of_its_own_and_all_take_two_minutes() {
        let cases = cases(LENGTH_MS);
        let names: BTreeSet<_> = cases.iter().map(Case::name).collect();
        assert_eq!(names.len(), cases.len());
        assert!(is_whole(cases.iter()) && !is_whole(cases[1..].iter()));
        assert!(!is_whole(super::cases(QUICK_MS).iter()), "quick ones are other cases");
        let total_s = cases.iter().map(|case| case.length_ms).sum::<u64>() / 1_000;
        assert!((110..130).contains(&total_s), "{total_s} s: the help and the book say how long");
        assert_eq!(cases.len(), 630, "the book says so");
    }
}
