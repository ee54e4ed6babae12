//! Adding and removing vCPUs: the array stays in order of priority.
//!
//! No core does this while guests run, so it may take long.

use super::{
    ABSENT, Entry, NO_ENTRY, Params, Refusal, Removed, Scheduler, VcpuId, after, low_bits,
};
use crate::MAX_VCPUS;
use crate::mailbox::Members;
use notes::{Bounded, each};

impl Scheduler {
    /// Adds a vCPU to this core. Its turn comes after those of its equals.
    ///
    /// # Errors
    /// Refuses inconsistent parameters and a vCPU that is already here.
    #[inline(never)]
    pub fn arrive(&mut self, id: VcpuId, params: Params, ready: bool) -> Result<(), Refusal> {
        if usize::from(id.0) >= MAX_VCPUS {
            return Err(Refusal::UnknownVcpu);
        }
        if self.has(id) {
            return Err(Refusal::AlreadyHere);
        }
        if params.quantum.0 == 0 {
            return Err(Refusal::ZeroQuantum);
        }
        if !self.has_room() {
            return Err(Refusal::NoPosition);
        }
        let at = self.insert(id, params, ABSENT);
        self.ready |= u64::from(ready) << at;
        self.reach = self.reach_of_running();
        Ok(())
    }

    /// Returns true if another entry fits.
    pub(super) fn has_room(&self) -> bool {
        usize::from(self.count) < MAX_VCPUS
    }

    /// Adds an entry of a vCPU, where its priority says. Returns where it stands.
    pub(super) fn insert(&mut self, id: VcpuId, params: Params, boost: u8) -> usize {
        let Params { priority, quantum } = params;
        let at = self.vcpu_count_above(params);
        self.open_gap(at);
        let turn = at as u8;
        self.entries[at] = Entry { quantum, left: quantum, peers: 0, priority, id, turn, boost };
        self.count += 1;
        self.renumber();
        at
    }

    /// Removes a vCPU from this core, for good or to give it to another, with what is left
    /// of its budget. One that runs has to be [charged](Self::charge) before. Returns none
    /// when it is not here, may be boosted, or holds a global resource: elsewhere it would not be
    /// at its ceiling, and every vCPU that waits for the resource would wait longer.
    pub fn remove(&mut self, id: VcpuId) -> Option<Removed> {
        self.settle();
        let at = self.find(id).filter(|_| !self.in_gcs(id))?;
        let Entry { priority, quantum, boost, .. } = self.entries[at];
        if boost != ABSENT {
            return None;
        }
        let ready = self.has_work(at) || self.away >> at & 1 == 1;
        self.pass_turn(at);
        self.close_gap(at);
        self.count -= 1;
        self.position[usize::from(id.0)] = ABSENT;
        self.renumber();
        self.reach = self.reach_of_running();
        let account = self.extras.accounts[usize::from(id.0)].take();
        Some(Removed { params: Params { priority, quantum }, account, ready })
    }

    fn vcpu_count_above(&self, params: Params) -> usize {
        let entries = &self.entries[..usize::from(self.count)];
        entries.iter().take_while(|entry| entry.priority >= params.priority).count()
    }

    /// Passes the turn on if it is this entry's, and tells every peer whose turn it is, so
    /// that the first may go.
    fn pass_turn(&mut self, at: usize) {
        let peers = self.entries[at].peers;
        let mut turn = self.entries[peers.trailing_zeros() as usize].turn;
        if usize::from(turn) == at {
            turn = after(peers, at as u8);
        }
        for peer in Members::of(peers).one_for::<{ each::VCPU }, MAX_VCPUS>() {
            self.entries[peer].turn = turn;
        }
    }

    /// Moves the entries from `at` on one place down, and what refers to them.
    fn open_gap(&mut self, at: usize) {
        self.entries.copy_within(at..usize::from(self.count), at + 1);
        let below = low_bits(at);
        self.change_sets(|set| (set & below) | (set & !below) << 1);
        self.shift_references(at, 1);
    }

    /// Moves the entries behind `at` one place up, and what refers to them.
    fn close_gap(&mut self, at: usize) {
        let count = usize::from(self.count);
        for reference in [&mut self.running, &mut self.yielded_to] {
            if usize::from(*reference) == at {
                *reference = ABSENT;
            }
        }
        self.entries.copy_within(at + 1..count, at);
        self.entries[count - 1] = NO_ENTRY;
        let below = low_bits(at);
        self.change_sets(|set| (set & below) | (set >> 1 & !below));
        self.shift_references(at + 1, -1);
    }

    fn change_sets(&mut self, change: impl Fn(u64) -> u64) {
        let sets = [&mut self.ready, &mut self.away, &mut self.special];
        for set in sets.into_iter().chain(self.extras.sets()) {
            *set = change(*set);
        }
    }

    fn shift_references(&mut self, from: usize, by: i8) {
        let shift = |position: &mut u8| {
            if *position != ABSENT && usize::from(*position) >= from {
                *position = position.wrapping_add_signed(by);
            }
        };
        shift(&mut self.running);
        shift(&mut self.yielded_to);
        self.entries.iter_mut().for_each(|entry| shift(&mut entry.turn));
    }

    /// Recomputes what follows from the order of the entries. Whose turn it is stands in the
    /// first of its equals as before, or in a newcomer that has none.
    fn renumber(&mut self) {
        for at in (0..usize::from(self.count)).one_for::<{ each::VCPU }, MAX_VCPUS>() {
            let entry = self.entries[at];
            let priority = entry.priority;
            let equals = |&other: &usize| self.entries[other].priority == priority;
            let peers = (0..usize::from(self.count)).filter(equals);
            self.entries[at].peers = peers.fold(0, |set, other| set | 1 << other);
            if self.extras.boosts.stands(&entry, at as u8) {
                self.position[entry.number()] = at as u8;
            }
        }
    }
}
