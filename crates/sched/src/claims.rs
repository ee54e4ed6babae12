//! The mutex of a global resource, in one word.
//!
//! The *claimants* of a mutex, the tasks that may lock it, are known before the system runs.
//! Each has a *rank* in the order in which waiters are served: by the vCPU's priority and then
//! the task's (Kim, Wang, Rajkumar, RTSS 2014, Section III-A, rules 5 and 6), or in any other
//! order. So a set of ranks is the queue, and holder and queue have room in one 64-bit word:
//! an operation is one atomic exchange that succeeds, no core holds anything for which another one
//! waits, and no queue can be full.
//!
//! A holder may die: its vCPU is switched off, or its guest says so. Then the next one is told, for
//! what the mutex protects may be in disorder (as with robust futexes).

/// Most claimants of one mutex.
pub const MAX_CLAIMANTS: usize = 56;

/// Bits 0 to 55: ranks that wait.
const WAITING: u64 = (1 << MAX_CLAIMANTS) - 1;
/// Bits 56 to 62: the holder's rank and one, or 0.
const HOLDER_SHIFT: u32 = 56;
const HOLDER: u64 = 0x7f << HOLDER_SHIFT;
/// Bit 63: the holder before died; stands until the mutex is given back.
const DIED: u64 = 1 << 63;

/// The state of a mutex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claims(u64);

/// What a request brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// The claimant holds the mutex.
    Held,
    /// The claimant waits in the queue.
    Waits,
}

/// A request that makes no sense: the claimant holds the mutex or waits for it already, or does
/// not hold what it gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misuse;

impl Claims {
    /// A mutex that no claimant has asked for.
    pub const FREE: Self = Self(0);

    /// Returns the state that a word stands for.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the word that stands for this state.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns the rank of the claimant that holds it.
    #[must_use]
    pub const fn holder(self) -> Option<u8> {
        match (self.0 & HOLDER) >> HOLDER_SHIFT {
            0 => None,
            held => Some(held as u8 - 1),
        }
    }

    /// Returns true if the one that held it last died: what it protects may be in disorder.
    #[must_use]
    pub const fn owner_died(self) -> bool {
        self.0 & DIED != 0
    }

    /// Returns true if a claimant holds it or waits for it.
    #[must_use]
    pub fn concerns(self, rank: u8) -> bool {
        self.holder() == Some(rank) || self.0 & waiting(rank) != 0
    }

    /// Requests the mutex for a claimant, which waits if another one holds it.
    ///
    /// # Errors
    /// When it holds the mutex or waits for it already; then nothing has changed.
    pub fn lock(self, rank: u8) -> Result<(Self, Lock), Misuse> {
        if self.concerns(rank) || usize::from(rank) >= MAX_CLAIMANTS {
            Err(Misuse)
        } else if self.holder().is_some() {
            Ok((Self(self.0 | waiting(rank)), Lock::Waits))
        } else {
            Ok((self.held_by(rank), Lock::Held))
        }
    }

    /// Takes the mutex back from its holder, and gives it to the first that waits, or to the next
    /// one to ask. Which is told if the holder died: `owner_died`. Returns which has it now.
    ///
    /// # Errors
    /// When another claimant holds it, or none; then nothing has changed.
    pub fn unlock(self, rank: u8, owner_died: bool) -> Result<(Self, Option<u8>), Misuse> {
        if self.holder() != Some(rank) {
            return Err(Misuse);
        }
        let died = if owner_died { DIED } else { 0 };
        Ok(Self(self.0 & WAITING | died).pass_on())
    }

    /// Forgets claimants whose vCPU was switched off. If one of them held the mutex, the first
    /// that waits has it now, and is told; if none waits, the next one to ask is. Returns which
    /// has it now because of that.
    // Alone: a compiler that sees into it makes several loops of one that tries again.
    #[must_use]
    #[inline(never)]
    pub fn without(self, dead: u64) -> (Self, Option<u8>) {
        let rest = Self(self.0 & !(dead & WAITING));
        match self.holder() {
            Some(rank) if dead >> rank & 1 == 1 => Self(rest.0 & WAITING | DIED).pass_on(),
            _ => (rest, None),
        }
    }

    /// Gives a mutex that none holds to the first that waits.
    fn pass_on(self) -> (Self, Option<u8>) {
        let queue = self.0 & WAITING;
        if queue == 0 {
            return (self, None);
        }
        let rank = queue.trailing_zeros() as u8;
        (Self(self.0 & !waiting(rank)).held_by(rank), Some(rank))
    }

    const fn held_by(self, rank: u8) -> Self {
        Self(self.0 | (rank as u64 + 1) << HOLDER_SHIFT)
    }
}

/// The bit of a rank in the queue; none for a rank that no claimant can have.
fn waiting(rank: u8) -> u64 {
    1u64.checked_shl(rank.into()).unwrap_or(0) & WAITING
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn held(claims: Claims, rank: u8) -> Claims {
        claims.lock(rank).unwrap().0
    }

    #[test]
    fn the_first_rank_that_waits_is_next() {
        let mut claims = held(Claims::FREE, 9);
        for rank in [55, 3, 7] {
            let (next, lock) = claims.lock(rank).unwrap();
            assert_eq!(lock, Lock::Waits);
            claims = next;
        }
        for (rank, then) in [(9, Some(3)), (3, Some(7)), (7, Some(55)), (55, None)] {
            let (next, grant) = claims.unlock(rank, false).unwrap();
            assert_eq!((grant, next.owner_died()), (then, false));
            claims = next;
        }
        assert_eq!(claims, Claims::FREE);
    }

    #[test]
    fn misuse_changes_nothing() {
        let claims = held(held(Claims::FREE, 0), 1);
        for rank in [0, 1, 56, 255] {
            assert_eq!(claims.lock(rank), Err(Misuse));
        }
        for rank in [1, 2, 56, 255] {
            assert_eq!(claims.unlock(rank, false), Err(Misuse));
            assert_eq!(claims.unlock(rank, true), Err(Misuse));
        }
        assert_eq!(Claims::FREE.unlock(0, true), Err(Misuse));
    }

    #[test]
    fn the_next_one_is_told_of_a_death() {
        let claims = held(held(held(Claims::FREE, 2), 0), 1);
        let (claims, grant) = claims.without(1 << 2 | 1 << 0);
        assert_eq!((grant, claims.owner_died()), (Some(1), true));
        let (claims, grant) = claims.without(1 << 1);
        assert_eq!((claims.holder(), grant), (None, None));
        let (claims, lock) = claims.lock(5).unwrap();
        assert_eq!((lock, claims.owner_died()), (Lock::Held, true));
        let (claims, _) = claims.unlock(5, false).unwrap();
        assert!(!held(claims, 5).owner_died(), "it was told");
    }

    #[test]
    fn the_next_one_is_told_of_a_task_that_dies() {
        let claims = held(held(held(Claims::FREE, 2), 0), 1);
        let (claims, grant) = claims.unlock(2, true).unwrap();
        assert_eq!((grant, claims.owner_died()), (Some(0), true));
        let (claims, grant) = claims.unlock(0, false).unwrap();
        assert_eq!((grant, claims.owner_died()), (Some(1), false), "one is told of a death");
        let (claims, grant) = claims.unlock(1, true).unwrap();
        assert_eq!((grant, claims.owner_died()), (None, true));
        let claims = held(claims, 7);
        assert!(claims.owner_died(), "the next one to ask is told");
        let (claims, _) = claims.unlock(7, true).unwrap();
        assert!(held(claims, 3).owner_died(), "one that was told may die as well");
    }

    #[derive(Clone, Debug)]
    enum Event {
        Lock(u8),
        Unlock(u8, bool),
        Die(u64),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            3 => (0u8..56).prop_map(Event::Lock),
            3 => (0u8..56, any::<bool>()).prop_map(|(rank, died)| Event::Unlock(rank, died)),
            1 => any::<[u64; 3]>().prop_map(|[a, b, c]| Event::Die((a & b & c) % (1 << 56))),
        ]
    }

    proptest! {
        /// A set for the queue and an option for the holder say the same.
        #[test]
        fn agrees_with_a_queue(events in prop::collection::vec(event(), 0..200)) {
            let (mut claims, mut holder, mut queue) = (Claims::FREE, None, BTreeSet::new());
            // That the holder before died, or the last one if there is none.
            let mut told = false;
            for event in events {
                match event {
                    Event::Lock(rank) if holder == Some(rank) || queue.contains(&rank) => {
                        prop_assert_eq!(claims.lock(rank), Err(Misuse));
                    }
                    Event::Lock(rank) => {
                        let (next, lock) = claims.lock(rank).unwrap();
                        prop_assert_eq!(lock == Lock::Waits, holder.is_some());
                        claims = next;
                        if holder.is_some() {
                            queue.insert(rank);
                        } else {
                            holder = Some(rank);
                        }
                    }
                    Event::Unlock(rank, died) if holder == Some(rank) => {
                        let (next, grant) = claims.unlock(rank, died).unwrap();
                        claims = next;
                        (holder, told) = (queue.pop_first(), died);
                        prop_assert_eq!(grant, holder);
                    }
                    Event::Unlock(rank, died) => {
                        prop_assert_eq!(claims.unlock(rank, died), Err(Misuse));
                    }
                    Event::Die(dead) => {
                        let (next, grant) = claims.without(dead);
                        claims = next;
                        queue.retain(|rank| dead >> rank & 1 == 0);
                        if holder.is_some_and(|rank| dead >> rank & 1 == 1) {
                            (holder, told) = (queue.pop_first(), true);
                            prop_assert_eq!(grant, holder);
                        } else {
                            prop_assert_eq!(grant, None);
                        }
                    }
                }
                prop_assert_eq!((claims.holder(), claims.owner_died()), (holder, told));
                for rank in 0..56 {
                    let concerned = holder == Some(rank) || queue.contains(&rank);
                    prop_assert_eq!(claims.concerns(rank), concerned);
                }
            }
        }
    }
}
