//! What a core does only if some vCPU has an extra. All of this is out of line.
//!
//! A vCPU with an extra has a *reason* to run if it has work, or a periodic server: that
//! idles its budget away. It may run unless it is *blocked*: away, held back, or out of
//! budget. With a reason it is therefore either *ready* or *pending*.

use super::boosts::Boosts;
use super::sections::Lane;
use super::vocabulary::Compact;
use super::{ABSENT, POSITION, Scheduler, Woken};
use crate::server::Account;
use crate::{Instant, MAX_VCPUS};
use notes::each;

/// The state of vCPUs that have an extra. Sets are of positions.
pub(super) struct Extras {
    /// Blocked, with a reason to run. They keep their turns.
    pub(super) pending: u64,
    /// With a reason to run, but no work: a periodic server without work.
    pub(super) idling: u64,
    /// Blocked: another core has them.
    pub(super) away: u64,
    /// Blocked until they are released.
    pub(super) held_back: u64,
    /// Blocked until their budgets are replenished, or a critical section lets them overrun.
    pub(super) spent: u64,
    /// At their ceilings, above all others.
    pub(super) raised: u64,
    /// With an extra that lasts: a server, or boosts.
    pub(super) lasting: u64,
    /// Those of them with a server.
    pub(super) served: u64,
    /// Sections of the vCPU that runs.
    pub(super) lane: Lane,
    /// By vCPU: its server, if it has one.
    pub(super) accounts: [Option<Account>; MAX_VCPUS],
    /// By vCPU: how many global resources its tasks hold.
    pub(super) sections: [u8; MAX_VCPUS],
    pub(super) boosts: Boosts,
}

impl Extras {
    pub(super) const fn new() -> Self {
        Self {
            pending: 0,
            idling: 0,
            away: 0,
            held_back: 0,
            spent: 0,
            raised: 0,
            lasting: 0,
            served: 0,
            lane: Lane::SHUT,
            accounts: [None; MAX_VCPUS],
            sections: [0; MAX_VCPUS],
            boosts: Boosts::new(),
        }
    }

    /// The sets that move with the entries.
    pub(super) fn sets(&mut self) -> [&mut u64; 11] {
        [
            &mut self.pending,
            &mut self.idling,
            &mut self.away,
            &mut self.held_back,
            &mut self.spent,
            &mut self.raised,
            &mut self.lasting,
            &mut self.served,
            &mut self.boosts.shadows,
            &mut self.boosts.boosted,
            &mut self.boosts.rising,
        ]
    }
}

impl Scheduler {
    /// Does what [`Self::decide`] does where no vCPU may be boosted: raised vCPUs first, within budgets.
    #[cold]
    #[inline(never)]
    pub fn decide_with_extras(&mut self, now: Instant) -> Compact {
        self.charge_with_extras(now);
        self.decide_charged(now)
    }

    /// Does the same when all have been charged until `now`.
    #[inline(always)]
    pub(super) fn decide_charged(&mut self, now: Instant) -> Compact {
        notes::needs::<{ each::EXTRA }>();
        // What idles its budget away does so at its own priority.
        let raised = self.ready & self.extras.raised & !self.extras.idling;
        let ready = if raised == 0 { self.ready } else { raised };
        let (run, until) = self.choose(ready, self.kept(), now);
        self.reach = self.plain_reach();
        let idles = run.is_some() && self.extras.idling >> self.running & 1 == 1;
        // Brings the account of the vCPU that runs up to date.
        let until = self.first_of_budgets(until, now);
        if let Some(id) = run.filter(|_| !idles) {
            self.open_lane(usize::from(id.0) & POSITION, now);
        }
        Compact::new(run, idles, until)
    }

    /// Does what [`Self::charge`] does: to quantum and account.
    #[cold]
    #[inline(never)]
    pub(super) fn charge_with_extras(&mut self, now: Instant) {
        notes::needs::<{ each::EXTRA }>();
        self.settle();
        self.charge_settled(now);
    }

    /// Does the same when no section is only noted.
    fn charge_settled(&mut self, now: Instant) {
        self.replenish(now);
        self.charge_but(0, now);
    }

    /// Does what [`Self::charge_running`] does: to quantum and account.
    #[cold]
    #[inline(never)]
    pub(super) fn charge_running_with_extras(&mut self, now: Instant) {
        notes::needs::<{ each::EXTRA }>();
        self.settle();
        self.charge_running_settled(now);
    }

    /// Does the same when no section is only noted.
    #[inline(never)]
    pub(super) fn charge_running_settled(&mut self, now: Instant) {
        self.charge_but(self.renewed_turn(now), now);
    }

    /// Does the same; but the turn of a vCPU that is `renewed` does not pass.
    #[inline(always)]
    fn charge_but(&mut self, renewed: u64, now: Instant) {
        self.charge_account(now);
        let awake = (self.ready | self.extras.pending) & !self.extras.away;
        self.charge_quantum(awake, self.kept() & !renewed, now);
    }

    /// Returns the vCPUs that keep their turns though they may not run here now.
    fn kept(&self) -> u64 {
        self.away | self.extras.pending
    }

    /// Returns the positions that could change the latest decision if they became ready.
    pub(super) fn reach_of_running(&self) -> u64 {
        let reach = self.plain_reach();
        if self.has_boosts() { self.with_rises(reach).0 } else { reach }
    }

    /// Returns the same where no vCPU may be boosted.
    #[inline(always)]
    pub(super) fn plain_reach(&self) -> u64 {
        if self.running == ABSENT {
            return self.all();
        }
        let running = usize::from(self.running) & POSITION;
        let above = u64::MAX >> self.entries[running].peers.leading_zeros();
        let raised = self.extras.raised;
        if (raised & !self.extras.idling) >> running & 1 == 1 {
            above & raised
        } else {
            above | raised
        }
    }

    /// Adds a vCPU to those that have an extra.
    pub(super) fn make_special(&mut self, at: usize) {
        notes::needs::<{ each::EXTRA }>();
        let bit = 1 << at;
        if self.special & bit == 0 {
            self.special |= bit;
            self.extras.away |= self.away & bit;
            self.extras.pending |= self.away & bit;
            self.away &= !bit;
        }
    }

    /// Puts a vCPU with extras among the ready or the pending ones, after the reasons for
    /// either have changed; and among those without extras if it has none any more.
    pub(super) fn place(&mut self, at: usize) {
        let bit = 1 << at;
        let reason = (self.ready | self.extras.pending) & bit;
        let blocked = (self.extras.away | self.extras.held_back | self.extras.spent) & bit;
        self.ready &= !bit;
        self.extras.pending &= !bit;
        if blocked == 0 {
            self.ready |= reason;
        } else {
            self.extras.pending |= reason;
            if usize::from(self.yielded_to) == at {
                self.yielded_to = ABSENT;
            }
        }
        if blocked == 0 && self.extras.raised & bit == 0 && self.extras.lasting & bit == 0 {
            self.special &= !bit;
        }
    }

    pub(super) fn has_work_special(&self, at: usize) -> bool {
        notes::needs::<{ each::EXTRA }>();
        ((self.ready | self.extras.pending) & !self.extras.idling) >> at & 1 == 1
    }

    /// Records that a vCPU with extras has work. Returns what that has changed for the vCPU.
    #[cold]
    #[inline(never)]
    pub(super) fn wake_special(&mut self, at: usize) -> Woken {
        notes::needs::<{ each::EXTRA }>();
        let had_work = self.has_work_special(at);
        if !had_work {
            self.extras.idling &= !(1 << at);
            self.extras.pending |= 1 << at;
            self.place(at);
        }
        let rises = !self.extras.boosts.are_none() && self.begins_to_rise(at);
        match (had_work, rises) {
            (false, _) => Woken::Decide,
            (true, true) => Woken::Rises,
            (true, false) => Woken::Nothing,
        }
    }

    /// Records that a vCPU with extras has no work. A periodic server idles from now on,
    /// and keeps its turn.
    #[cold]
    #[inline(never)]
    pub(super) fn sleep_special(&mut self, at: usize) {
        notes::needs::<{ each::EXTRA }>();
        if self.stops_working(at) {
            self.give_up_turn(at);
        }
    }

    /// Records that a vCPU with extras has no work. Returns true if it has no reason to run any
    /// more.
    pub(super) fn stops_working(&mut self, at: usize) -> bool {
        let (bit, id) = (1 << at, self.entries[at].number());
        if self.extras.accounts[id].is_some_and(|account| account.idles()) {
            self.extras.idling |= bit;
            return false;
        }
        self.extras.idling &= !bit;
        self.ready &= !bit;
        self.extras.pending &= !bit;
        true
    }

    #[cold]
    #[inline(never)]
    pub(super) fn set_away_special(&mut self, at: usize) -> bool {
        notes::needs::<{ each::EXTRA }>();
        let had_work = self.has_work_special(at) && self.extras.away >> at & 1 == 0;
        self.extras.away |= (self.ready | self.extras.pending) & 1 << at;
        self.place(at);
        had_work
    }

    #[cold]
    #[inline(never)]
    pub(super) fn come_back_special(&mut self, at: usize, ready: bool) {
        notes::needs::<{ each::EXTRA }>();
        let was_away = self.extras.away >> at & 1 == 1;
        self.extras.away &= !(1 << at);
        if ready {
            self.wake_special(at);
        } else if was_away {
            self.stops_working(at);
        }
        self.place(at);
    }
}
