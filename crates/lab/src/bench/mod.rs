//! Benches: measurements with goals, written as every result is.

pub mod campaign;
pub mod common;
pub mod el2;
pub mod lhp;
pub mod sample;
pub mod store;
pub mod vtime;

use crate::progress::Progress;
use crate::view::{Scene, View};

/// How thoroughly to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Everything that is asked for.
    Full,
    /// The same, coarsely, in a few minutes.
    Quick,
}

/// Tells of a machine that runs on one line of progress.
pub(crate) struct Told<'a> {
    progress: &'a mut Progress,
    what: &'a str,
}

impl<'a> Told<'a> {
    /// Tells of `what`, in words.
    pub(crate) fn of(what: &'a str, progress: &'a mut Progress) -> Self {
        Self { progress, what }
    }
}

impl View for Told<'_> {
    fn show(&mut self, scene: &Scene) {
        self.progress.now(&format!("{}: {}", self.what, scene.time()));
    }
}
