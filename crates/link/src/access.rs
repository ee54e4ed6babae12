//! How a program reaches a link: the only part that depends on where it runs.

use core::sync::atomic::{AtomicU32, Ordering, fence};

/// The registers of a link ([`abi::link`]): an access is an exit.
///
/// They are emulated from what the processor says of an access, which is enough for an instruction that accesses one
/// word and changes no address on the way, such as `ldr w0, [x1]` and `str w0, [x1]`. On bare metal these are best
/// written as such.
pub trait Registers {
    /// Loads the word `offset` bytes behind the first one.
    fn load(&self, offset: u64) -> u32;
    /// Stores into it.
    fn store(&self, offset: u64, value: u32);
}

/// Memory and registers of a side. [`Words`] is one, of memory that a program has as slices.
///
/// Offsets are bytes from the beginning of a half. This crate asks for offsets only that are a multiple of an access's
/// width and end within [`Access::half_size`]. An access is one to memory each time, of its whole width, and is not
/// ordered with others but by [`Access::barrier`].
pub trait Access: Registers {
    /// Returns how many bytes each half has.
    fn half_size(&self) -> usize;
    /// Loads a word of the half that this side writes.
    fn load_own(&self, offset: usize) -> u32;
    /// Stores into it.
    fn store_own(&self, offset: usize, value: u32);
    /// Loads a word of the half that the peer writes.
    fn load_peer(&self, offset: usize) -> u32;

    /// Stores eight bytes, little-endian, into the half that this side writes. The protocol allows two accesses.
    fn store_own_doubleword(&self, offset: usize, value: u64) {
        self.store_own(offset, value as u32);
        self.store_own(offset + 4, (value >> 32) as u32);
    }

    /// Loads eight bytes, little-endian, of the half that the peer writes. The protocol allows two accesses.
    fn load_peer_doubleword(&self, offset: usize) -> u64 {
        u64::from(self.load_peer(offset)) | u64::from(self.load_peer(offset + 4)) << 32
    }

    /// Lets the peer see all accesses before this one before those that follow.
    fn barrier(&self) {
        fence(Ordering::SeqCst);
    }
}

/// A side whose halves are slices of words.
///
/// A program on bare metal makes the slices of the addresses in its device tree, with `unsafe` code of its own. The
/// peer's half may be mapped without the right to write.
#[derive(Debug)]
pub struct Words<'a, R> {
    own: &'a [AtomicU32],
    peer: &'a [AtomicU32],
    registers: R,
}

impl<'a, R: Registers> Words<'a, R> {
    /// Makes one of the half that this side writes, the peer's, and the registers. Of halves that differ in size, the
    /// end of the larger one is not used.
    #[must_use]
    pub const fn new(own: &'a [AtomicU32], peer: &'a [AtomicU32], registers: R) -> Self {
        Self { own, peer, registers }
    }
}

impl<R: Registers> Registers for Words<'_, R> {
    fn load(&self, offset: u64) -> u32 {
        self.registers.load(offset)
    }

    fn store(&self, offset: u64, value: u32) {
        self.registers.store(offset, value);
    }
}

impl<R: Registers> Access for Words<'_, R> {
    fn half_size(&self) -> usize {
        size_of::<u32>() * self.own.len().min(self.peer.len())
    }

    fn load_own(&self, offset: usize) -> u32 {
        self.own[offset / 4].load(Ordering::Relaxed)
    }

    fn store_own(&self, offset: usize, value: u32) {
        self.own[offset / 4].store(value, Ordering::Relaxed);
    }

    fn load_peer(&self, offset: usize) -> u32 {
        self.peer[offset / 4].load(Ordering::Relaxed)
    }
}
