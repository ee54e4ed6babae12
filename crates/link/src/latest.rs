//! The latest value, which has no queue; and the peer as a whole.

use crate::access::Access;
use crate::error::Error;
use crate::half::{
    EPOCH, VALUE, VALUE_MAX, VALUE_SIZE, VERSION, WANTS_DATA, WANTS_ROOM, partial, peers_epoch,
};
use abi::link::{PEER, RING};
use core::num::NonZeroU32;

/// How often a reader looks again where the value was written meanwhile.
const LOOKS: usize = 4;
/// Doublewords of a value.
const DOUBLEWORDS: usize = VALUE_MAX / 8;
const _: () = assert!(VALUE_MAX.is_multiple_of(8));

/// Lets the peer see a latest value.
#[derive(Debug)]
pub struct Publisher<'a, A> {
    access: &'a A,
    version: u32,
}

impl<'a, A: Access> Publisher<'a, A> {
    pub(crate) const fn new(access: &'a A) -> Self {
        Self { access, version: 0 }
    }

    /// Lets the peer see a new value in place of the last one. It never waits.
    ///
    /// # Errors
    /// [`Error::TooLong`] for more than [`VALUE_MAX`] bytes: the peer sees the last one still.
    pub fn publish(&mut self, value: &[u8]) -> Result<(), Error> {
        if value.len() > VALUE_MAX {
            return Err(Error::TooLong);
        }
        self.version = self.version.wrapping_add(1);
        self.access.store_own(VERSION, self.version);
        self.access.barrier();
        self.access.store_own(VALUE_SIZE, value.len() as u32);
        for (number, bytes) in value.chunks(8).enumerate() {
            self.access.store_own_doubleword(VALUE + 8 * number, partial(bytes));
        }
        self.access.barrier();
        // 0 is none.
        self.version = match self.version.wrapping_add(1) {
            0 => 2,
            version => version,
        };
        self.access.store_own(VERSION, self.version);
        Ok(())
    }
}

/// The VM at the other end. Any task may have one.
#[derive(Debug)]
pub struct Peer<'a, A> {
    access: &'a A,
}

impl<A> Clone for Peer<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Peer<'_, A> {}

impl<'a, A: Access> Peer<'a, A> {
    pub(crate) const fn new(access: &'a A) -> Self {
        Self { access }
    }

    /// Copies the peer's latest value into `room`, and returns it.
    ///
    /// # Errors
    /// [`Error::Empty`]: there is none, or it was written in each of a few looks. [`Error::Absent`],
    /// [`Error::TooLong`] or [`Error::Broken`].
    pub fn latest<'m>(&self, room: &'m mut [u8]) -> Result<&'m [u8], Error> {
        for _ in 0..LOOKS {
            let epoch = peers_epoch(self.access).ok_or(Error::Absent)?;
            // A version is one of this epoch, or of a later one.
            self.access.barrier();
            let version = self.access.load_peer(VERSION);
            self.access.barrier();
            let length = self.access.load_peer(VALUE_SIZE) as usize;
            if version == 0 {
                break;
            }
            if !version.is_multiple_of(2) {
                continue;
            }
            if length > VALUE_MAX {
                return Err(Error::Broken);
            }
            let mut copy = [[0; 8]; DOUBLEWORDS];
            for (number, bytes) in copy.iter_mut().take(length.div_ceil(8)).enumerate() {
                *bytes = self.access.load_peer_doubleword(VALUE + 8 * number).to_le_bytes();
            }
            self.access.barrier();
            // Versions begin again in each epoch.
            if self.access.load_peer(VERSION) != version || self.access.load_peer(EPOCH) != epoch {
                continue;
            }
            let value = room.get_mut(..length).ok_or(Error::TooLong)?;
            value.copy_from_slice(&copy.as_flattened()[..length]);
            return Ok(value);
        }
        Err(Error::Empty)
    }

    /// Rings the peer's doorbell, if that is armed: the peer sees then all that was written before.
    pub fn ring(&self) {
        self.access.barrier();
        self.access.store(RING, 1);
    }

    /// Rings if the peer wants to be told: of what was sent, or of what was read. Nothing else makes an exit.
    pub fn notify(&self) {
        self.access.barrier();
        if self.access.load_peer(WANTS_DATA) | self.access.load_peer(WANTS_ROOM) != 0 {
            self.access.store(RING, 1);
        }
    }

    /// Returns the number of the life of the peer's VM, none while it is off. An exit.
    #[must_use]
    pub fn life(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.access.load(PEER))
    }
}
