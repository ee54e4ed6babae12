//! Where a vCPU is, for those who have something for it.

use core::sync::atomic::{AtomicU8, Ordering, fence};

/// The core that owns a vCPU, or will when it has arrived.
///
/// Whoever has something for a vCPU (an interrupt, a request to switch it on)
/// first writes it where the vCPU's owner finds it, then asks [`Place::find`]
/// and tells that core. Whoever takes a migrating vCPU in calls
/// [`Place::arrived`], then looks at what was left. The two fences pair: either
/// the sender finds the new owner, or the new owner sees what the sender wrote.
/// So a message that reaches a former owner needs no forwarding: it is for
/// something that the present owner has seen, or will on arrival.
#[derive(Debug)]
pub struct Place<S = AtomicU8> {
    core: S,
}

/// What a place is made of: an atomic byte and a fence. There is one on
/// hardware; a model checker has another.
pub trait Slot {
    /// Stores, ordered as release.
    fn put(&self, core: u8);
    /// Loads, ordered as acquire.
    fn get(&self) -> u8;
    /// Orders everything before before everything after, for all.
    fn fence();
}

impl Slot for AtomicU8 {
    #[inline]
    fn put(&self, core: u8) {
        self.store(core, Ordering::Release);
    }

    #[inline]
    fn get(&self) -> u8 {
        self.load(Ordering::Acquire)
    }

    #[inline]
    fn fence() {
        fence(Ordering::SeqCst);
    }
}

impl Place {
    /// With core 0.
    #[must_use]
    pub const fn new() -> Self {
        Self { core: AtomicU8::new(0) }
    }
}

impl<S: Slot> Place<S> {
    /// In a slot that holds the number of a core.
    #[must_use]
    pub const fn within(core: S) -> Self {
        Self { core }
    }

    /// Before there are several cores, or by the owner when the vCPU leaves for
    /// `core`.
    pub fn set(&self, core: usize) {
        debug_assert!(core < 256);
        self.core.put(core as u8);
    }

    /// The new owner has taken the vCPU; what was left for it comes next.
    pub fn arrived(&self) {
        S::fence();
    }

    /// Whom to tell, after something was left for the vCPU.
    #[must_use]
    pub fn find(&self) -> usize {
        S::fence();
        self.now()
    }

    /// The core that owns it, or will. Exact when the owner asks.
    #[must_use]
    pub fn now(&self) -> usize {
        usize::from(self.core.get())
    }
}

impl Default for Place {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::{Mailbox, Message};
    use core::sync::atomic::AtomicU64;
    use std::thread;

    /// Two cores pass a vCPU back and forth, two senders leave things for it;
    /// each core serves its mail only. Nothing that was left is never seen.
    #[test]
    fn what_is_left_is_found_wherever_the_vcpu_is() {
        const LEFT: u64 = 30_000;
        let place = Place::new();
        let mailboxes = [Mailbox::new(), Mailbox::new()];
        let left = AtomicU64::new(0);
        let seen = AtomicU64::new(0);
        let core = |me: usize| {
            let mut mine = me == 0;
            while seen.load(Ordering::Relaxed) < 2 * LEFT {
                let mut look = false;
                if mailboxes[me].take(Message::Arrivals).next().is_some() {
                    mine = true;
                    place.arrived();
                    look = true;
                }
                look |= mailboxes[me].take(Message::Vcpus).next().is_some() && mine;
                if look {
                    seen.fetch_add(left.swap(0, Ordering::AcqRel), Ordering::Relaxed);
                }
                if mine && look {
                    mine = false;
                    place.set(1 - me);
                    mailboxes[1 - me].send(Message::Arrivals, 0);
                }
            }
        };
        let sender = || {
            for _ in 0..LEFT {
                left.fetch_add(1, Ordering::AcqRel);
                mailboxes[place.find()].send(Message::Vcpus, 0);
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| core(0));
            scope.spawn(|| core(1));
            scope.spawn(sender);
            scope.spawn(sender);
        });
        assert_eq!(seen.into_inner(), 2 * LEFT);
    }
}
