//! A side that is opened.

use crate::access::Access;
use crate::half::{
    EPOCH, IS_OPEN, MAGIC, PRODUCED, Ring, SIZE, VERSION, WANTS_DATA, WANTS_ROOM, ring_size,
};
use crate::latest::{Peer, Publisher};
use crate::receiver::Receiver;
use crate::sender::Sender;

/// An open side. Its parts may go to tasks of their own.
#[derive(Debug)]
pub struct Link<'a, A> {
    /// Sends messages or a stream.
    pub sender: Sender<'a, A>,
    /// Receives the peer's.
    pub receiver: Receiver<'a, A>,
    /// Lets the peer see the latest value.
    pub publisher: Publisher<'a, A>,
    /// The peer's latest value, doorbell and life.
    pub peer: Peer<'a, A>,
}

impl<'a, A: Access> Link<'a, A> {
    /// Opens the side: its ring is empty then, and it has no latest value. One program of a guest has a side at a time;
    /// parts of one that was opened before must not be used any more. None if the halves are too small
    /// ([`ring_size`]).
    #[must_use]
    pub fn open(access: &'a A) -> Option<Self> {
        let size = ring_size(access.half_size())?;
        let epoch = access.load_own(EPOCH).wrapping_add(1).max(1);
        // Without it, the peer waits.
        access.store_own(IS_OPEN, 0);
        access.barrier();
        access.store_own(EPOCH, epoch);
        // A peer that sees anything of what follows sees by the epoch that it is new.
        access.barrier();
        access.store_own(SIZE, size);
        for word in [PRODUCED, VERSION, WANTS_DATA, WANTS_ROOM] {
            access.store_own(word, 0);
        }
        access.barrier();
        access.store_own(IS_OPEN, MAGIC);
        access.barrier();
        let ring = Ring(size);
        Some(Self {
            sender: Sender::new(access, ring, epoch),
            receiver: Receiver::new(access, ring),
            publisher: Publisher::new(access),
            peer: Peer::new(access),
        })
    }
}
