//! A mutex that vCPUs of several VMs share.
//!
//! Holder and queue are one word ([`sched::claims`]), so that a call changes it by one atomic exchange
//! that succeeds: no core holds anything for which another one waits. An exchange fails, and is tried
//! again, when another core has changed the word since it was read. Nothing in the code limits how
//! often that may be in one call: the computed longest paths assume 8 tries at most (CAVEATS.md). Only
//! the core of a claimant's vCPU makes requests for that claimant.

use crate::arch::atomic::AtomicU64;
use core::sync::atomic::Ordering;
use sched::claims::{self, Claims, Lock, Misuse};

// The host gives out no rank that has no bit.
const _: () = assert!(claims::MAX_CLAIMANTS == abi::system::MAX_CLAIMANTS);

/// See the module.
pub struct Mutex {
    claims: AtomicU64,
    /// Ranks that use it, a bit for each.
    users: AtomicU64,
}

/// What a request brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    /// The claimant holds the mutex.
    Held {
        /// The one before died while it held the mutex.
        owner_died: bool,
    },
    /// It waits, or would have to.
    Waits,
}

impl Mutex {
    /// Makes a mutex that no claimant uses.
    #[must_use]
    pub const fn new() -> Self {
        Self { claims: AtomicU64::new(Claims::FREE.bits()), users: AtomicU64::new(0) }
    }

    /// Lets a claimant use it. Returns true if others do.
    pub fn open(&self, rank: u8) -> bool {
        let bit = 1 << rank;
        self.users.fetch_or(bit, Ordering::Relaxed) & !bit != 0
    }

    /// Returns true if a claimant uses it.
    #[inline]
    pub fn is_open(&self, rank: u8) -> bool {
        self.users.load(Ordering::Relaxed) >> rank & 1 == 1
    }

    /// Ends the use by a claimant.
    ///
    /// # Errors
    /// When it holds the mutex or waits for it.
    pub fn close(&self, rank: u8) -> Result<(), Misuse> {
        if self.claims().concerns(rank) {
            return Err(Misuse);
        }
        self.users.fetch_and(!(1 << rank), Ordering::Relaxed);
        Ok(())
    }

    /// Returns which claimant holds it, and whether the one before died.
    #[inline]
    pub fn holder(&self) -> Option<(u8, bool)> {
        let claims = self.claims();
        Some((claims.holder()?, claims.owner_died()))
    }

    /// Requests it for a claimant, which waits if it must.
    ///
    /// # Errors
    /// When the claimant holds it or waits already.
    #[inline]
    pub fn lock(&self, rank: u8) -> Result<Locked, Misuse> {
        self.change(|claims| {
            let (next, lock) = claims.lock(rank)?;
            Ok((next, locked(claims, lock)))
        })
    }

    /// Requests it for a claimant, if no other one holds it.
    ///
    /// # Errors
    /// When the claimant holds it or waits already.
    pub fn try_lock(&self, rank: u8) -> Result<Locked, Misuse> {
        self.change(|claims| match claims.lock(rank)? {
            (next, Lock::Held) => Ok((next, locked(claims, Lock::Held))),
            (_, Lock::Waits) => Ok((claims, Locked::Waits)),
        })
    }

    /// Gives it back; the next holder is told if the claimant died with it. Returns the claimant
    /// that holds it now.
    ///
    /// # Errors
    /// When another claimant holds it, or none.
    #[inline]
    pub fn unlock(&self, rank: u8, owner_died: bool) -> Result<Option<u8>, Misuse> {
        self.change(|claims| claims.unlock(rank, owner_died))
    }

    /// Forgets claimants whose vCPU is switched off. Returns the one that holds it now because of
    /// that.
    pub fn forget(&self, dead: u64) -> Option<u8> {
        self.users.fetch_and(!dead, Ordering::Relaxed);
        self.change(|claims| Ok(claims.without(dead))).unwrap_or_default()
    }

    #[inline]
    fn claims(&self) -> Claims {
        Claims::from_bits(self.claims.load(Ordering::Acquire))
    }

    /// Exchanges the state. Each time that has to be repeated, another core has got on, or has
    /// only disturbed the exclusive access, as a weak exchange may fail without cause.
    #[inline]
    fn change<T>(&self, step: impl Fn(Claims) -> Result<(Claims, T), Misuse>) -> Result<T, Misuse> {
        let mut bits = self.claims.load(Ordering::Relaxed);
        loop {
            let (next, answer) = step(Claims::from_bits(bits))?;
            let exchange = self.claims.compare_exchange_weak(
                bits,
                next.bits(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            match exchange {
                Ok(_) => return Ok(answer),
                Err(found) => bits = found,
            }
        }
    }
}

#[inline]
fn locked(claims: Claims, lock: Lock) -> Locked {
    match lock {
        Lock::Held => Locked::Held { owner_died: claims.owner_died() },
        Lock::Waits => Locked::Waits,
    }
}

impl Default for Mutex {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: Locked = Locked::Held { owner_died: false };

    #[test]
    fn a_mutex_goes_from_holder_to_waiter() {
        let mutex = Mutex::new();
        assert_eq!(mutex.lock(1), Ok(HELD));
        assert_eq!(mutex.try_lock(0), Ok(Locked::Waits));
        assert_eq!(mutex.holder(), Some((1, false)));
        assert_eq!(mutex.lock(0), Ok(Locked::Waits));
        assert_eq!(mutex.lock(0), Err(Misuse), "it waits");
        assert_eq!(mutex.unlock(0, false), Err(Misuse));
        assert_eq!(mutex.unlock(1, false), Ok(Some(0)));
        assert_eq!(mutex.unlock(0, false), Ok(None));
        assert_eq!(mutex.try_lock(1), Ok(HELD));
    }

    #[test]
    fn the_next_holder_is_told_of_a_task_that_died() {
        let mutex = Mutex::new();
        assert_eq!((mutex.lock(1), mutex.lock(0)), (Ok(HELD), Ok(Locked::Waits)));
        assert_eq!(mutex.unlock(0, true), Err(Misuse), "it waits");
        assert_eq!(mutex.unlock(1, true), Ok(Some(0)));
        assert_eq!(mutex.holder(), Some((0, true)));
        assert_eq!(mutex.unlock(0, true), Ok(None));
        assert_eq!(mutex.try_lock(1), Ok(Locked::Held { owner_died: true }));
    }

    #[test]
    fn what_is_in_use_is_not_closed() {
        let mutex = Mutex::new();
        assert!(!mutex.open(3));
        assert!(!mutex.open(3), "no other one uses it");
        assert!(mutex.open(4));
        assert_eq!(mutex.lock(3), Ok(HELD));
        assert_eq!(mutex.close(3), Err(Misuse));
        assert_eq!(mutex.forget(1 << 3), None);
        assert!(!mutex.is_open(3) && mutex.is_open(4));
        assert_eq!(mutex.lock(4), Ok(Locked::Held { owner_died: true }));
    }

    #[test]
    fn one_holds_it_at_a_time() {
        use core::sync::atomic::AtomicU32;
        static MUTEX: Mutex = Mutex::new();
        static INSIDE: AtomicU32 = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for rank in 0..4 {
                scope.spawn(move || {
                    for _ in 0..5_000 {
                        if MUTEX.lock(rank) == Ok(Locked::Waits) {
                            while MUTEX.holder().map(|(holder, _)| holder) != Some(rank) {
                                std::thread::yield_now();
                            }
                        }
                        assert_eq!(INSIDE.fetch_add(1, Ordering::Relaxed), 0);
                        INSIDE.fetch_sub(1, Ordering::Relaxed);
                        assert!(MUTEX.unlock(rank, false).is_ok());
                    }
                });
            }
        });
        assert_eq!(MUTEX.holder(), None);
    }
}
