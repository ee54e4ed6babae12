//! What is where in a half: `struct cassata_link_half` of `guests/include/cassata_link.h`, and behind it the ring.

use crate::access::Access;

/// The first word of a half whose side is open: "LNK1".
pub const MAGIC: u32 = 0x314b_4e4c;
/// Longest latest value, bytes.
pub const VALUE_MAX: usize = 232;
/// Bytes of a half before its ring.
pub const HEADER_SIZE: usize = VALUE + VALUE_MAX;

/// Smallest and largest half whose ring has a size, bytes.
const SMALLEST_RING: usize = 64;
const LARGEST_HALF: usize = 1 << 30;

/// Offset of a word: [`MAGIC`] while the side is open.
pub(crate) const IS_OPEN: usize = 0;
/// Another one each time that the side is opened, never 0.
pub(crate) const EPOCH: usize = 4;
/// Size of the ring, bytes, a power of two.
pub(crate) const SIZE: usize = 8;
/// Bytes written to the ring in this epoch, modulo 2^32.
pub(crate) const PRODUCED: usize = 12;
/// Bytes read of the peer's ring.
pub(crate) const CONSUMED: usize = 16;
/// In which epoch of the peer's.
pub(crate) const OF_EPOCH: usize = 20;
/// Version of the latest value: odd while it is written, 0 before there is one.
pub(crate) const VERSION: usize = 24;
/// Bytes of the latest value.
pub(crate) const VALUE_SIZE: usize = 28;
/// The side is to be told of what the peer sends.
pub(crate) const WANTS_DATA: usize = 32;
/// The side is to be told of what the peer reads.
pub(crate) const WANTS_ROOM: usize = 36;
/// The latest value.
pub(crate) const VALUE: usize = 40;

/// Returns how large a ring is in a half of so many bytes; none if there is no room for one, or the half is larger than
/// 1 GiB.
#[must_use]
pub const fn ring_size(half_size: usize) -> Option<u32> {
    if half_size < HEADER_SIZE + SMALLEST_RING || half_size > LARGEST_HALF {
        return None;
    }
    // The largest power of two: a half of 1 GiB has one of half a GiB.
    Some(1 << (half_size - HEADER_SIZE).ilog2())
}

/// A ring: so many bytes behind the header of a half, a power of two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring(pub u32);

impl Ring {
    /// Returns how long a message may be, bytes: its length is in the ring, too.
    pub const fn longest(self) -> usize {
        self.0 as usize - 8
    }

    /// Returns where in the half the doubleword is that is byte `at` of all that was ever written.
    fn place(self, at: u32) -> usize {
        HEADER_SIZE + (at & (self.0 - 1) & !7) as usize
    }

    /// Copies bytes into the own ring, from byte `at` on: in doublewords, the last one filled up with zeros.
    pub fn put(self, access: &impl Access, mut at: u32, bytes: &[u8]) {
        let (whole, rest) = bytes.as_chunks();
        for doubleword in whole {
            access.store_own_doubleword(self.place(at), u64::from_le_bytes(*doubleword));
            at = at.wrapping_add(8);
        }
        if !rest.is_empty() {
            access.store_own_doubleword(self.place(at), partial(rest));
        }
    }

    /// Copies bytes of the peer's ring, from byte `at` on.
    pub fn get(self, access: &impl Access, mut at: u32, bytes: &mut [u8]) {
        let (whole, rest) = bytes.as_chunks_mut();
        for doubleword in whole {
            *doubleword = access.load_peer_doubleword(self.place(at)).to_le_bytes();
            at = at.wrapping_add(8);
        }
        if !rest.is_empty() {
            let doubleword = access.load_peer_doubleword(self.place(at)).to_le_bytes();
            rest.copy_from_slice(&doubleword[..rest.len()]);
        }
    }
}

/// Returns fewer than eight bytes as a doubleword, little-endian, with zeros behind them.
pub(crate) fn partial(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// Returns the epoch of the peer; none: it was not opened yet, or is being opened.
pub(crate) fn peers_epoch(access: &impl Access) -> Option<u32> {
    let epoch = access.load_peer(EPOCH);
    access.barrier();
    (access.load_peer(IS_OPEN) == MAGIC && epoch != 0).then_some(epoch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_the_largest_power_of_two_that_fits() {
        let sizes = [0, HEADER_SIZE + 63, HEADER_SIZE + 64, HEADER_SIZE + 127, 1 << 12, 1 << 15];
        let rings = [None, None, Some(64), Some(64), Some(2048), Some(1 << 14)];
        assert_eq!(sizes.map(ring_size), rings);
        assert_eq!(ring_size(1 << 30), Some(1 << 29));
        assert_eq!(ring_size((1 << 30) + 1), None);
        assert_eq!(HEADER_SIZE % 8, 0);
    }

    #[test]
    fn a_doubleword_that_is_not_whole_is_filled_up() {
        assert_eq!(partial(&[]), 0);
        assert_eq!(partial(&[1, 2, 0xff]), 0x00ff_0201);
    }
}
