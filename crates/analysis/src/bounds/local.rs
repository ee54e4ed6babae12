//! Section IV-B, first half: blocking by tasks of lower priority on the same
//! vCPU.

use super::arithmetic::{Computed, add, multiply};
use super::workload::Workload;
use crate::model::Ns;

impl Workload {
    /// Equation 7: the longest lcs that can block one normal segment of `task`.
    ///
    /// As published, only resources count whose ceiling is *higher* than the
    /// task's priority; the task's own lock on a resource that no higher task
    /// uses is forgotten. [`Corrected`](super::Bounds::Corrected) counts it.
    #[must_use]
    pub fn lcs_blocking(&self, task: usize) -> Ns {
        self.tasks[task].lcs_blocking
    }

    /// Equation 8: the longest that gcs's block one normal segment of `task`,
    /// one for each task of lower priority on the same vCPU.
    #[must_use]
    pub fn gcs_blocking(&self, task: usize) -> Ns {
        self.tasks[task].gcs_blocking
    }

    /// Equation 9, B^l: local blocking of a whole job, which is given a chance
    /// at its release and whenever the task waits for a global resource.
    ///
    /// # Errors
    /// When it overflows.
    pub fn local_blocking(&self, task: usize) -> Computed<Ns> {
        let task = &self.tasks[task];
        let chances = task.sections.len() as u64 + 1;
        multiply(chances, add(task.lcs_blocking, task.gcs_blocking)?)
    }
}
