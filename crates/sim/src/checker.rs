//! An observer that objects to whatever the protocol forbids.
//!
//! It knows the system, not the scheduler: it keeps accounts of its own by
//! counting which vCPU ran in which period, holders of resources by what was
//! observed, and queues as lists that it searches.

use crate::observer::{Doing, Observer};
use crate::system::{Need, Protocol, System};
use std::cmp::Reverse;

/// Objects to the first thing that must not be.
#[derive(Clone, Debug)]
pub struct Checker {
    system: System,
    /// By core: until when a vCPU ran.
    busy: Vec<u64>,
    /// By vCPU: the period it ran in last, and for how long in it.
    used: Vec<(u64, u64)>,
    /// By global resource.
    holders: Vec<Option<usize>>,
    /// By global resource: the vCPUs that wait.
    waiting: Vec<Vec<usize>>,
    /// Local resources that are held, and their holders.
    locals: Vec<(usize, usize)>,
    /// Tasks that wait for a local resource.
    blocked: Vec<usize>,
    /// By task: whether it could execute.
    ready: Vec<bool>,
    objection: Option<String>,
}

impl Checker {
    /// Watches a world made of this system.
    #[must_use]
    pub fn new(system: &System) -> Self {
        let needs = || system.tasks.iter().flat_map(|task| &task.segments).map(|s| s.need);
        let global = |need| if let Need::Global(g) = need { Some(g + 1) } else { None };
        let globals = needs().filter_map(global).max().unwrap_or(0);
        Self {
            system: system.clone(),
            busy: vec![0; system.cores()],
            used: vec![(0, 0); system.vcpus.len()],
            holders: vec![None; globals],
            waiting: vec![Vec::new(); globals],
            locals: Vec::new(),
            blocked: Vec::new(),
            ready: vec![false; system.tasks.len()],
            objection: None,
        }
    }

    /// What it objects to.
    #[must_use]
    pub fn objection(&self) -> Option<&str> {
        self.objection.as_deref()
    }

    fn demand(&mut self, holds: bool, now: u64, otherwise: impl FnOnce() -> String) {
        if !holds && self.objection.is_none() {
            self.objection = Some(format!("at {now} ns: {}", otherwise()));
        }
    }

    /// Budget and overrun of the period that an interval is in; intervals that
    /// reach into the next are taken apart.
    fn account(&mut self, vcpu: usize, doing: Doing, mut from: u64, to: u64) {
        let spec = &self.system.vcpus[vcpu];
        let (Some(server), offset, name) = (spec.server, spec.offset, spec.name.clone()) else {
            return;
        };
        let gcs = match doing {
            Doing::Task { need: Need::Global(_), .. } => true,
            // In the overrun a handler interrupts a gcs.
            Doing::Task { task, .. } if self.system.tasks[task].handler => {
                let mut holders = self.holders.iter().flatten();
                holders.any(|&by| self.system.tasks[by].vcpu == vcpu)
            }
            _ => false,
        };
        let overruns = gcs && self.system.protocol == Protocol::Vmpcp;
        let limit = server.budget.0 + if overruns { server.overrun.0 } else { 0 };
        self.demand(from >= offset, from, || format!("{name} runs before its first period"));
        while from < to {
            let period = from.saturating_sub(offset) / server.period.0;
            let end = to.min(offset + (period + 1) * server.period.0);
            let (latest, mut used) = self.used[vcpu];
            used = if latest == period { used } else { 0 } + (end - from);
            self.used[vcpu] = (period, used);
            self.demand(used <= limit, end, || format!("{name} has had {used} of {limit} ns"));
            from = end;
        }
    }

    /// Returns true if a task that runs outside global critical sections is the one
    /// that should, as far as priorities say; inside, only handlers go before it.
    fn is_due(&self, task: usize, need: Need) -> bool {
        let spec = &self.system.tasks[task];
        let in_gcs = matches!(need, Need::Global(_));
        let holds_local = self.locals.iter().any(|&(_, by)| by == task);
        let mut mates = (0..self.ready.len())
            .filter(|&mate| mate != task && self.system.tasks[mate].vcpu == spec.vcpu);
        mates.all(|mate| {
            let other = &self.system.tasks[mate];
            let higher = other.rank() > spec.rank();
            if spec.handler || other.handler {
                return !higher || !self.ready[mate];
            }
            let raised = self.holders.contains(&Some(mate));
            in_gcs || !raised && (holds_local || !higher || !self.ready[mate])
        })
    }

    /// What the queue of a resource is ordered by; the least is next.
    fn key(&self, task: usize) -> (Reverse<u64>, Reverse<u64>, Reverse<usize>) {
        let spec = &self.system.tasks[task];
        let (vcpu, own) = (self.system.vcpus[spec.vcpu].priority, spec.priority);
        match self.system.protocol {
            Protocol::Vmpcp => (Reverse(vcpu), Reverse(spec.vcpu as u64), Reverse(own as usize)),
            Protocol::Mpcp => (Reverse(own), Reverse(vcpu), Reverse(spec.vcpu)),
        }
    }
}

impl Observer for Checker {
    fn ran(&mut self, vcpu: usize, doing: Doing, from: u64, to: u64) {
        let core = self.system.vcpus[vcpu].core;
        self.demand(self.busy[core] <= from, from, || format!("two vCPUs run on core {core}"));
        self.busy[core] = to;
        self.account(vcpu, doing, from, to);
        let Doing::Task { task, need } = doing else { return };
        let name = self.system.tasks[task].name.clone();
        let holds = match need {
            Need::Global(resource) => self.holders[resource] == Some(task),
            Need::Local(resource) => self.locals.contains(&(resource, task)),
            Need::Nothing => true,
        };
        self.demand(holds, from, || format!("{name} runs without the resource it needs"));
        let due = self.is_due(task, need);
        self.demand(due && self.ready[task], from, || format!("{name} runs, but is not due"));
    }

    fn released(&mut self, task: usize, _now: u64) {
        self.ready[task] = true;
    }

    fn completed(&mut self, task: usize, _arrival: u64, _now: u64) {
        self.ready[task] = false;
    }

    fn requested(&mut self, task: usize, resource: usize, granted: bool, now: u64) {
        let free = self.holders[resource].is_none();
        let name = self.system.tasks[task].name.clone();
        self.demand(free == granted, now, || format!("{name}: granted {granted}, free {free}"));
        if granted {
            self.holders[resource] = Some(task);
        } else {
            self.waiting[resource].push(task);
            self.ready[task] = false;
        }
    }

    fn returned(&mut self, task: usize, resource: usize, next: Option<usize>, now: u64) {
        let name = self.system.tasks[task].name.clone();
        let held = self.holders[resource] == Some(task);
        self.demand(held, now, || format!("{name} returns what it does not hold"));
        let first = self.waiting[resource].iter().copied().min_by_key(|&task| self.key(task));
        self.demand(first == next, now, || format!("{next:?} is next, not {first:?}"));
        self.waiting[resource].retain(|&task| Some(task) != next);
        self.holders[resource] = next;
        if let Some(next) = next {
            self.ready[next] = true;
        }
    }

    fn took_local(&mut self, task: usize, resource: usize, now: u64) {
        let Self { system, locals, .. } = self;
        let (vcpu, priority) = (system.tasks[task].vcpu, system.tasks[task].priority);
        let ceiling = |resource| {
            let users = system.tasks.iter().filter(|user| {
                user.segments.iter().any(|segment| segment.need == Need::Local(resource))
            });
            users.map(|user| user.priority).max().unwrap_or(0)
        };
        let allowed = locals
            .iter()
            .filter(|&&(_, by)| by != task && system.tasks[by].vcpu == vcpu)
            .all(|&(other, _)| other != resource && priority > ceiling(other));
        let name = system.tasks[task].name.clone();
        self.demand(allowed, now, || format!("{name} takes a local resource below a ceiling"));
        self.locals.push((resource, task));
    }

    fn returned_local(&mut self, task: usize, resource: usize, _now: u64) {
        self.locals.retain(|&local| local != (resource, task));
        let vcpu = self.system.tasks[task].vcpu;
        // A task that was blocked asks again.
        let Self { blocked, ready, system, .. } = self;
        blocked.retain(|&mate| {
            ready[mate] |= system.tasks[mate].vcpu == vcpu;
            system.tasks[mate].vcpu != vcpu
        });
    }

    fn blocked_local(&mut self, task: usize, by: usize, now: u64) {
        let holds = self.locals.iter().any(|&(_, holder)| holder == by);
        let name = self.system.tasks[task].name.clone();
        self.demand(holds, now, || format!("{name} is blocked by a task without resource"));
        self.ready[task] = false;
        self.blocked.push(task);
    }
}
