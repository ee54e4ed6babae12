//! What happens at an instant: segments end, resources are given back, requested
//! and granted, and cores decide which vCPU runs.
//!
//! What a task does between two segments, to request a resource, it does itself:
//! it must have the core, and its vCPU budget. A resource is given back with the
//! last instant of the segment.

use super::{NEVER, Vcpu, World};
use crate::guest::Answer;
use crate::mutex::{Claimant, Misuse};
use crate::observer::Observer;
use crate::system::{Need, Protocol};
use crate::task::Active;
use sched::{Instant, Members, Message, VcpuId};

impl<O: Observer> World<O> {
    pub(super) fn make_ready(&mut self, task: usize) {
        let Active { vcpu, rank, .. } = self.tasks[task];
        self.vcpus[vcpu].guest.wake(rank);
        let core = self.vcpus[vcpu].core;
        self.cores[core].scheduler.wake(VcpuId(vcpu as u8));
        self.pending |= 1 << core;
    }

    pub(super) fn end_what_is_over(&mut self, core: usize) {
        if let Some(task) = self.cores[core].task
            && self.tasks[task].remaining == 0
        {
            self.cores[core].task = None;
            self.end_segment(core, task, self.tasks[task].need());
        }
    }

    fn end_segment(&mut self, core: usize, task: usize, need: Need) {
        self.events += 1;
        let Active { vcpu, rank, deadline, .. } = self.tasks[task];
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
        self.tasks[task].record.complete(self.now - arrival, deadline);
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
        self.vcpus[vcpu].guest.exit_gcs(rank);
        if self.protocol == Protocol::Vmpcp {
            self.cores[core].scheduler.exit_gcs(VcpuId(vcpu as u8), Instant(self.now));
        }
        let claimant = self.claimant(task);
        let next = held(self.mutexes[resource].unlock(claimant));
        self.charge(core, self.costs.gcs_call + next.map_or(0, |_| self.costs.grant));
        let next = next.map(|next| self.grant(core, next));
        self.observer.returned(task, resource, next, self.now);
    }

    /// Tells the task that a resource is its own, through the mailbox of its
    /// core if that is another. Answers which task it is.
    fn grant(&mut self, core: usize, next: Claimant) -> usize {
        let vcpu = self.vcpu_of_rank[usize::from(next.vcpu)];
        let of_claim = |&&task: &&usize| self.tasks[task].claim == next.task;
        let Some(&task) = self.vcpus[vcpu].guest.tasks.iter().find(of_claim) else {
            unreachable!("a mutex grants only what was asked for")
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
            scheduler.wake(id);
            if self.protocol == Protocol::Vmpcp {
                scheduler.enter_gcs(id, now);
            }
            self.pending |= 1 << *core;
        }
    }

    /// Cores look into their mailboxes and decide until all are content.
    pub(super) fn settle(&mut self) {
        while self.pending != 0 {
            let core = self.pending.trailing_zeros() as usize;
            self.pending &= self.pending - 1;
            for vcpu in self.mailboxes[core].take(Message::Vcpus) {
                self.charge(core, self.costs.doorbell + self.costs.grant);
                self.attend(vcpu);
            }
            self.dispatch(core);
            self.pending &= !(1 << core);
        }
    }

    /// Asks the scheduler of a core which vCPU runs, and the guest which task, until
    /// one does.
    fn dispatch(&mut self, core: usize) {
        loop {
            self.events += 1;
            self.decisions += 1;
            let decision = self.cores[core].scheduler.decide(Instant(self.now));
            let until = decision.until.map_or(NEVER, |until| until.0);
            let vcpu = decision.owner().map(|id| usize::from(id.0));
            let task = match vcpu {
                Some(vcpu) if decision.idles.is_none() => match self.task_of(core, vcpu) {
                    None => continue,
                    task => task,
                },
                _ => None,
            };
            self.charge_switch(core, vcpu);
            // One that idles its budget away is not loaded: nothing is decided about others.
            if decision.idles.is_none() {
                self.charge_displacements(core, vcpu);
            }
            let core = &mut self.cores[core];
            let begin = self.now + core.owed;
            let end = task.map_or(NEVER, |task| begin + self.tasks[task].remaining);
            (core.vcpu, core.task, core.until, core.next) = (vcpu, task, until, until.min(end));
            return;
        }
    }

    /// The task that a vCPU executes, in a segment that has begun; none when the
    /// scheduler has to be asked again.
    fn task_of(&mut self, core: usize, vcpu: usize) -> Option<usize> {
        let Some(rank) = self.vcpus[vcpu].guest.next() else {
            self.cores[core].scheduler.sleep(VcpuId(vcpu as u8));
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
        self.charge(core, self.costs.gcs_call);
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

/// The simulated guests use mutexes as they must, or the world is broken.
fn held<T>(answer: Result<T, Misuse>) -> T {
    match answer {
        Ok(answer) => answer,
        Err(misuse) => unreachable!("{misuse}"),
    }
}
