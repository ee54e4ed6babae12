//! Random systems on the hypervisor, several to a machine: no response above its bound, no vCPU
//! beyond its budget, no mutex out of order.
//!
//! | module | story |
//! | --- | --- |
//! | `machine` | the systems that a seed draws for a machine |
//! | `description` | a machine as a system description |
//! | `case` | one machine, run and judged |
//! | `report` | the page, the tables, the checks |
//! | `smoke` | the first hundred systems, as machine tests |

mod case;
mod description;
mod machine;
mod report;
mod smoke;

use super::campaign::Findings;
use super::experiment::{Experiment, Extent};
use super::inputs::Inputs;
use super::{Conduct, Label, Tell};
use crate::answer::Answer;
use crate::guests::Images;
use crate::suite::{Bench, Scenario, side_by_side};
use case::{Case, Seen};
use clap::Args;
use machine::Machine;
use miette::Result;

/// What is conducted from here.
pub(super) const EXPERIMENTS: &[&dyn Conduct] = &[&Promised];

/// The experiment.
#[derive(Clone, Copy, Debug)]
pub struct Promised;

/// What can be asked of it.
#[derive(Args, Debug)]
pub struct Options {
    /// Systems in all, at least; with --quick a tenth of them
    #[arg(long, value_name = "N", default_value_t = 500,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    systems: u64,
    /// The seed of the first machine; each next one has the next
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
}

impl Experiment for Promised {
    const LABEL: Label = Label {
        name: "promises",
        about: "Run random systems on the hypervisor, and compare them with their bounds",
        details: "Draws systems of vCPUs with budgets and tasks that share resources, takes those \
                  for which the bounds say that every deadline holds, and runs several on one \
                  machine with the probe's tasks. Fails if a response was above its bound, a vCPU \
                  had more than its budget and overrun, or a mutex went to the wrong task.\n\n\
                  Each machine follows from a seed and is in virtual time, so that it can be run \
                  again alone. Its description is kept beside its logs.",
        examples: "  cassata bench promises                       500 systems\n  \
                   cassata bench promises --seed 17 --systems 1  one machine again\n  \
                   cassata bench promises --seed 1000 --systems 5000",
    };
    type Options = Options;
    type Case = Case;
    type Seen = Seen;

    fn inputs(&self, bench: &Bench) -> Result<Inputs> {
        let probe = Images::of(&bench.root).probe;
        Ok(Inputs::of(bench)?.files("probe", &[&probe])?.hypervisor(bench))
    }

    fn side_by_side(&self) -> usize {
        side_by_side()
    }

    fn cases(&self, extent: Extent, options: &Options) -> Vec<Case> {
        cases(options.seed, extent.part(options.systems))
    }

    fn run(&self, case: &Case, bench: &Bench, tell: Tell<'_>) -> Result<Seen> {
        case.run(bench, tell)
    }

    fn answer(&self, found: Findings<Seen>, _: &Bench) -> Result<Answer> {
        Ok(report::answer(&found.measurements))
    }

    fn scenarios(&self) -> Vec<Scenario> {
        smoke::scenarios().collect()
    }
}

/// Returns machines with so many systems in all, or a few more, from seed `first` on.
fn cases(first: u64, systems: u64) -> Vec<Case> {
    let mut drawn = 0;
    let mut cases = Vec::new();
    for seed in first.. {
        if drawn >= systems {
            break;
        }
        drawn += Machine::draw(seed).systems.len() as u64;
        cases.push(Case { seed });
    }
    cases
}

#[cfg(test)]
mod tests;
