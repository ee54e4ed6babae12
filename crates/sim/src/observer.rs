//! What can be watched while a world goes on.

use crate::system::Need;

/// What a core does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Doing {
    /// A periodic server idles its budget away.
    Idling,
    /// A task executes.
    Task {
        /// The index.
        task: usize,
        /// What it holds.
        need: Need,
    },
}

/// Is told of everything, in the order of time. Tasks, vCPUs and resources are
/// indices, instants are ns.
pub trait Observer {
    /// A vCPU had a core, and did this; periods in a row may be told in pieces.
    fn ran(&mut self, _vcpu: usize, _doing: Doing, _from: u64, _to: u64) {}
    /// A job is ready for the first time.
    fn released(&mut self, _task: usize, _now: u64) {}
    /// A job has done all its segments. `arrival` is when its period began.
    fn completed(&mut self, _task: usize, _arrival: u64, _now: u64) {}
    /// A task requests a global resource, and has it at once or waits.
    fn requested(&mut self, _task: usize, _resource: usize, _granted: bool, _now: u64) {}
    /// A task gives a global resource back; whose it is now.
    fn returned(&mut self, _task: usize, _resource: usize, _next: Option<usize>, _now: u64) {}
    /// A task takes a local resource.
    fn took_local(&mut self, _task: usize, _resource: usize, _now: u64) {}
    /// A task gives a local resource back.
    fn returned_local(&mut self, _task: usize, _resource: usize, _now: u64) {}
    /// A task must wait for a local resource that `_by` holds.
    fn blocked_local(&mut self, _task: usize, _by: usize, _now: u64) {}
}

/// Watches nothing.
impl Observer for () {}

/// Two watch the same.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn ran(&mut self, vcpu: usize, doing: Doing, from: u64, to: u64) {
        self.0.ran(vcpu, doing, from, to);
        self.1.ran(vcpu, doing, from, to);
    }
    fn released(&mut self, task: usize, now: u64) {
        self.0.released(task, now);
        self.1.released(task, now);
    }
    fn completed(&mut self, task: usize, arrival: u64, now: u64) {
        self.0.completed(task, arrival, now);
        self.1.completed(task, arrival, now);
    }
    fn requested(&mut self, task: usize, resource: usize, granted: bool, now: u64) {
        self.0.requested(task, resource, granted, now);
        self.1.requested(task, resource, granted, now);
    }
    fn returned(&mut self, task: usize, resource: usize, next: Option<usize>, now: u64) {
        self.0.returned(task, resource, next, now);
        self.1.returned(task, resource, next, now);
    }
    fn took_local(&mut self, task: usize, resource: usize, now: u64) {
        self.0.took_local(task, resource, now);
        self.1.took_local(task, resource, now);
    }
    fn returned_local(&mut self, task: usize, resource: usize, now: u64) {
        self.0.returned_local(task, resource, now);
        self.1.returned_local(task, resource, now);
    }
    fn blocked_local(&mut self, task: usize, by: usize, now: u64) {
        self.0.blocked_local(task, by, now);
        self.1.blocked_local(task, by, now);
    }
}
