//! A real-time hypervisor taken apart as the paper on KVM does (Ma and others, "Performance Tuning
//! Towards a KVM-based Embedded Real-Time Virtualization System"): the way of an interrupt to its guest, stage by stage.
//!
//! | module | story |
//! | --- | --- |
//! | [`case`] | one run, all of them |
//! | [`machine`] | what boots |
//! | [`marks`] | where stages begin and end |
//! | [`fold`] | the way of one interrupt |
//! | [`run`] | running it |
//! | [`report`], [`checks`] | what was found, and what the paper says of it |
//! | [`smoke`] | some runs as a test |

mod case;
mod checks;
mod fold;
mod machine;
mod marks;
mod report;
mod run;
mod smoke;

use super::campaign::Findings;
use super::experiment::{Experiment, Extent};
use super::inputs::Inputs;
use super::{Conduct, Label, Tell};
use crate::answer::Answer;
use crate::guests::Images;
use crate::suite::{Bench, Scenario};
use case::Case;
use miette::Result;
use run::Seen;

/// What is conducted from here.
pub(super) const EXPERIMENTS: &[&dyn Conduct] = &[&KvmRt];

/// The experiment.
#[derive(Clone, Copy, Debug)]
pub struct KvmRt;

/// It has no options of its own.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Options {}

impl Experiment for KvmRt {
    const LABEL: Label = Label {
        name: "kvm-rt",
        about: "an interrupt's way to FreeRTOS, stage by stage, as the paper on KVM takes it apart",
        details: "Marks in the hypervisor and in FreeRTOS tell when each of 2,000 interrupts comes \
                  to them, by each way that one can take, beside a Linux that sleeps and one that \
                  works. It takes half an hour, and goes on where it was stopped; with --quick it \
                  takes some minutes.",
        examples: "  cassata bench kvm-rt --quick\n  \
                   cassata bench kvm-rt --point stages-departure",
    };
    type Options = Options;
    type Case = Case;
    type Seen = Seen;

    fn inputs(&self, bench: &Bench) -> Result<Inputs> {
        let images = Images::of(&bench.root);
        let inputs = Inputs::of(bench)?.hypervisor(bench).linux(bench)?;
        inputs.files("freertos", &[&images.rtos])
    }

    /// Cores take turns, so one machine uses little more than one processor.
    fn side_by_side(&self) -> usize {
        2
    }

    fn cases(&self, extent: Extent, _: &Options) -> Vec<Case> {
        case::cases(extent)
    }

    fn run(&self, case: &Case, bench: &Bench, tell: Tell<'_>) -> Result<Seen> {
        run::run(case, bench, tell)
    }

    fn answer(&self, found: Findings<Seen>, _: &Bench) -> Result<Answer> {
        Ok(found.answer())
    }

    fn scenarios(&self) -> Vec<Scenario> {
        smoke::scenarios()
    }
}

/// Everything that was measured.
type All = Findings<Seen>;
