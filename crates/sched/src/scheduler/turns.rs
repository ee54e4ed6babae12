//! Equals take turns.
//!
//! Which of a group of equals has the turn is kept in the first entry of the group. A
//! quantum is charged when the scheduler is asked, not tick by tick.

use super::{ABSENT, POSITION, Scheduler, VcpuId, after, at_or_after};
use crate::{Instant, MAX_VCPUS};
use notes::{Rounds, each};

impl Scheduler {
    /// Lets a vCPU run now that is ready while an equal runs, because another vCPU waits
    /// for it (directed yield). It runs for as long as its quantum lasts, and its next turn
    /// is shorter by that: each vCPU still has at most a quantum in a round, however often
    /// the core yields to it. Returns true if the latest decision is out of date.
    pub fn yield_to(&mut self, id: VcpuId) -> bool {
        self.settle();
        self.yield_settled(id)
    }

    /// Does what [`Self::yield_to`] does for the first of these vCPUs for which it can.
    pub fn yield_to_any(&mut self, mut ids: impl Iterator<Item = VcpuId>) -> bool {
        self.settle();
        ids.any(|id| self.yield_settled(id))
    }

    fn yield_settled(&mut self, id: VcpuId) -> bool {
        let Some(at) = self.find(id) else { return false };
        if self.running == ABSENT || usize::from(self.running) == at {
            return false;
        }
        let peers = self.entries[at].peers;
        if (self.ready & self.reach) >> at & 1 == 0
            || peers >> self.running & 1 == 0
            || self.entries[at].left.0 == 0
        {
            return false;
        }
        let turn = self.entries[peers.trailing_zeros() as usize & POSITION].turn;
        self.yielded_to = if usize::from(turn) == at { ABSENT } else { at as u8 };
        true
    }

    /// Ends the turn of the vCPU that runs, at its own request: it spins for what another one has.
    /// It goes to the end of the line of its equals, and gives up what is left of its quantum; one
    /// that ran before its turn gives up only that. Returns true if the latest decision is out of
    /// date; false if none of `others` is an equal that could run now, and nothing has changed.
    ///
    /// It may run again at once, if all others have used their quanta up before their turns.
    #[inline(never)]
    pub fn yield_turn(
        &mut self,
        id: VcpuId,
        mut others: impl Iterator<Item = VcpuId>,
        now: Instant,
    ) -> bool {
        self.settle();
        let Some(at) = self.find(id) else { return false };
        let able = self.ready & self.reach & self.entries[at].peers;
        let is_able = |at: usize| able >> at & 1 == 1;
        let mut waits = |id| self.find(id).is_some_and(|other| other != at && is_able(other));
        if usize::from(self.running) != at || !is_able(at) || !others.any(&mut waits) {
            return false;
        }
        self.charge_running(now);
        self.give_up_turn(at);
        true
    }

    /// Chooses from `ready`, which vCPU runs now, and until when it may. The turn stays
    /// with a vCPU of `kept`, which has work and may not run here now.
    #[inline(always)]
    pub(super) fn choose(
        &mut self,
        ready: u64,
        kept: u64,
        now: Instant,
    ) -> (Option<VcpuId>, Option<Instant>) {
        if ready == 0 {
            self.running = ABSENT;
            self.reach = self.all();
            return (None, None);
        }
        let top = ready.trailing_zeros() as usize & POSITION;
        let peers = self.entries[top].peers;
        // The array is in order of priority: up to the last equal.
        self.reach = u64::MAX >> (peers.leading_zeros() & 63);
        let candidates = ready & peers;
        let first = peers.trailing_zeros() as usize & POSITION;
        let turn = self.entries[first].turn;
        let stays = kept != 0 && kept >> (turn & 63) & 1 == 1;
        if candidates & (candidates - 1) == 0 {
            if !stays {
                self.entries[first].turn = top as u8;
            }
            self.running = top as u8;
            return (Some(self.entries[top].id), None);
        }
        let mut next = at_or_after(candidates, turn);
        // The first may have used its quantum up, and so may all others.
        let mut rounds = Rounds::<{ MAX_VCPUS + 1 }, { each::and(each::VCPU, 1) }>::begin();
        loop {
            rounds.pass();
            let entry = &mut self.entries[usize::from(next) & POSITION];
            if entry.left.0 != 0 {
                break;
            }
            // It had its turn before.
            entry.left = entry.quantum;
            next = after(candidates, next);
        }
        if !stays {
            self.entries[first].turn = next;
        }
        if self.yielded_to != ABSENT && candidates >> (self.yielded_to & 63) & 1 == 1 {
            next = self.yielded_to;
        }
        self.running = next;
        let entry = &self.entries[usize::from(next) & POSITION];
        (Some(entry.id), Some(now.after(entry.left)))
    }

    /// Takes the time since the last charge from the running vCPU's quantum, if it is one
    /// of `awake`. When none is left, a new quantum begins at the end of the line. The turn
    /// of a vCPU of `kept` has waited for so long, and passes, too.
    #[inline(always)]
    pub(super) fn charge_quantum(&mut self, awake: u64, kept: u64, now: Instant) {
        let taken = now.since(self.charged);
        self.charged = now;
        let running = self.running;
        let at = usize::from(running) & POSITION;
        if running == ABSENT || awake >> at & 1 == 0 {
            return;
        }
        let entry = &mut self.entries[at];
        entry.left.0 = entry.left.0.saturating_sub(taken.0);
        if entry.left.0 == 0 {
            if self.yielded_to == running {
                self.yielded_to = ABSENT;
            }
            let peers = entry.peers;
            let first = peers.trailing_zeros() as usize & POSITION;
            let turn = self.entries[first].turn;
            // Else it ran before its turn, which will pass it over.
            if turn == running || kept >> (turn & 63) & 1 == 1 {
                self.entries[at].left = self.entries[at].quantum;
                self.entries[first].turn = after(peers, running);
            }
        }
    }

    /// Ends what a vCPU has of the present round because it sleeps. If it is its turn, the
    /// turn passes and a new quantum waits for it; else what it used before its turn stays
    /// used.
    #[inline(always)]
    pub(super) fn give_up_turn(&mut self, at: usize) {
        if usize::from(self.yielded_to) == at {
            self.yielded_to = ABSENT;
        }
        let peers = self.entries[at].peers;
        let first = peers.trailing_zeros() as usize & POSITION;
        if usize::from(self.entries[first].turn) == at {
            self.entries[at].left = self.entries[at].quantum;
            self.entries[first].turn = after(peers, at as u8);
        }
    }
}
