//! An observer that keeps which vCPU ran when.

use crate::observer::{Doing, Observer};

/// A vCPU had its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The index.
    pub vcpu: usize,
    /// What it did.
    pub doing: Doing,
    /// ns.
    pub from: u64,
    /// ns.
    pub to: u64,
}

/// A job, from its arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Index of its task.
    pub task: usize,
    /// ns.
    pub arrival: u64,
    /// ns.
    pub completion: u64,
}

/// A task waited for a global resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The index.
    pub task: usize,
    /// The resource.
    pub resource: usize,
    /// ns.
    pub from: u64,
    /// When it was granted, ns; none: not yet.
    pub to: Option<u64>,
}

/// So many slices, jobs and waits are kept at most, each: more than one drawing
/// can show.
pub const MOST: usize = 20_000;

/// Everything up to an instant.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    end: u64,
    /// In the order of their ends.
    pub slices: Vec<Slice>,
    /// Complete jobs, in the order of completion.
    pub jobs: Vec<Job>,
    /// In the order of their beginnings.
    pub waits: Vec<Wait>,
}

impl Timeline {
    /// Keeps what happens before `end`, ns, or before there are more than [`MOST`]
    /// slices, jobs or waits.
    #[must_use]
    pub fn until(end: u64) -> Self {
        Self { end, ..Self::default() }
    }

    /// Forgets what is after `end`, ns.
    fn end_at(&mut self, end: u64) {
        self.end = end;
        self.slices.retain(|slice| slice.from < end);
        self.slices.iter_mut().for_each(|slice| slice.to = slice.to.min(end));
        self.jobs.retain(|job| job.completion <= end);
        self.waits.retain(|wait| wait.from < end);
        self.waits.iter_mut().for_each(|wait| wait.to = wait.to.map(|to| to.min(end)));
    }

    /// When it ends, ns.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.end
    }
}

impl Observer for Timeline {
    fn ran(&mut self, vcpu: usize, doing: Doing, from: u64, to: u64) {
        let to = to.min(self.end);
        if from >= to {
            return;
        }
        let mut own = self.slices.iter_mut().rev().take_while(|slice| slice.to >= from);
        if let Some(last) = own.find(|s| s.vcpu == vcpu && s.doing == doing && s.to == from) {
            last.to = to;
            return;
        }
        if self.slices.len() == MOST {
            self.end_at(from);
            return;
        }
        self.slices.push(Slice { vcpu, doing, from, to });
    }

    fn completed(&mut self, task: usize, arrival: u64, now: u64) {
        if now <= self.end && self.jobs.len() == MOST {
            self.end_at(now - 1);
        } else if now <= self.end {
            self.jobs.push(Job { task, arrival, completion: now });
        }
    }

    fn requested(&mut self, task: usize, resource: usize, granted: bool, now: u64) {
        if !granted && now < self.end && self.waits.len() == MOST {
            self.end_at(now);
        } else if !granted && now < self.end {
            self.waits.push(Wait { task, resource, from: now, to: None });
        }
    }

    fn returned(&mut self, _task: usize, _resource: usize, next: Option<usize>, now: u64) {
        let Some(next) = next else { return };
        let open = self.waits.iter_mut().rev().find(|w| w.task == next && w.to.is_none());
        if let Some(wait) = open {
            wait.to = Some(now.min(self.end));
        }
    }
}
