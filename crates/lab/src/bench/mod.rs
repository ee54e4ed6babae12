//! Benches: experiments, each of which answers as every result is written. What each one is
//! stands in its label.
//!
//! | module | story |
//! | --- | --- |
//! | `experiment` | what an experiment is, and how one that is made of cases is conducted |
//! | `campaign`, `store`, `inputs` | its cases are run, and what is known is not run again |
//! | `worker` | one case, run beside others on any number of machines, and all of them together |
//! | `sample` | several runs of the same |

mod campaign;
mod experiment;
mod inputs;
mod sample;
mod store;
mod worker;

pub use demo::Demonstration;
pub use experiment::{Conduct, Experiment, Extent};
pub use hostile::Fuzz;
pub use worker::{Point, Points};

pub(crate) use el2::visits;

use crate::view::{Scene, View};

/// Declares the folders of experiments, and the list of all that is in them. rustfmt looks for
/// modules in no macro but one of this name and form.
macro_rules! cfg_if {
    (if #[cfg(all())] { $(mod $folder:ident;)* }) => {
        $(mod $folder;)*

        /// Returns every experiment that `cassata bench` knows.
        #[must_use]
        pub fn all() -> Vec<&'static dyn Conduct> {
            [$($folder::EXPERIMENTS),*].concat()
        }
    };
}

// A new experiment is a line here, and its folder with its `EXPERIMENTS`. The command line's help
// has this order.
cfg_if! {
    if #[cfg(all())] {
        mod el2;
        mod cost;
        mod vtime;
        mod lhp;
        mod promises;
        mod schedulability;
        mod case_study;
        mod vmpcp;
        mod hostile;
        mod peers;
        mod kvm_rt;
        mod demo;
    }
}

/// How an experiment is called, and what the command line's help says of it.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    /// The name on the command line and that of the directory of its results.
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
    use super::all;
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    #[test]
    fn every_experiment_has_a_name_of_its_own() {
        let names: BTreeSet<_> = all().iter().map(|one| one.label().name).collect();
        assert_eq!(names.len(), all().len());
    }

    /// What folders implement is what there is, each under its type's name.
    #[test]
    fn no_folder_is_left_out() {
        let (mut implemented, mut places) = (BTreeSet::new(), vec![folder()]);
        while let Some(place) = places.pop() {
            if place.is_dir() {
                places.extend(std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()));
                continue;
            }
            let text = std::fs::read_to_string(place).unwrap();
            let named = text.lines().filter_map(|line| {
                let (what, name) =
                    line.strip_prefix("impl ")?.strip_suffix(" {")?.split_once(" for ")?;
                matches!(what.rsplit(':').next(), Some("Conduct" | "Experiment")).then_some(name)
            });
            implemented.extend(named.map(str::to_owned));
        }
        let known: BTreeSet<_> = all().iter().map(|one| format!("{one:?}")).collect();
        assert_eq!(known, implemented);
    }

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bench")
    }
}
