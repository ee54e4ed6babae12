//! Benches: experiments, each of which answers as every result is written.
//!
//! | module | story |
//! | --- | --- |
//! | `experiment` | what an experiment is, and how one that is made of cases is conducted |
//! | `campaign`, `store`, `inputs` | its cases are run, and what is known is not run again |
//! | `sample` | several runs of the same |
//! | `el2`, `lhp`, `vtime` | the hypervisor, its policies, virtual time |
//! | `schedulability`, `case_study` | a published paper's experiments, repeated |
//! | `vmpcp` | what that paper's calls take a guest |
//! | `hostile` | the worst guest beside an RTOS |
//! | `promises` | random systems on the hypervisor, beside their bounds |
//! | `demo` | the demonstration |

mod campaign;
mod case_study;
mod demo;
pub(crate) mod el2;
mod experiment;
pub(crate) mod hostile;
mod inputs;
pub(crate) mod lhp;
pub(crate) mod promises;
mod sample;
mod schedulability;
mod store;
pub(crate) mod vmpcp;
pub(crate) mod vtime;

pub use demo::Demonstration;
pub use experiment::{Conduct, Experiment, Extent};
pub use hostile::Fuzz;

use crate::view::{Scene, View};

/// Returns every experiment that `cassata bench` knows.
pub fn all() -> [&'static dyn Conduct; 10] {
    [
        &el2::Cost,
        &vtime::Repeatability,
        &lhp::LockHolders,
        &promises::Promised,
        &schedulability::Schedulability,
        &case_study::Study,
        &vmpcp::Calls,
        &hostile::Hostile,
        &Fuzz,
        &Demonstration,
    ]
}

/// How an experiment is called, and what the command line's help says of it.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    /// Its name on the command line and that of the directory of its results.
    pub name: &'static str,
    /// What it shows, in a line.
    pub about: &'static str,
    /// What it does, in paragraphs.
    pub details: &'static str,
    /// Calls that teach what it can do, a line each.
    pub examples: &'static str,
}

/// What is told how far a machine is.
pub type Tell<'a> = &'a mut dyn FnMut(&str);

/// Tells how far a machine is.
pub(crate) struct ProgressView<'a>(pub Tell<'a>);

impl View for ProgressView<'_> {
    fn show(&mut self, scene: &Scene) {
        let virtual_s = scene.virtual_time.unwrap_or_default().as_secs_f64();
        (self.0)(&format!("{:.0} s for {virtual_s:.2} s", scene.elapsed.as_secs_f64()));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn every_experiment_has_a_name_of_its_own() {
        let names: BTreeSet<_> = super::all().iter().map(|one| one.label().name).collect();
        assert_eq!(names.len(), super::all().len());
    }
}
