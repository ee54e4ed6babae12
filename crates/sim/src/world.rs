//! Events in the order of time.
//!
//! The next event is the earliest of: an arrival, the end of the segment that a
//! core executes, and the instant at which a core's scheduler wants to be asked
//! again. At one instant, segments end first on all cores, so that a resource
//! is given back before another core asks for it; then tasks are released; then
//! cores read their mailboxes and decide, until nobody has anything to say.
//!
//! What a task does between two segments, to request a resource, it does itself:
//! it must have the core, and its vCPU budget. A resource is given back with the
//! last instant of the segment.

use crate::guest::{Answer, Guest};
use crate::observer::{Doing, Observer};
use crate::record::Record;
use crate::system::{Execution, Need, Protocol, Refusal, System};
use crate::task::{Active, Chance};
use chacha20::rand_core::SeedableRng;
use sched::mutex::{Claimant, Misuse, Mutex};
use sched::server::Account;
use sched::{
    Allotment, BudgetScheduler, Duration, Instant, Mailbox, Members, Message, Params, Priority,
    VcpuId,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// No vCPUs of one core are equal, so nobody ever takes turns.
const QUANTUM: Duration = Duration(u64::MAX);

const NEVER: u64 = u64::MAX;

/// A core: its scheduler and what it is at.
struct Core {
    scheduler: BudgetScheduler,
    /// Since when it is at it, ns.
    since: u64,
    /// The vCPU that has it, by index.
    vcpu: Option<usize>,
    /// The task that executes, by index; none: the vCPU idles.
    task: Option<usize>,
    /// When that changes if nothing happens, ns.
    next: u64,
}

/// A vCPU: its guest, and what other cores posted for it.
struct Vcpu {
    core: usize,
    /// Its place among all vCPUs.
    rank: u8,
    guest: Guest,
    /// Ranks of tasks to which a resource was granted.
    posted: u64,
}

/// A simulated machine with its guests.
pub struct World<O = ()> {
    protocol: Protocol,
    execution: Execution,
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
    /// A world at time 0 that nobody watches.
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
        world.settle();
        Ok(world)
    }

    /// Lets time pass until `end`, ns; what happens at that instant included.
    pub fn run_until(&mut self, end: u64) {
        loop {
            let cores = self.cores.iter().map(|core| core.next).min().unwrap_or(NEVER);
            let release = self.releases.peek().map_or(NEVER, |next| next.0.0);
            let next = cores.min(release);
            if next > end {
                break;
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
            }
            while let Some(&Reverse((at, task))) = self.releases.peek()
                && at == next
            {
                self.releases.pop();
                self.release(task);
            }
            self.settle();
        }
        self.now = self.now.max(end);
        for core in 0..self.cores.len() {
            self.advance(core);
        }
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

    /// Who watches.
    #[must_use]
    pub const fn observer(&self) -> &O {
        &self.observer
    }

    /// Gives back who watched.
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
        if self.tasks[task].release() {
            self.observer.released(task, self.now);
            self.make_ready(task);
        }
        self.expect_release(task);
    }

    fn make_ready(&mut self, task: usize) {
        let Active { vcpu, rank, .. } = self.tasks[task];
        self.vcpus[vcpu].guest.wake(rank);
        let core = self.vcpus[vcpu].core;
        self.cores[core].scheduler.wake(VcpuId(vcpu as u8), Instant(self.now));
        self.pending |= 1 << core;
    }

    /// Books what a core did since it was last looked at.
    fn advance(&mut self, core: usize) {
        let Core { since, vcpu, task, .. } = self.cores[core];
        self.cores[core].since = self.now;
        let taken = self.now - since;
        let (Some(vcpu), true) = (vcpu, taken > 0) else { return };
        let Some(task) = task else {
            self.observer.ran(vcpu, Doing::Idling, since, self.now);
            return;
        };
        let need = self.tasks[task].need();
        self.observer.ran(vcpu, Doing::Task { task, need }, since, self.now);
        self.tasks[task].remaining -= taken;
    }

    fn end_what_is_over(&mut self, core: usize) {
        if let Some(task) = self.cores[core].task
            && self.tasks[task].remaining == 0
        {
            self.cores[core].task = None;
            self.end_segment(core, task, self.tasks[task].need());
        }
    }

    fn end_segment(&mut self, core: usize, task: usize, need: Need) {
        self.events += 1;
        let Active { vcpu, rank, period, .. } = self.tasks[task];
        let done = self.tasks[task].end_segment();
        match need {
            Need::Nothing => {}
            Need::Local(resource) => {
                self.vcpus[vcpu].guest.unlock(rank, resource);
                self.observer.returned_local(task, resource, self.now);
            }
            Need::Global(resource) => self.give_back(core, task, resource),
        }
        let Some(arrival) = done else { return };
        self.tasks[task].record.complete(self.now - arrival, period);
        self.observer.completed(task, arrival, self.now);
        if self.tasks[task].has_job() {
            self.observer.released(task, self.now);
        } else {
            self.vcpus[vcpu].guest.sleep(rank);
        }
    }

    fn claimant(&self, task: usize) -> Claimant {
        let Active { vcpu, claim, .. } = self.tasks[task];
        Claimant { vcpu: self.vcpus[vcpu].rank, task: claim }
    }

    fn give_back(&mut self, core: usize, task: usize, resource: usize) {
        let Active { vcpu, rank, .. } = self.tasks[task];
        self.vcpus[vcpu].guest.leave_gcs(rank);
        if self.protocol == Protocol::Vmpcp {
            self.cores[core].scheduler.leave_gcs(VcpuId(vcpu as u8), Instant(self.now));
        }
        let claimant = self.claimant(task);
        let next = held(self.mutexes[resource].unlock(claimant));
        let next = next.map(|next| self.grant(core, next));
        self.observer.returned(task, resource, next, self.now);
    }

    /// Tells the task that a resource is its own, through the mailbox of its
    /// core if that is another. Answers which task it is.
    fn grant(&mut self, core: usize, next: Claimant) -> usize {
        let vcpu = self.vcpu_of_rank[usize::from(next.vcpu)];
        let of_claim = |&&task: &&usize| self.tasks[task].claim == next.task;
        let Some(&task) = self.vcpus[vcpu].guest.tasks.iter().find(of_claim) else {
            unreachable!("a mutex grants only to who asked")
        };
        self.vcpus[vcpu].posted |= 1 << self.tasks[task].rank;
        let target = self.vcpus[vcpu].core;
        if target == core {
            self.attend(vcpu);
        } else if self.mailboxes[target].send(Message::Vcpus, vcpu) {
            self.pending |= 1 << target;
        }
        task
    }

    /// A vCPU takes what was posted for it.
    fn attend(&mut self, vcpu: usize) {
        let (id, now) = (VcpuId(vcpu as u8), Instant(self.now));
        for rank in Members(std::mem::take(&mut self.vcpus[vcpu].posted)) {
            let Vcpu { core, guest, .. } = &mut self.vcpus[vcpu];
            let task = guest.tasks[rank];
            self.events += 1;
            self.tasks[task].begin(self.execution, &mut self.chance);
            guest.enter_gcs(rank as u8);
            guest.wake(rank as u8);
            let scheduler = &mut self.cores[*core].scheduler;
            scheduler.wake(id, now);
            if self.protocol == Protocol::Vmpcp {
                scheduler.enter_gcs(id, now);
            }
            self.pending |= 1 << *core;
        }
    }

    /// Cores look into their mailboxes and decide until all are content.
    fn settle(&mut self) {
        while self.pending != 0 {
            let core = self.pending.trailing_zeros() as usize;
            self.pending &= self.pending - 1;
            for vcpu in self.mailboxes[core].take(Message::Vcpus) {
                self.attend(vcpu);
            }
            self.dispatch(core);
            self.pending &= !(1 << core);
        }
    }

    /// Asks the scheduler of a core who runs, and the guest which task, until
    /// one does.
    fn dispatch(&mut self, core: usize) {
        loop {
            self.events += 1;
            self.decisions += 1;
            let Allotment { run, idles, until } =
                self.cores[core].scheduler.decide(Instant(self.now));
            let until = until.map_or(NEVER, |until| until.0);
            let vcpu = run.map(|id| usize::from(id.0));
            let task = match vcpu {
                Some(vcpu) if !idles => match self.task_of(core, vcpu) {
                    None => continue,
                    task => task,
                },
                _ => None,
            };
            let end = task.map_or(NEVER, |task| self.now + self.tasks[task].remaining);
            let core = &mut self.cores[core];
            (core.vcpu, core.task, core.next) = (vcpu, task, until.min(end));
            return;
        }
    }

    /// The task that a vCPU executes, in a segment that has begun; none when the
    /// scheduler has to be asked again.
    fn task_of(&mut self, core: usize, vcpu: usize) -> Option<usize> {
        let Some(rank) = self.vcpus[vcpu].guest.next() else {
            self.cores[core].scheduler.sleep(VcpuId(vcpu as u8), Instant(self.now));
            return None;
        };
        let task = self.vcpus[vcpu].guest.tasks[usize::from(rank)];
        if self.tasks[task].begun {
            return Some(task);
        }
        match self.tasks[task].need() {
            Need::Nothing => {}
            Need::Local(resource) => self.take_local(vcpu, task, resource)?,
            Need::Global(resource) => {
                self.request(core, task, resource);
                return None;
            }
        }
        self.tasks[task].begin(self.execution, &mut self.chance);
        Some(task)
    }

    fn take_local(&mut self, vcpu: usize, task: usize, resource: usize) -> Option<()> {
        self.events += 1;
        let guest = &mut self.vcpus[vcpu].guest;
        match guest.lock(self.tasks[task].rank, resource) {
            Answer::Taken => {
                self.observer.took_local(task, resource, self.now);
                Some(())
            }
            Answer::BlockedBy(by) => {
                let by = guest.tasks[usize::from(by)];
                self.observer.blocked_local(task, by, self.now);
                None
            }
        }
    }

    fn request(&mut self, core: usize, task: usize, resource: usize) {
        self.events += 1;
        let Active { vcpu, rank, .. } = self.tasks[task];
        let claimant = self.claimant(task);
        let granted = held(self.mutexes[resource].lock(claimant));
        self.observer.requested(task, resource, granted, self.now);
        if granted {
            self.vcpus[vcpu].posted |= 1 << rank;
            self.attend(vcpu);
        } else {
            self.vcpus[vcpu].guest.sleep(rank);
        }
        debug_assert_eq!(self.vcpus[vcpu].core, core);
    }
}

impl Core {
    fn new() -> Self {
        let scheduler = BudgetScheduler::new();
        Self { scheduler, since: 0, vcpu: None, task: None, next: 0 }
    }

    fn receive(&mut self, system: &System, vcpu: usize, priority: usize) -> Result<(), Refusal> {
        let spec = &system.vcpus[vcpu];
        let refused =
            |refusal: sched::Refusal| Refusal { of: spec.name.clone(), why: refusal.to_string() };
        // MPCP knows no overrun.
        let overruns = system.protocol == Protocol::Vmpcp;
        let server = spec.server.map(|server| sched::server::Server {
            overrun: if overruns { server.overrun } else { Duration(0) },
            ..server
        });
        let open = |server| Account::open(server, Instant(spec.offset));
        let account = server.map(open).transpose().map_err(refused)?;
        let params = Params { priority: Priority(priority as u16), quantum: QUANTUM };
        let arrived = self.scheduler.arrive(VcpuId(vcpu as u8), params, account, false, Instant(0));
        arrived.map_err(refused)
    }
}

/// How many global and local resources there are.
fn resources(system: &System) -> (usize, usize) {
    let needs = || system.tasks.iter().flat_map(|task| &task.segments).map(|s| s.need);
    let global = |need| if let Need::Global(resource) = need { Some(resource + 1) } else { None };
    let local = |need| if let Need::Local(resource) = need { Some(resource + 1) } else { None };
    (needs().filter_map(global).max().unwrap_or(0), needs().filter_map(local).max().unwrap_or(0))
}

fn guest(system: &System, vcpu: usize, locals: usize) -> Guest {
    let mut mine: Vec<_> =
        (0..system.tasks.len()).filter(|&task| system.tasks[task].vcpu == vcpu).collect();
    mine.sort_by_key(|&task| Reverse(system.tasks[task].priority));
    let uses = |task: usize, resource| {
        system.tasks[task].segments.iter().any(|s| s.need == Need::Local(resource))
    };
    Guest::new(mine, locals, uses)
}

fn tasks(system: &System, vcpus: &[Vcpu]) -> Vec<Active> {
    let priorities = system.task_priorities();
    let place = |list: &[u64], wanted| list.iter().position(|&p| p == wanted).unwrap_or(0) as u8;
    let active = |(index, task): (usize, &crate::system::Task)| {
        let mates = &vcpus[task.vcpu].guest.tasks;
        let rank = mates.iter().position(|&mate| mate == index).unwrap_or(0) as u8;
        let claim = match system.protocol {
            Protocol::Vmpcp => rank,
            Protocol::Mpcp => place(&priorities, task.priority),
        };
        Active::new(task, rank, claim)
    };
    system.tasks.iter().enumerate().map(active).collect()
}

/// The simulated guests use mutexes as they must, or the world is broken.
fn held<T>(answer: Result<T, Misuse>) -> T {
    match answer {
        Ok(answer) => answer,
        Err(misuse) => unreachable!("{misuse}"),
    }
}

fn low_bits(count: usize) -> u64 {
    if count == 64 { u64::MAX } else { (1 << count) - 1 }
}
