//! What always holds of a scheduler.

use super::{ABSENT, Scheduler};
use crate::MAX_VCPUS;

impl Scheduler {
    /// Asserts that the array is in order, and that all that refers to its positions agrees
    /// with it and with each other.
    pub fn check(&self) {
        self.check_order();
        self.check_sets();
        for position in [self.running, self.yielded_to] {
            assert!(position == ABSENT || position < self.count, "no vCPU at {position}");
        }
    }

    fn check_order(&self) {
        let used = usize::from(self.count);
        for (at, entry) in self.entries[..used].iter().enumerate() {
            let id = entry.id.0;
            let is_shadow = self.extras.boosts.shadows >> at & 1 == 1;
            assert_eq!(self.find(entry.id) != Some(at), is_shadow, "where vCPU {id} stands");
            assert!(at == 0 || self.entries[at - 1].priority >= entry.priority, "vCPU {id} ranks");
            assert!(entry.left <= entry.quantum, "vCPU {id} has more than its quantum left");
            let equals = (0..used).filter(|&other| self.entries[other].priority == entry.priority);
            let peers = equals.fold(0, |set, other| set | 1 << other);
            assert_eq!(entry.peers, peers, "the equals of vCPU {id}");
            let turn = self.entries[peers.trailing_zeros() as usize].turn;
            assert!(turn < self.count && peers >> turn & 1 == 1, "no equal of {id} has the turn");
        }
        let here = (0..MAX_VCPUS).filter(|&id| self.position[id] != ABSENT).count();
        let shadows = self.extras.boosts.shadows.count_ones() as usize;
        assert_eq!(here, used - shadows, "vCPUs that are here");
        self.check_boosts();
    }

    fn check_sets(&self) {
        let extras = &self.extras;
        let blocked = extras.away | extras.held_back | extras.spent;
        let with_extras = extras.pending | extras.idling | blocked | extras.raised;
        assert_eq!((self.ready | self.away | self.special) & !self.all(), 0, "no vCPU is there");
        assert_eq!(with_extras & !self.special, 0, "an extra that the guard does not know of");
        assert_eq!(self.away & (self.ready | self.special), 0, "away, and here");
        assert_eq!(self.ready & (extras.pending | blocked), 0, "blocked, and ready");
        assert_eq!(extras.pending & !blocked, 0, "nothing keeps it from running");
        for (at, entry) in self.entries[..usize::from(self.count)].iter().enumerate() {
            let id = usize::from(entry.id.0);
            let raised = extras.raised >> at & 1 == 1;
            let may_be = extras.accounts[id].is_none_or(|account| account.is_raised());
            assert_eq!(raised, extras.sections[id] > 0 && may_be, "vCPU {id} and its ceiling");
            let is_special = self.special >> at & 1 == 1;
            let is_shadow = extras.boosts.shadows >> at & 1 == 1;
            let is_served = extras.accounts[id].is_some();
            assert_eq!(extras.served >> at & 1 == 1, is_served, "the server of vCPU {id}");
            let lasts = is_served || entry.boost != ABSENT && !is_shadow;
            assert_eq!(extras.lasting >> at & 1 == 1, lasts, "what lasts of vCPU {id}");
            assert!(is_special || !lasts, "the guard does not know of vCPU {id}");
        }
    }
}
