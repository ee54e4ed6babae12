//! On which core a vCPU is, for cores that have something for it.

use core::sync::atomic::{AtomicU8, Ordering, fence};

/// The core that owns a vCPU, or will when it has arrived.
///
/// A core that has something for a vCPU (an interrupt, a request to switch it on)
/// first writes it where the vCPU's owner finds it, then calls [`Location::find`]
/// and sends that core a message. A core that receives a migrating vCPU calls
/// [`Location::arrived`], then reads what was written. The two fences pair: either
/// the sender finds the new owner, or the new owner sees what the sender wrote.
/// So a message that reaches a former owner needs no forwarding: the present owner
/// has seen what it is about, or will on arrival.
#[derive(Debug)]
pub struct Location<S = AtomicU8> {
    core: S,
}

/// The atomic byte and the fence that a location is made of. There is one on
/// hardware; a model checker has another.
pub trait AtomicCell {
    /// Changes the value.
    fn store(&self, value: u8, order: Ordering);
    /// Returns the value.
    fn load(&self, order: Ordering) -> u8;
    /// Orders what this core accesses before and after.
    fn fence(order: Ordering);
}

impl AtomicCell for AtomicU8 {
    #[inline]
    fn store(&self, value: u8, order: Ordering) {
        self.store(value, order);
    }

    #[inline]
    fn load(&self, order: Ordering) -> u8 {
        self.load(order)
    }

    #[inline]
    fn fence(order: Ordering) {
        fence(order);
    }
}

impl Location {
    /// Makes the location of a vCPU on core 0.
    #[must_use]
    pub const fn new() -> Self {
        Self { core: AtomicU8::new(0) }
    }
}

impl<S: AtomicCell> Location<S> {
    /// Makes a location of a cell that holds the number of a core.
    #[must_use]
    pub const fn within(core: S) -> Self {
        Self { core }
    }

    /// Records that the vCPU is on `core`. Only its owner may call this, when the vCPU leaves;
    /// before several cores run, any core may.
    pub fn set(&self, core: usize) {
        debug_assert!(core < 256);
        self.core.store(core as u8, Ordering::Release);
    }

    /// Records that the new owner has received the vCPU. Next, the owner reads what was written
    /// for it.
    pub fn arrived(&self) {
        S::fence(Ordering::SeqCst);
    }

    /// Returns the core to which to send a message, after something was written for the vCPU.
    #[must_use]
    pub fn find(&self) -> usize {
        S::fence(Ordering::SeqCst);
        self.now()
    }

    /// Returns the core that owns the vCPU, or will. Exact when the owner asks.
    #[must_use]
    pub fn now(&self) -> usize {
        usize::from(self.core.load(Ordering::Acquire))
    }
}

impl Default for Location {
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
        let location = Location::new();
        let mailboxes = [Mailbox::new(), Mailbox::new()];
        let left = AtomicU64::new(0);
        let seen = AtomicU64::new(0);
        let core = |me: usize| {
            let mut mine = me == 0;
            while seen.load(Ordering::Relaxed) < 2 * LEFT {
                let mut look = false;
                if mailboxes[me].take(Message::Arrivals).next().is_some() {
                    mine = true;
                    location.arrived();
                    look = true;
                }
                look |= mailboxes[me].take(Message::Vcpus).next().is_some() && mine;
                if look {
                    seen.fetch_add(left.swap(0, Ordering::AcqRel), Ordering::Relaxed);
                }
                if mine && look {
                    mine = false;
                    location.set(1 - me);
                    mailboxes[1 - me].send(Message::Arrivals, 0);
                }
            }
        };
        let sender = || {
            for _ in 0..LEFT {
                left.fetch_add(1, Ordering::AcqRel);
                mailboxes[location.find()].send(Message::Vcpus, 0);
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
