//! Whether virtual time is what it should be: repeatable, exact, and not too
//! dear.
//!
//! | module | story |
//! | --- | --- |
//! | [`case`] | one run of a machine |
//! | [`matrix`] | all runs |
//! | [`run`] | running one, beside other work if need be |
//! | [`figures`] | what a guest found |
//! | [`checks`], [`hackbench`] | what must hold |
//! | [`tables`], [`report`] | for people |
//! | `quoted` | what the book quotes |
//! | [`smoke`] | the same in short, as a test |

pub mod case;
mod checks;
pub mod figures;
mod hackbench;
pub mod matrix;
mod quoted;
mod report;
pub mod run;
mod smoke;
mod tables;

use super::campaign::Findings;
use super::experiment::{Experiment, Extent};
use super::inputs::Inputs;
use super::store::Case as _;
use super::{Conduct, Label, Tell};
use crate::answer::Answer;
use crate::guests::Images;
use crate::suite::{Bench, Scenario};
use case::Case;
use miette::Result;
use run::Measurement;
use serde_json::json;

/// What is conducted from here.
pub(super) const EXPERIMENTS: &[&dyn Conduct] = &[&Repeatability];

/// The experiment. Real time is measured too, so machines run one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Repeatability;

impl Experiment for Repeatability {
    const LABEL: Label = Label {
        name: "vtime",
        about: "What virtual time is worth, and what it costs",
        details: "Tells whether virtual time is repeatable, exact, and not too dear, with stock \
                  Linux and a bare-metal guest on up to eight cores. It takes half an hour or \
                  more.",
        examples: "  cassata bench vtime --quick     coarsely, in some minutes\n  \
                   cassata bench vtime             go on where an earlier one was stopped",
    };
    type Options = ();
    type Case = Case;
    type Seen = Measurement;

    fn inputs(&self, bench: &Bench) -> Result<Inputs> {
        let metronome = Images::of(&bench.root).metronome;
        Inputs::of(bench)?.linux(bench)?.files("metronome", &[&metronome])
    }

    fn cases(&self, extent: Extent, (): &()) -> Vec<Case> {
        matrix::cases(extent)
    }

    fn run(&self, case: &Case, bench: &Bench, tell: Tell<'_>) -> Result<Measurement> {
        run::run(case, bench, tell)
    }

    fn answer(&self, found: Findings<Measurement>, _: &Bench) -> Result<Answer> {
        let mut answer = Vtime::of(found.planned, found.measurements.clone()).answer();
        let host_cores = std::thread::available_parallelism().map_or(0, usize::from);
        answer.outcome.parameter("host_cores", host_cores);
        let cases = found.measurements.iter().map(|m| (m.case.name(), json!(m)));
        answer.outcome.figure("cases", cases.collect::<serde_json::Map<_, _>>());
        Ok(answer)
    }

    fn scenarios(&self) -> Vec<Scenario> {
        vec![smoke::scenario()]
    }
}

/// Everything that was measured.
#[derive(Debug)]
struct Vtime {
    planned: Vec<Case>,
    measurements: Vec<Measurement>,
}

impl Vtime {
    fn of(planned: Vec<Case>, measurements: Vec<Measurement>) -> Self {
        Self { planned, measurements }
    }
}
