//! The schedulability experiments of vMPCP (Kim, Wang and Rajkumar, RTSS 2014,
//! section V-A): Figures 6 to 10, and beside each what the paper says of it.
//!
//! | module | story |
//! | --- | --- |
//! | `curves` | ten thousand random tasksets ([`analysis::tasksets`]) at each point |
//! | `figure` | what varies, and the paper's statements as checks |
//! | `case` | one figure, with our choices and others |
//! | `report` | the page, the drawings, the tables, the JSON |
//! | `quoted` | what the book quotes |

mod case;
mod curves;
mod figure;
mod quoted;
mod report;

use super::campaign::Findings;
use super::experiment::{Experiment, Extent};
use super::inputs::Inputs;
use super::{Conduct, Label, Tell};
use crate::answer::Answer;
use crate::suite::Bench;
use case::{Case, Seen};
use clap::Args;
use figure::FIGURES;
use miette::Result;

/// What is conducted from here.
pub(super) const EXPERIMENTS: &[&dyn Conduct] = &[&Schedulability];

/// The experiment.
#[derive(Clone, Copy, Debug)]
pub struct Schedulability;

/// What can be asked of it.
#[derive(Args, Debug)]
pub struct Options {
    /// Only this figure: 6 to 10; may be repeated
    #[arg(long = "figure", value_name = "N", value_parser = clap::value_parser!(u32).range(6..=10))]
    figures: Vec<u32>,
    /// Tasksets at each point; with --quick a tenth of them
    #[arg(long, value_name = "N", default_value_t = 10_000,
          value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    tasksets: u64,
    /// Of the random numbers: the same seed draws the same tasksets
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

impl Experiment for Schedulability {
    const LABEL: Label = Label {
        name: "schedulability",
        about: "Figures 6 to 10 of vMPCP (Kim, Wang and Rajkumar, RTSS 2014)",
        details: "Draws random tasksets around the paper's Table I, computes with the published \
                  bounds which are schedulable under PSwO, DSwO, PSnO and DSnO, and shows beside \
                  each figure what the paper says of it and whether ours agrees. What the paper \
                  leaves open is listed, with how much it matters.\n\n\
                  Exits with 0 whether it agrees or not: that is a finding.",
        examples: "  cassata bench schedulability               figures 6 to 10\n  \
                   cassata bench schedulability --figure 9    one of them\n  \
                   cassata bench schedulability --figure 9 --tasksets 1000",
    };
    type Options = Options;
    type Case = Case;
    type Seen = Seen;

    fn inputs(&self, _: &Bench) -> Result<Inputs> {
        Inputs::program()
    }

    fn cases(&self, extent: Extent, options: &Options) -> Vec<Case> {
        let tasksets = extent.part(options.tasksets);
        let asked = |n: &u32| options.figures.is_empty() || options.figures.contains(n);
        let numbers = FIGURES.map(|figure| figure.number).into_iter().filter(asked);
        numbers.map(|figure| Case { figure, tasksets, seed: options.seed }).collect()
    }

    fn run(&self, case: &Case, bench: &Bench, tell: Tell<'_>) -> Result<Seen> {
        case.run(&bench.interrupt, tell)
    }

    fn answer(&self, found: Findings<Seen>, _: &Bench) -> Result<Answer> {
        Ok(report::answer(found.measurements))
    }
}

#[cfg(test)]
mod tests;
