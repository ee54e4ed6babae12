//! Benches: measurements with goals, written as every result is.
//!
//! | module | story |
//! | --- | --- |
//! | `experiment` | what an experiment is, and how one is conducted |
//! | `campaign`, `store`, `inputs` | its cases are run, and what is known is not run again |
//! | `sample` | several runs of the same |
//! | `el2`, `lhp`, `vtime` | the experiments |

mod campaign;
pub(crate) mod el2;
mod experiment;
mod inputs;
pub(crate) mod lhp;
mod sample;
mod store;
pub(crate) mod vtime;

pub use experiment::{Conduct, Experiment, Extent, Request};

use crate::view::{Scene, View};

/// Returns every experiment that `cassata bench` knows.
pub fn all() -> [&'static dyn Conduct; 3] {
    [&el2::Cost, &lhp::LockHolders, &vtime::Repeatability]
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
    fn every_experiment_has_a_name_of_its_own_and_says_what_it_is_about() {
        let names: BTreeSet<_> = super::all().iter().map(|one| one.name()).collect();
        assert_eq!(names.len(), super::all().len());
        assert!(super::all().iter().all(|one| one.about().len() > 20));
    }
}
