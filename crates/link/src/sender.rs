//! Sending.

use crate::access::Access;
use crate::error::Error;
use crate::half::{CONSUMED, OF_EPOCH, PRODUCED, Ring, WANTS_ROOM, peers_epoch};
use abi::link::ARM;

/// Sends messages, or a stream, to the peer. It does not ring: [`crate::Peer::notify`] does.
#[derive(Debug)]
pub struct Sender<'a, A> {
    access: &'a A,
    ring: Ring,
    /// This side's own.
    epoch: u32,
    /// The peer's, as far as known.
    sends_to: Option<u32>,
    /// Bytes in this epoch, modulo 2^32: a multiple of 8.
    produced: u32,
}

/// Returns how many bytes of a ring a message takes: its length and itself, in doublewords.
pub(crate) const fn taken(length: usize) -> usize {
    8 + length.next_multiple_of(8)
}

impl<'a, A: Access> Sender<'a, A> {
    pub(crate) const fn new(access: &'a A, ring: Ring, epoch: u32) -> Self {
        Self { access, ring, epoch, sends_to: None, produced: 0 }
    }

    /// Returns how long a message may be, bytes.
    #[must_use]
    pub const fn longest(&self) -> usize {
        self.ring.longest()
    }

    /// Sends a message, which may be empty.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::TooLong`], [`Error::Restarted`] or [`Error::Broken`]: it is not sent. A peer that is
    /// not there yet finds it.
    pub fn send(&mut self, message: &[u8]) -> Result<(), Error> {
        if message.len() > self.longest() {
            return Err(Error::TooLong);
        }
        if taken(message.len()) > self.room()? {
            return Err(Error::Full);
        }
        self.ring.put(self.access, self.produced, &(message.len() as u64).to_le_bytes());
        self.ring.put(self.access, self.produced.wrapping_add(8), message);
        self.produce(taken(message.len()));
        Ok(())
    }

    /// Writes to the stream. Returns how many bytes: a multiple of 8, unless it is all. The last doubleword is filled
    /// up with zeros if it is not whole: write whole ones but at the end of what is said.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Restarted`] or [`Error::Broken`]: nothing is written.
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let length = bytes.len().min(self.room()? & !7);
        if length == 0 {
            return Err(Error::Full);
        }
        self.ring.put(self.access, self.produced, &bytes[..length]);
        self.produce(length.next_multiple_of(8));
        Ok(length)
    }

    /// Arms the doorbell: it rings when the peer has read, after which there may be room. What is called next to send
    /// sees all room for which it does not ring.
    pub fn arm_for_room(&mut self) {
        self.access.store_own(WANTS_ROOM, 1);
        self.access.store(ARM, 1);
        self.access.barrier();
    }

    /// Says that the peer need not ring for what it reads, until the doorbell is armed again: it may still ring once.
    pub fn disarm_for_room(&mut self) {
        self.access.store_own(WANTS_ROOM, 0);
    }

    /// Returns how many bytes of the ring the peer has read, or has not been given.
    fn room(&mut self) -> Result<usize, Error> {
        self.follow()?;
        let of_epoch = self.access.load_peer(OF_EPOCH);
        self.access.barrier();
        // It has read nothing since this side was opened.
        let consumed = if of_epoch == self.epoch { self.access.load_peer(CONSUMED) } else { 0 };
        let unread = self.produced.wrapping_sub(consumed);
        self.ring.0.checked_sub(unread).map(|room| room as usize).ok_or(Error::Broken)
    }

    /// Tells, once, that the peer was opened again.
    fn follow(&mut self) -> Result<(), Error> {
        let Some(epoch) = peers_epoch(self.access) else { return Ok(()) };
        match self.sends_to.replace(epoch) {
            Some(known) if known != epoch => Err(Error::Restarted),
            _ => Ok(()),
        }
    }

    /// Says that so many bytes more were sent.
    fn produce(&mut self, bytes: usize) {
        self.access.barrier();
        self.produced = self.produced.wrapping_add(bytes as u32);
        self.access.store_own(PRODUCED, self.produced);
    }
}
