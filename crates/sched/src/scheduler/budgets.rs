//! Servers: accounts are charged and replenished.
//!
//! Accounts are kept lazily. A replenishment changes the decision only for a vCPU that
//! waits for it, so only for those a timer is needed; all others are replenished when the
//! scheduler next decides, with the same result as if it had been done in time.

use super::{ABSENT, POSITION, Scheduler, VcpuId};
use crate::Instant;
use crate::MAX_VCPUS;
use crate::mailbox::Members;
use crate::server::Account;
use notes::{Bounded, each};

impl Scheduler {
    /// Gives a vCPU of this core a server, in place of one that it may have. [`Account::open`]
    /// has refused inconsistent servers.
    pub fn set_server(&mut self, id: VcpuId, account: &Account, now: Instant) {
        notes::needs::<{ each::EXTRA }>();
        let Some(at) = self.find(id) else { return };
        self.charge_running_with_extras(now);
        self.make_special(at);
        self.extras.lasting |= 1 << at;
        self.extras.served |= 1 << at;
        let has_work = self.has_work_special(at);
        self.extras.accounts[usize::from(id.0)] = Some(account.moved());
        if !has_work && !self.stops_working(at) {
            self.extras.pending |= 1 << at;
        }
        self.look_at_budget(at, now);
    }

    /// Takes the account of a vCPU that is [away](Self::set_away), for the core to which the vCPU
    /// goes: that one [comes back](Self::come_back) there, and then has its
    /// [server](Self::set_server) again. The account is charged up to `now`, and what waits here
    /// for the vCPU's return is its turn alone. Writes none if the vCPU has no account here, or
    /// holds a global resource: a section that it may be in would end elsewhere. In place, for
    /// each copy takes as long as all else.
    #[inline(never)]
    pub fn take_account(&mut self, id: VcpuId, now: Instant, into: &mut Option<Account>) {
        *into = None;
        let Some(at) = self.find(id).filter(|_| !self.in_gcs(id)) else { return };
        if self.account(id).is_none() {
            return;
        }
        if usize::from(self.running) == at {
            self.charge_running_with_extras(now);
        }
        let account = &mut self.extras.accounts[usize::from(id.0)];
        *into = account.as_ref().map(Account::moved);
        *account = None;
        let (bit, extras) = (1 << at, &mut self.extras);
        extras.lasting &= !bit;
        extras.served &= !bit;
        extras.spent &= !bit;
        extras.idling &= !bit;
        if extras.held_back & bit == 0 {
            // The core needs no code for extras because of a vCPU that is not here.
            self.away |= extras.away & bit;
            extras.away &= !bit;
            extras.pending &= !bit;
            self.special &= !bit;
        }
    }

    /// Returns true if some vCPU of this core has a server.
    #[must_use]
    #[inline(always)]
    pub const fn has_servers(&self) -> bool {
        self.extras.served != 0
    }

    /// Returns a vCPU's account as of the latest look at it; none when it has none.
    #[must_use]
    pub fn account(&self, id: VcpuId) -> Option<&Account> {
        self.extras.accounts.get(usize::from(id.0))?.as_ref()
    }

    /// Returns true if a vCPU is here, would run, and waits for its budget.
    #[must_use]
    pub fn is_throttled(&self, id: VcpuId) -> bool {
        self.find(id).is_some_and(|at| (self.extras.pending & self.extras.spent) >> at & 1 == 1)
    }

    /// Returns the vCPUs that have work and wait for their budgets.
    pub fn throttled(&self) -> impl Iterator<Item = VcpuId> + '_ {
        let waiting = self.extras.pending & self.extras.spent & !self.extras.idling;
        Members::of(waiting)
            .one_for::<{ each::VCPU }, MAX_VCPUS>()
            .map(|at| self.entries[at & POSITION].id)
    }

    /// Takes the time since the last charge from the running vCPU's account.
    pub(super) fn charge_account(&mut self, now: Instant) {
        if self.running == ABSENT {
            return;
        }
        let at = usize::from(self.running) & POSITION;
        let id = self.entries[at].number();
        match &mut self.extras.accounts[id] {
            Some(account) if now > self.charged => {
                account.charge(self.charged, now);
                self.look_at_budget(at, now);
            }
            Some(_) => {}
            None if self.extras.boosts.has_raised(at) => self.charge_boost(at, now),
            None => {}
        }
    }

    /// Begins new periods for vCPUs that wait for that.
    pub(super) fn replenish(&mut self, now: Instant) {
        for at in Members::of(self.extras.spent & self.extras.pending)
            .one_for::<{ each::VCPU }, MAX_VCPUS>()
        {
            if self.next_period(at).is_some_and(|next| next <= now) {
                self.look_at_budget(at, now);
            }
        }
    }

    /// Returns the vCPU (a bit, by position) whose turn it is among the equals of the one that runs, if
    /// it waits for a budget that it has by now, and for nothing else. Its turn does not pass when
    /// the quantum ends, though no account says yet that it has work.
    pub(super) fn renewed_turn(&self, now: Instant) -> u64 {
        if self.running == ABSENT {
            return 0;
        }
        let peers = self.entries[usize::from(self.running) & POSITION].peers;
        let first = peers.trailing_zeros() as usize & POSITION;
        let turn = usize::from(self.entries[first].turn) & POSITION;
        let extras = &self.extras;
        let waits = extras.spent & extras.pending & !extras.held_back & !extras.away & 1 << turn;
        let renewed = waits != 0 && self.next_period(turn).is_some_and(|next| next <= now);
        if renewed { waits } else { 0 }
    }

    /// Begins a new period of the vCPU that runs, if that is all that has to be done: no other
    /// one waits for a budget or for its turn, and its quantum lasts. Returns the vCPU, and until
    /// when the latest decision stands then.
    #[inline(always)]
    pub fn renew(&mut self, now: Instant) -> Option<(VcpuId, Instant)> {
        let lane = &self.extras.lane;
        let at = usize::from(self.running) & POSITION;
        let ran = now.since(self.charged);
        let alone = self.ready & self.reach == 1 << at && self.extras.pending == 0;
        if lane.is_shut() || lane.is_used() || !alone || ran >= self.entries[at].left {
            return None;
        }
        let vcpu = self.entries[at].id;
        let account = self.extras.accounts[usize::from(vcpu.0) & POSITION].as_mut()?;
        let left = account.renew(now)?;
        self.charged = now;
        self.entries[at].left.0 -= ran.0;
        // The budget ends before the period does.
        let until = now.after(left);
        self.extras.lane.renew(until, account.gcs_left());
        Some((vcpu, until))
    }

    /// Brings a vCPU's account up to date, and records whether it may run.
    pub(super) fn look_at_budget(&mut self, at: usize, now: Instant) {
        notes::needs::<{ each::EXTRA }>();
        let (bit, id) = (1 << at, self.entries[at].number());
        let was_spent = self.extras.spent & bit != 0;
        let mut raised = self.extras.sections[id] > 0;
        self.extras.spent &= !bit;
        if let Some(account) = &mut self.extras.accounts[id] {
            account.replenish(now);
            raised = account.is_raised();
            if !account.may_run() {
                if !was_spent {
                    account.stop();
                }
                self.extras.spent |= bit;
            }
        }
        self.extras.raised = self.extras.raised & !bit | u64::from(raised) << at;
        self.place(at);
    }

    /// Returns the first of `until`, the end of the running vCPU's budget, and the
    /// replenishments that would change the decision.
    pub(super) fn first_of_budgets(
        &mut self,
        until: Option<Instant>,
        now: Instant,
    ) -> Option<Instant> {
        let mut first = until.unwrap_or(Instant::NEVER);
        if self.running != ABSENT {
            let id = usize::from(self.entries[usize::from(self.running) & POSITION].id.0);
            if let Some(account) = &mut self.extras.accounts[id] {
                account.replenish(now);
                first = first.min(now.after(account.allowance()));
            }
        }
        let wait = self.extras.pending & self.extras.spent & self.reach;
        for at in Members::of(wait & !self.extras.held_back & !self.extras.away)
            .one_for::<{ each::VCPU }, MAX_VCPUS>()
        {
            first = first.min(self.next_period(at).unwrap_or(Instant::NEVER));
        }
        (first != Instant::NEVER).then_some(first)
    }

    fn next_period(&self, at: usize) -> Option<Instant> {
        let account =
            &self.extras.accounts[usize::from(self.entries[at & POSITION].id.0) & POSITION];
        account.as_ref().map(Account::replenished_at)
    }
}
