//! Events in the order of time.
//!
//! The next event is the earliest of: an arrival, the end of the segment that a
//! core executes, and the instant at which a core's scheduler wants to be asked
//! again. At one instant, segments end first on all cores, so that a resource
//! is given back before another core asks for it; then tasks are released; then
//! cores read their mailboxes and decide, until no core has anything to say.
//!
//! | module | story |
//! | --- | --- |
//! | `build` | a world in which nothing has happened yet |
//! | `instant` | what happens at one instant |
//! | `el2` | what EL2 takes |

mod build;
mod el2;
mod instant;

use crate::guest::Guest;
use crate::mutex::Mutex;
use crate::observer::{Doing, Observer};
use crate::record::Record;
use crate::system::{Costs, Displacement, Execution, MAX_TIME, Protocol, Refusal, System};
use crate::task::{Active, Chance};
pub(crate) use build::low_bits;
use build::{guest, resources, tasks};
use chacha20::rand_core::SeedableRng;
use sched::{Duration, Mailbox, Scheduler};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// No vCPUs of one core are equal, so none ever takes turns.
const QUANTUM: Duration = Duration(u64::MAX);

const NEVER: u64 = u64::MAX;

/// A core: its scheduler and what it is at.
struct Core {
    scheduler: Scheduler,
    /// Since when it is at it, ns.
    since: u64,
    /// The vCPU that has it, by index.
    vcpu: Option<usize>,
    /// The task that executes, by index; none: the vCPU idles.
    task: Option<usize>,
    /// When that changes if nothing happens, ns.
    next: u64,
    /// When the scheduler wants to be asked again, ns.
    until: u64,
    /// What EL2 is still to have, ns.
    owed: u64,
    /// When EL2 has another duty next, ns.
    duty: u64,
}

/// A vCPU: its guest, and what other cores posted for it.
struct Vcpu {
    core: usize,
    /// The place among all vCPUs.
    rank: u8,
    guest: Guest,
    /// Ranks of tasks to which a resource was granted.
    posted: u64,
}

/// A simulated machine with its guests.
pub struct World<O = ()> {
    protocol: Protocol,
    execution: Execution,
    costs: Costs,
    displacements: Vec<Displacement>,
    /// Those that have begun, as a set.
    displaced: u64,
    chance: Chance,
    now: u64,
    cores: Vec<Core>,
    mailboxes: Vec<Mailbox>,
    vcpus: Vec<Vcpu>,
    tasks: Vec<Active>,
    mutexes: Vec<Mutex>,
    /// By rank.
    vcpu_of_rank: Vec<usize>,
    releases: BinaryHeap<Reverse<(u64, usize)>>,
    /// Cores that have to decide, as a set.
    pending: u64,
    events: u64,
    decisions: u64,
    observer: O,
}

impl World {
    /// A world at time 0 without an observer.
    ///
    /// # Errors
    /// When the system makes no sense.
    pub fn new(system: &System) -> Result<Self, Refusal> {
        Self::watched(system, ())
    }
}

impl<O: Observer> World<O> {
    /// A world at time 0 with an observer.
    ///
    /// # Errors
    /// When the system makes no sense.
    pub fn watched(system: &System, observer: O) -> Result<Self, Refusal> {
        system.check()?;
        let order = system.vcpus_by_priority();
        let mut cores: Vec<_> = (0..system.cores()).map(|_| Core::new()).collect();
        for (rank, &vcpu) in order.iter().enumerate() {
            cores[system.vcpus[vcpu].core].receive(system, vcpu, order.len() - rank)?;
        }
        let (globals, locals) = resources(system);
        let vcpus: Vec<_> = (0..system.vcpus.len())
            .map(|vcpu| Vcpu {
                core: system.vcpus[vcpu].core,
                rank: order.iter().position(|&other| other == vcpu).unwrap_or(0) as u8,
                guest: guest(system, vcpu, locals),
                posted: 0,
            })
            .collect();
        let mut world = Self {
            protocol: system.protocol,
            execution: system.execution,
            costs: system.costs,
            displacements: system.displacements.clone(),
            displaced: 0,
            chance: Chance::seed_from_u64(system.seed),
            now: 0,
            mailboxes: cores.iter().map(|_| Mailbox::new()).collect(),
            pending: low_bits(cores.len()),
            cores,
            tasks: tasks(system, &vcpus),
            vcpus,
            mutexes: vec![Mutex::new(system.protocol.order()); globals],
            vcpu_of_rank: order,
            releases: BinaryHeap::new(),
            events: 0,
            decisions: 0,
            observer,
        };
        for task in 0..world.tasks.len() {
            world.expect_release(task);
        }
        world.expect_duties();
        world.settle();
        Ok(world)
    }

    /// Lets time pass until `end`, ns; what happens at that instant included.
    /// Nothing happens after [`MAX_TIME`].
    pub fn run_until(&mut self, end: u64) {
        while self.step(end) {}
        self.now = self.now.max(end.min(MAX_TIME));
        for core in 0..self.cores.len() {
            self.advance(core);
        }
    }

    /// Goes to the next instant at which something happens, and lets it happen.
    /// Answers no, and stays, if there is none until `end`, ns.
    pub fn step(&mut self, end: u64) -> bool {
        let cores = self.cores.iter().map(|core| core.next.min(core.duty)).min().unwrap_or(NEVER);
        let release = self.releases.peek().map_or(NEVER, |next| next.0.0);
        let next = cores.min(release);
        if next > end.min(MAX_TIME) {
            return false;
        }
        self.now = next;
        for core in 0..self.cores.len() {
            // All of them, so that observers hear what was before what is.
            self.advance(core);
        }
        for core in 0..self.cores.len() {
            if self.cores[core].next <= next {
                self.pending |= 1 << core;
                self.end_what_is_over(core);
            }
            self.charge_interrupts(core);
        }
        while let Some(&Reverse((at, task))) = self.releases.peek()
            && at == next
        {
            self.releases.pop();
            self.release(task);
        }
        self.settle();
        true
    }

    /// The time that it is, ns.
    #[must_use]
    pub const fn now(&self) -> u64 {
        self.now
    }

    /// What became of each task.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.tasks.iter().map(|task| &task.record)
    }

    /// How long the oldest job of each task that is not complete has been
    /// waiting for that, ns; none when all are complete.
    pub fn unfinished(&self) -> impl Iterator<Item = Option<u64>> {
        self.tasks.iter().map(|task| task.oldest().map(|arrival| self.now.saturating_sub(arrival)))
    }

    /// How much happened: releases, ends of segments, requests, grants, and
    /// decisions of schedulers.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// How often a core's scheduler decided.
    #[must_use]
    pub const fn decisions(&self) -> u64 {
        self.decisions
    }

    /// Returns the observer.
    #[must_use]
    pub const fn observer(&self) -> &O {
        &self.observer
    }

    /// Gives the observer back.
    #[must_use]
    pub fn into_observer(self) -> O {
        self.observer
    }

    fn expect_release(&mut self, task: usize) {
        let at = self.tasks[task].next_release(&mut self.chance);
        self.releases.push(Reverse((at, task)));
    }

    fn release(&mut self, task: usize) {
        self.events += 1;
        let core = self.vcpus[self.tasks[task].vcpu].core;
        self.charge(core, self.costs.release + self.costs.timer_advance);
        if self.tasks[task].release() {
            self.observer.released(task, self.now);
            self.make_ready(task);
        }
        self.expect_release(task);
    }

    /// Books what a core did since it was last looked at.
    fn advance(&mut self, core: usize) {
        let Core { since, vcpu, task, .. } = self.cores[core];
        self.cores[core].since = self.now;
        let taken = self.pay(core, self.now - since);
        let since = self.now - taken;
        let (Some(vcpu), true) = (vcpu, taken > 0) else { return };
        let Some(task) = task else {
            self.observer.ran(vcpu, Doing::Idling, since, self.now);
            return;
        };
        let need = self.tasks[task].need();
        self.observer.ran(vcpu, Doing::Task { task, need }, since, self.now);
        self.tasks[task].remaining -= taken;
    }
}
