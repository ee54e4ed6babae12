//! What the calls of vMPCP take a guest: Table II of Kim, Wang and Rajkumar (RTSS 2014, section
//! V-B), from FreeRTOS and from Linux.
//!
//! | module | story |
//! | --- | --- |
//! | [`rows`] | what is measured, and what the paper measured |
//! | [`case`] | one boot, and what EL2 executed in it |
//! | [`table`] | the table, and what is demanded of it |
//! | [`smoke`] | the same in short, as a test |

mod case;
mod rows;
mod smoke;
mod table;

use super::campaign::Findings;
use super::experiment::{Experiment, Extent};
use super::inputs::Inputs;
use super::{Conduct, Label, Tell};
use crate::answer::Answer;
use crate::guests::Images;
use crate::suite::{Bench, Scenario};
use case::{Caller, Case, DESCRIBED, Seen};
use miette::Result;
use rows::ROWS;
use table::Table;

/// What is conducted from here.
pub(super) const EXPERIMENTS: &[&dyn Conduct] = &[&Calls];

/// The experiment.
#[derive(Clone, Copy, Debug)]
pub struct Calls;

impl Experiment for Calls {
    const LABEL: Label = Label {
        name: "vmpcp",
        about: "Table II of vMPCP (Kim, Wang and Rajkumar, RTSS 2014): what its calls take",
        details: "FreeRTOS, and then a program of Linux, opens, locks, unlocks and destroys \
                  mutexes of its VM and of the hypervisor, and raises and lowers its vCPU, ten \
                  thousand times each, alone on a core. Beside it stands what the paper measured \
                  on KVM. FreeRTOS then boots twice for each call, and ends once before and once \
                  after it: what EL2 executes more is what it executes for the call.",
        examples: "  cassata bench vmpcp\n  cassata bench vmpcp --quick",
    };
    type Options = ();
    type Case = Case;
    type Seen = Seen;

    fn inputs(&self, bench: &Bench) -> Result<Inputs> {
        let images = Images::of(&bench.root);
        let systems = Caller::ALL.map(|caller| bench.root.join(caller.system().0));
        let inputs = Inputs::of(bench)?.hypervisor(bench).files("rtos", &[&images.rtos])?;
        let inputs = inputs.files("linux", &[&images.kernel, &images.initramfs])?;
        inputs.files("systems", &systems.each_ref().map(AsRef::as_ref))
    }

    fn cases(&self, extent: Extent, (): &()) -> Vec<Case> {
        let repetitions = extent.part(DESCRIBED);
        let around = (0..ROWS.len()).flat_map(Case::around);
        Case::measuring(repetitions).into_iter().chain(around).collect()
    }

    fn run(&self, case: &Case, bench: &Bench, tell: Tell<'_>) -> Result<Seen> {
        case.run(bench, tell)
    }

    fn answer(&self, found: Findings<Seen>, _: &Bench) -> Result<Answer> {
        let repetitions = found.planned.iter().find(|case| case.stop.is_none());
        let repetitions = repetitions.map_or(DESCRIBED, |case| case.repetitions);
        Ok(Table::of(&found.measurements, repetitions, 0..ROWS.len()).answer())
    }

    fn scenarios(&self) -> Vec<Scenario> {
        vec![smoke::scenario()]
    }
}
