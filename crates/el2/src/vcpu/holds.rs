//! Why a vCPU is at its ceiling: the mutexes that it holds, its own calls, and its siblings'.

use abi::system::MAX_MUTEXES;
use sched::Members;

/// What a vCPU's core knows of the reasons. What the guest reads is in `bytes`, see
/// [`abi::service::MUTEX_OPEN`]; EL2 does not read it there.
pub struct Holds {
    /// Sections that it has begun itself.
    own: u8,
    called: bool,
    held: [u8; MAX_MUTEXES],
    /// While it ends all of its sections: the mutexes that it may still hold or wait for.
    ending: Option<Members>,
    bytes: &'static mut [u8; MAX_MUTEXES],
}

/// A piece of ending all sections of a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Ending {
    /// It gives this mutex up.
    Mutex(usize),
    /// It has no mutex any more, and is not at its ceiling any more.
    Rest,
}

/// What a change means for the vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Change {
    /// Nothing.
    None,
    /// It has one reason more to be at its ceiling.
    More,
    /// It has one reason less.
    Less,
    /// It holds a mutex for another task than before.
    Passed,
}

impl Change {
    /// Returns what it means for a vCPU that no mutex raises.
    #[inline(always)]
    pub const fn without_ceiling(self) -> Self {
        match self {
            Self::None | Self::Less => Self::None,
            Self::More | Self::Passed => Self::Passed,
        }
    }
}

/// Returns what a guest reads of a mutex that a claimant of this rank holds.
pub const fn byte(rank: u8, owner_died: bool) -> u8 {
    const OWNER_DIED: u8 = 1 << 7;
    (rank + 1) | if owner_died { OWNER_DIED } else { 0 }
}

impl Holds {
    /// Makes it for a vCPU that has no reason. Only the vCPU's owner writes these bytes.
    pub fn new(bytes: &'static mut [u8; MAX_MUTEXES]) -> Self {
        Self { own: 0, called: false, held: [0; MAX_MUTEXES], ending: None, bytes }
    }

    /// Returns what a guest reads of a mutex.
    #[cfg(test)]
    pub fn of(&self, mutex: usize) -> u8 {
        assert_eq!(self.held[mutex], self.bytes[mutex], "mutex {mutex}");
        self.held[mutex]
    }

    /// Returns true if calls raise it.
    #[cfg(test)]
    pub fn is_called(&self) -> bool {
        self.called
    }

    /// Returns how many reasons there are.
    #[cfg(any(test, feature = "checked"))]
    pub fn reasons(&self) -> usize {
        usize::from(self.own > 0)
            + usize::from(self.called)
            + self.held.iter().filter(|&&held| held != 0).count()
    }

    /// Begins a section. Returns true if it is the first, none if there are too many.
    #[inline(always)]
    pub fn begin(&mut self) -> Option<bool> {
        self.own = self.own.checked_add(1)?;
        Some(self.own == 1)
    }

    /// Ends a section. Returns true if it was the last, none if there is none.
    #[inline(always)]
    pub fn end(&mut self) -> Option<bool> {
        self.own = self.own.checked_sub(1)?;
        Some(self.own == 0)
    }

    /// Begins to end everything, with these mutexes.
    pub fn begin_to_end(&mut self, mutexes: Members) {
        self.ending = Some(mutexes);
    }

    /// Returns true if not everything is ended that was begun to be.
    pub fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    /// Returns the next piece of that, once; none if all is done.
    pub fn next_to_end(&mut self) -> Option<Ending> {
        match self.ending.as_mut()?.next() {
            Some(mutex) => Some(Ending::Mutex(mutex)),
            None => {
                self.ending = None;
                Some(Ending::Rest)
            }
        }
    }

    /// Ends all of them.
    pub fn forget_own(&mut self) -> Change {
        match core::mem::take(&mut self.own) {
            0 => Change::None,
            _ => Change::Less,
        }
    }

    /// Records whether calls of its siblings raise it.
    #[inline(always)]
    pub fn set_called(&mut self, called: bool) -> Change {
        match (core::mem::replace(&mut self.called, called), called) {
            (false, true) => Change::More,
            (true, false) => Change::Less,
            _ => Change::None,
        }
    }

    /// Records what a guest is to read of a mutex; 0: the vCPU does not hold it.
    #[inline(always)]
    pub fn set(&mut self, mutex: usize, byte: u8) -> Change {
        let held = &mut self.held[mutex % MAX_MUTEXES];
        let before = core::mem::replace(held, byte);
        self.bytes[mutex % MAX_MUTEXES] = byte;
        match (before, byte) {
            (before, now) if before == now => Change::None,
            (0, _) => Change::More,
            (_, 0) => Change::Less,
            _ => Change::Passed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_counts_once() {
        let mut holds = Holds::new(Box::leak(Box::default()));
        assert_eq!((holds.end(), holds.begin(), holds.begin()), (None, Some(true), Some(false)));
        assert_eq!((holds.end(), holds.end()), (Some(false), Some(true)));
        assert_eq!(holds.set_called(true), Change::More);
        assert_eq!(holds.set_called(true), Change::None);
        assert_eq!(holds.set(3, byte(0, false)), Change::More);
        assert_eq!(holds.set(3, byte(0, false)), Change::None);
        assert_eq!(holds.set(3, byte(5, true)), Change::Passed);
        assert_eq!(holds.bytes[3], 0x86);
        assert_eq!(holds.set(3, 0), Change::Less);
        assert_eq!(holds.set_called(false), Change::Less);
        assert_eq!(Change::More.without_ceiling(), Change::Passed);
        assert_eq!(Change::Less.without_ceiling(), Change::None);
    }

    #[test]
    fn all_mutexes_are_given_up_before_the_rest_ends() {
        let mut holds = Holds::new(Box::leak(Box::default()));
        assert_eq!((holds.is_ending(), holds.next_to_end()), (false, None));
        holds.begin_to_end(Members::of(1 << 2 | 1 << 15));
        let pieces: Vec<_> = core::iter::from_fn(|| holds.next_to_end()).collect();
        assert_eq!(pieces, [Ending::Mutex(2), Ending::Mutex(15), Ending::Rest]);
        assert!(!holds.is_ending());
    }
}
