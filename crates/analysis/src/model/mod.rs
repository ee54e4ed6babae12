//! The system model of vMPCP (Kim, Wang and Rajkumar, RTSS 2014, section II):
//! vCPUs with budgets on pCPUs, tasks on vCPUs, segments in tasks, and the
//! resources that critical sections use.
//!
//! A [`System`] is read with [`System::from_json`], or put together by a program
//! and then checked with [`System::check`].

mod check;
mod handler;
mod json;
mod served;
mod traffic;

use std::fmt;
use thiserror::Error;

pub use handler::Handler;
pub use sched::server::ServerKind;
pub use served::{Service, Vcpus};
pub use traffic::{Cause, Traffic, Visits};

/// A length of time, in nanoseconds.
pub type Ns = u64;

/// vCPUs, tasks and resources, and how budgets are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    /// The kind of server of a vCPU that has no [`Service`] of its own.
    pub server: ServerKind,
    /// True if such a vCPU may finish a global critical section without budget.
    pub overrun: bool,
    /// In the order in which they were described.
    pub vcpus: Vcpus,
    /// In the order in which they were described.
    pub tasks: Vec<Task>,
    /// In the order in which they were described.
    pub handlers: Vec<Handler>,
    /// Names of the resources that [`Section`] numbers.
    pub resources: Vec<String>,
    /// What EL2 does on cores because vCPUs migrate, or stop together.
    pub traffic: Vec<Traffic>,
}

/// A virtual CPU, bound to one pCPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vcpu {
    /// The name, which no other vCPU has.
    pub id: String,
    /// The physical CPU that it runs on.
    pub pcpu: u32,
    /// What it may run in a period: from 1 ns to the period.
    pub budget_ns: Ns,
    /// From one replenishment to the next, at least 1 ns.
    pub period_ns: Ns,
    /// Greater is higher. No other vCPU of the system has the same: queues of
    /// global resources order all of them.
    pub priority: i64,
    /// When its first period begins. The bounds hold for every offset.
    pub offset_ns: Ns,
}

/// A task, bound to one vCPU. Its deadline is its period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The name, which no other task has.
    pub id: String,
    /// Index of its vCPU in [`System::vcpus`].
    pub vcpu: usize,
    /// From one release to the next, and from a release to its deadline; at
    /// least the sum of its segments.
    pub period_ns: Ns,
    /// Greater is higher. No other task of the vCPU has the same.
    pub priority: i64,
    /// What each job executes, in this order; at least one.
    pub segments: Vec<Segment>,
    /// When it is released first. The bounds hold for every offset.
    pub offset_ns: Ns,
    /// How late a release may come after its period has begun, less than the
    /// period. The deadline does not move.
    pub jitter_ns: Ns,
}

impl Task {
    /// Returns true if it has a global critical section of this resource.
    #[must_use]
    pub fn uses(&self, resource: usize) -> bool {
        self.segments.iter().any(|segment| segment.section == Section::Global(resource))
    }
}

/// A stretch of a task's execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Worst-case execution time, at least 1 ns.
    pub wcet_ns: Ns,
    /// What it holds meanwhile.
    pub section: Section,
}

/// What a segment holds. Resources are indices in [`System::resources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Section {
    /// Nothing: normal execution.
    Normal,
    /// A global resource, which tasks of several vCPUs use: a global critical
    /// section (gcs).
    Global(usize),
    /// A local resource, which only tasks of this vCPU use: a local critical
    /// section (lcs).
    Local(usize),
}

/// What is wrong with a description: where, what, and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {what}")]
pub struct Problem {
    /// A place in the description such as `tasks[0].segments[1].wcet`, or a line
    /// and column where the text is no JSON.
    pub place: String,
    /// What is wrong there.
    pub what: String,
    /// How to mend it.
    pub mend: String,
}

impl Problem {
    fn new(place: impl fmt::Display, what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { place: place.to_string(), what: what.into(), mend: mend.into() }
    }
}

#[cfg(test)]
mod tests;
