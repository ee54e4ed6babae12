//! Receiving.

use crate::access::Access;
use crate::error::Error;
use crate::half::{CONSUMED, EPOCH, OF_EPOCH, PRODUCED, Ring, SIZE, WANTS_DATA, peers_epoch};
use crate::sender::taken;
use abi::link::ARM;

/// Receives messages, or a stream, from the peer.
#[derive(Debug)]
pub struct Receiver<'a, A> {
    access: &'a A,
    ring: Ring,
    /// The peer's epoch, as far as known.
    hears_from: Option<u32>,
    /// Bytes read in that epoch, modulo 2^32: a multiple of 8.
    consumed: u32,
}

impl<'a, A: Access> Receiver<'a, A> {
    pub(crate) const fn new(access: &'a A, ring: Ring) -> Self {
        Self { access, ring, hears_from: None, consumed: 0 }
    }

    /// Returns how long a message may be, bytes: one fits into room for so many.
    #[must_use]
    pub const fn longest(&self) -> usize {
        self.ring.longest()
    }

    /// Receives a message into `room`, and returns it. After an error `room` may hold anything.
    ///
    /// # Errors
    /// [`Error::Empty`] or [`Error::Absent`]: there is none. [`Error::TooLong`]: it is longer than `room`, and dropped.
    /// [`Error::Restarted`] or [`Error::Broken`].
    pub fn receive<'m>(&mut self, room: &'m mut [u8]) -> Result<&'m [u8], Error> {
        let waiting = self.waiting()?;
        if waiting == 0 {
            return Err(Error::Empty);
        }
        let mut length = [0; 8];
        self.ring.get(self.access, self.consumed, &mut length);
        let length = usize::try_from(u64::from_le_bytes(length)).ok();
        let is_there = |length: &usize| *length <= self.longest() && taken(*length) <= waiting;
        let Some(length) = length.filter(is_there) else { return Err(self.broken()) };
        let message = room.get_mut(..length);
        let received = message.map(|message| {
            self.ring.get(self.access, self.consumed.wrapping_add(8), message);
            &*message
        });
        self.consume(taken(length))?;
        received.ok_or(Error::TooLong)
    }

    /// Reads from the stream into `room`, of which only whole doublewords are used, and returns what it has read: a
    /// multiple of 8 bytes. After an error `room` may hold anything.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::Absent`], [`Error::Restarted`] or [`Error::Broken`].
    pub fn read<'m>(&mut self, room: &'m mut [u8]) -> Result<&'m [u8], Error> {
        let length = self.waiting()?.min(room.len()) & !7;
        if length == 0 {
            return Err(Error::Empty);
        }
        let bytes = &mut room[..length];
        self.ring.get(self.access, self.consumed, bytes);
        self.consume(length)?;
        Ok(bytes)
    }

    /// Leaves out all that the peer has sent until now.
    ///
    /// # Errors
    /// [`Error::Absent`], [`Error::Restarted`] or [`Error::Broken`].
    pub fn skip(&mut self) -> Result<(), Error> {
        let waiting = self.waiting()?;
        self.consume(waiting)
    }

    /// Arms the doorbell: it rings when the peer has sent. What is called next to receive sees all for which it does not
    /// ring.
    pub fn arm(&mut self) {
        self.access.store_own(WANTS_DATA, 1);
        self.access.store(ARM, 1);
        self.access.barrier();
    }

    /// Arms the doorbell for so many ticks of the counter (CNTFRQ_EL0 a second; 0 and 1: as [`arm`](Self::arm)): what
    /// comes later does not ring, and the program has to look again by itself. So no doorbell interrupts it when it
    /// has no time for that.
    pub fn arm_within(&mut self, ticks: u32) {
        self.access.store_own(WANTS_DATA, 1);
        self.access.store(ARM, ticks);
        self.access.barrier();
    }

    /// Says that the peer need not ring for what it sends, until the doorbell is armed again: it may still ring once.
    pub fn disarm(&mut self) {
        self.access.store_own(WANTS_DATA, 0);
    }

    /// Returns how many bytes wait to be read: at most what the ring has.
    fn waiting(&mut self) -> Result<usize, Error> {
        let epoch = peers_epoch(self.access).ok_or(Error::Absent)?;
        let known = self.hears_from.replace(epoch);
        if self.access.load_own(OF_EPOCH) != epoch {
            // This order: the peer takes `CONSUMED` for nothing until it is of its epoch.
            self.access.store_own(OF_EPOCH, 0);
            self.access.barrier();
            self.access.store_own(CONSUMED, 0);
            self.access.barrier();
            self.access.store_own(OF_EPOCH, epoch);
        }
        if known.is_some_and(|known| known != epoch) {
            return Err(Error::Restarted);
        }
        self.consumed = self.access.load_own(CONSUMED);
        if self.access.load_peer(SIZE) != self.ring.0 || !self.consumed.is_multiple_of(8) {
            return Err(self.broken());
        }
        let waiting = self.access.load_peer(PRODUCED).wrapping_sub(self.consumed);
        self.access.barrier();
        if waiting <= self.ring.0 { Ok(waiting as usize) } else { Err(self.broken()) }
    }

    /// Looks, behind what was read of the peer's half, whether it is of the epoch that was known before: the peer may
    /// have been opened again meanwhile, and have written anything over it. That is told once.
    fn confirm(&mut self) -> Result<(), Error> {
        self.access.barrier();
        let epoch = Some(self.access.load_peer(EPOCH)).filter(|epoch| *epoch != 0);
        if epoch == self.hears_from {
            return Ok(());
        }
        self.hears_from = epoch;
        Err(Error::Restarted)
    }

    /// Returns what is wrong where something cannot be, unless the peer was opened again meanwhile.
    fn broken(&mut self) -> Error {
        self.confirm().err().unwrap_or(Error::Broken)
    }

    /// Says that so many bytes more were read; after an error they are of no use.
    fn consume(&mut self, bytes: usize) -> Result<(), Error> {
        self.confirm()?;
        self.consumed = self.consumed.wrapping_add(bytes as u32);
        self.access.store_own(CONSUMED, self.consumed);
        Ok(())
    }
}
