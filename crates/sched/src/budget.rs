//! A core whose vCPUs have budget servers and priority ceilings.
//!
//! The [`Scheduler`] goes on deciding; this stands before it as a gate. A vCPU
//! is ready there only while it has work *and* its server lets it run. So a
//! vCPU without a server, and a core that has none, run the very code they ran
//! before.
//!
//! Accounts are kept lazily. A replenishment changes the decision only for a
//! vCPU that waits for it, so only those have their instants among the timers;
//! all others are replenished when somebody looks at them, exactly as if it had
//! been done in time.

use crate::mailbox::Members;
use crate::scheduler::{Params, Refusal, Scheduler, State, VcpuId};
use crate::server::Account;
use crate::{Instant, MAX_VCPUS};

/// What the core should do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allotment {
    /// Whose time it is; none: wait for an interrupt.
    pub run: Option<VcpuId>,
    /// That vCPU has nothing to do and idles its budget away: wait for an
    /// interrupt in its name.
    pub idles: bool,
    /// Decide again at this instant at the latest; none: when an event comes.
    pub until: Option<Instant>,
}

/// A vCPU on its way from one core to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Its parameters.
    pub params: Params,
    /// Its server, with what is left; none: it has none.
    pub account: Option<Account>,
    /// Whether it has work.
    pub ready: bool,
}

/// The vCPUs of one core, their budgets, and which of them runs.
pub struct BudgetScheduler {
    scheduler: Scheduler,
    /// By vCPU; none: without a server.
    accounts: [Option<Account>; MAX_VCPUS],
    /// How many global resources each vCPU's tasks hold.
    held: [u8; MAX_VCPUS],
    /// vCPUs with something to do.
    work: u64,
    /// vCPUs that would run but for their budget.
    throttled: u64,
    /// Who has the core, as of the latest decision.
    running: Option<VcpuId>,
    /// Up to when its account has been charged.
    charged: Instant,
}

impl BudgetScheduler {
    /// A core without vCPUs.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            scheduler: Scheduler::new(),
            accounts: [None; MAX_VCPUS],
            held: [0; MAX_VCPUS],
            work: 0,
            throttled: 0,
            running: None,
            charged: Instant(0),
        }
    }

    /// A vCPU is this core's from now on.
    ///
    /// # Errors
    /// As [`Scheduler::arrive`]. An inconsistent server has been refused by
    /// [`Account::open`].
    pub fn arrive(
        &mut self,
        id: VcpuId,
        params: Params,
        account: Option<Account>,
        ready: bool,
        now: Instant,
    ) -> Result<(), Refusal> {
        self.scheduler.arrive(id, params, false)?;
        self.accounts[usize::from(id.0)] = account;
        self.held[usize::from(id.0)] = 0;
        if ready {
            self.work |= 1 << id.0;
        }
        self.gate(id, now);
        Ok(())
    }

    /// A vCPU leaves this core, with what is left of its budget. None when it
    /// is not here or holds a global resource: then it would leave its ceiling
    /// behind, and whoever waits for the resource would pay.
    pub fn depart(&mut self, id: VcpuId, now: Instant) -> Option<Departure> {
        if !self.scheduler.has(id) || self.held[usize::from(id.0)] > 0 {
            return None;
        }
        self.charge(now);
        let (params, _) = self.scheduler.depart(id)?;
        let ready = self.work >> id.0 & 1 == 1;
        self.work &= !(1 << id.0);
        self.throttled &= !(1 << id.0);
        if self.running == Some(id) {
            self.running = None;
        }
        Some(Departure { params, account: self.accounts[usize::from(id.0)].take(), ready })
    }

    /// A vCPU has something to do. Nothing happens when it is not here.
    pub fn wake(&mut self, id: VcpuId, now: Instant) {
        if self.scheduler.has(id) && self.work >> id.0 & 1 == 0 {
            self.charge(now);
            self.work |= 1 << id.0;
            self.gate(id, now);
        }
    }

    /// A vCPU has nothing to do. Nothing happens when it is not here.
    pub fn sleep(&mut self, id: VcpuId, now: Instant) {
        if self.scheduler.has(id) && self.work >> id.0 & 1 == 1 {
            self.charge(now);
            self.work &= !(1 << id.0);
            self.gate(id, now);
        }
    }

    /// A task of this vCPU holds one more global resource: the vCPU is at its
    /// ceiling, and may overrun if its server allows that
    /// (`vmpcp_start_gcs`, RTSS 2014, Section III-C).
    pub fn enter_gcs(&mut self, id: VcpuId, now: Instant) {
        if !self.scheduler.has(id) {
            return;
        }
        self.charge(now);
        let held = &mut self.held[usize::from(id.0)];
        *held = held.saturating_add(1);
        self.scheduler.raise(id);
        self.gate(id, now);
    }

    /// A task of this vCPU has given a global resource back
    /// (`vmpcp_finish_gcs`, RTSS 2014, Section III-C).
    pub fn leave_gcs(&mut self, id: VcpuId, now: Instant) {
        if !self.scheduler.has(id) {
            return;
        }
        self.charge(now);
        let held = &mut self.held[usize::from(id.0)];
        *held = held.saturating_sub(1);
        if *held == 0 {
            self.scheduler.lower(id);
        }
        self.gate(id, now);
    }

    /// Charges the vCPU that runs for the time it took, replenishes who waits
    /// for that, and says who runs now.
    pub fn decide(&mut self, now: Instant) -> Allotment {
        self.charge(now);
        for id in Members(self.throttled) {
            if self.accounts[id].is_some_and(|account| account.replenished_at() <= now) {
                self.gate(VcpuId(id as u8), now);
            }
        }
        let decision = self.scheduler.decide_with_ceilings(now);
        self.running = decision.run;
        let mut until = decision.until;
        let mut consider = |at: Instant| until = Some(until.map_or(at, |first| first.min(at)));
        if let Some(id) = decision.run {
            let in_gcs = self.in_gcs(id);
            if let Some(account) = &mut self.accounts[usize::from(id.0)] {
                account.replenish(now);
                consider(now.after(account.allowance(in_gcs)));
            }
        }
        for id in Members(self.throttled) {
            if let Some(account) = &self.accounts[id]
                && self.matters(VcpuId(id as u8))
            {
                consider(account.replenished_at());
            }
        }
        let idles = decision.run.is_some_and(|id| self.work >> id.0 & 1 == 0);
        Allotment { run: decision.run, idles, until }
    }

    /// Where a vCPU stands, or none when it is not here. One that waits for its
    /// budget is suspended; one that idles its budget away sleeps.
    #[must_use]
    pub fn state(&self, id: VcpuId) -> Option<State> {
        let state = self.scheduler.state(id)?;
        Some(match state {
            _ if self.work >> id.0 & 1 == 0 => State::Sleeping,
            State::Running => State::Running,
            State::Suspended | State::Sleeping => State::Suspended,
        })
    }

    /// Whether letting this vCPU run could change the latest decision.
    #[must_use]
    pub fn matters(&self, id: VcpuId) -> bool {
        let running = self.running.and_then(|running| self.scheduler.ceiling(running));
        self.scheduler.ceiling(id).is_some_and(|ceiling| Some(ceiling) >= running)
    }

    /// A vCPU's account as of the latest look at it; none when it has none.
    #[must_use]
    pub fn account(&self, id: VcpuId) -> Option<&Account> {
        self.accounts.get(usize::from(id.0))?.as_ref()
    }

    /// Whether a task of this vCPU holds a global resource.
    #[must_use]
    pub fn in_gcs(&self, id: VcpuId) -> bool {
        self.held.get(usize::from(id.0)).is_some_and(|&held| held > 0)
    }

    /// Whether a vCPU would run but for its budget.
    #[must_use]
    pub fn is_throttled(&self, id: VcpuId) -> bool {
        usize::from(id.0) < MAX_VCPUS && self.throttled >> id.0 & 1 == 1
    }

    /// The vCPUs of this core, highest priority first.
    pub fn vcpus(&self) -> impl Iterator<Item = VcpuId> + '_ {
        self.scheduler.vcpus()
    }

    /// Takes the time since the last charge from the running vCPU's account.
    fn charge(&mut self, now: Instant) {
        let from = self.charged;
        self.charged = now.max(from);
        let Some(id) = self.running.filter(|_| now > from) else { return };
        let in_gcs = self.in_gcs(id);
        let Some(account) = &mut self.accounts[usize::from(id.0)] else { return };
        account.charge(from, now);
        if !account.may_run(in_gcs) {
            self.gate(id, now);
        }
    }

    /// Tells the scheduler whether a vCPU may run and has reason to.
    fn gate(&mut self, id: VcpuId, now: Instant) {
        let bit = 1u64 << id.0;
        let in_gcs = self.in_gcs(id);
        let (mut wants, mut may) = (self.work & bit != 0, true);
        if let Some(account) = &mut self.accounts[usize::from(id.0)] {
            account.replenish(now);
            wants |= account.idles();
            may = account.may_run(in_gcs);
            if !may {
                account.stop();
            }
        }
        if wants && !may {
            self.throttled |= bit;
        } else {
            self.throttled &= !bit;
        }
        match (wants && may, self.scheduler.state(id)) {
            (true, _) => self.scheduler.wake(id),
            (false, Some(State::Running | State::Suspended)) => self.scheduler.sleep(id),
            (false, _) => {}
        }
    }
}

impl Default for BudgetScheduler {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
