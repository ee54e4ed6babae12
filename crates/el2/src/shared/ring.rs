//! A ring of bytes that any core may fill and one at a time empties.
//!
//! Lock-free: a writer claims the next place by compare-and-exchange and then
//! fills it; the reader stops at a place that is claimed and not yet filled.
//! Writers run to completion with interrupts masked, so that is a matter of a
//! few instructions. A claim is retried only when another writer succeeded.

use crate::arch::atomic::{AtomicBool, AtomicU16, AtomicU32};
use core::sync::atomic::Ordering;
use notes::Bounded;

/// Marks a place that holds a byte.
const FILLED: u16 = 1 << 15;

/// See the module. `N` is a power of two.
pub struct Ring<const N: usize> {
    places: [AtomicU16; N],
    /// Bytes ever claimed and ever read, modulo 2^32.
    claimed: AtomicU32,
    read: AtomicU32,
    /// A core is reading.
    reading: AtomicBool,
}

impl<const N: usize> Ring<N> {
    /// Makes an empty ring.
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(N.is_power_of_two() && N <= 1 << 31) }
        Self {
            places: [const { AtomicU16::new(0) }; N],
            claimed: AtomicU32::new(0),
            read: AtomicU32::new(0),
            reading: AtomicBool::new(false),
        }
    }

    /// Takes all bytes that are there now.
    pub fn clear(&self) {
        // While another core reads, the ring is being emptied.
        if self.reading.swap(true, Ordering::Acquire) {
            return;
        }
        for _ in (0..N).at_most::<N>() {
            if self.pop_alone().is_none() {
                break;
            }
        }
        self.reading.store(false, Ordering::Release);
    }

    /// Appends a byte. Returns false when there is no room.
    pub fn push(&self, byte: u8) -> bool {
        let mut at = self.claimed.load(Ordering::Relaxed);
        loop {
            if at.wrapping_sub(self.read.load(Ordering::Acquire)) as usize >= N {
                return false;
            }
            let next = at.wrapping_add(1);
            match self.claimed.compare_exchange_weak(at, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => break,
                Err(now) => at = now,
            }
        }
        self.places[at as usize % N].store(FILLED | u16::from(byte), Ordering::Release);
        true
    }

    /// Appends the first `length` of these bytes, in one piece. Returns how many there was room for.
    pub fn append<const MOST: usize>(&self, bytes: &[u8; MOST], length: usize) -> usize {
        let mut at = self.claimed.load(Ordering::Relaxed);
        let count = loop {
            let used = at.wrapping_sub(self.read.load(Ordering::Acquire)) as usize;
            let count = length.min(MOST).min(N.saturating_sub(used));
            let next = at.wrapping_add(count as u32);
            match self.claimed.compare_exchange_weak(at, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => break count,
                Err(now) => at = now,
            }
        };
        for (index, &byte) in bytes.iter().take(count).enumerate().at_most::<MOST>() {
            let place = at.wrapping_add(index as u32) as usize % N;
            self.places[place].store(FILLED | u16::from(byte), Ordering::Release);
        }
        count
    }

    /// Takes the oldest byte. While another core does so it returns none: no core waits, and
    /// a guest that reads on several vCPUs at once affects only itself.
    pub fn pop(&self) -> Option<u8> {
        if self.reading.swap(true, Ordering::Acquire) {
            return None;
        }
        let byte = self.pop_alone();
        self.reading.store(false, Ordering::Release);
        byte
    }

    fn pop_alone(&self) -> Option<u8> {
        let at = self.read.load(Ordering::Relaxed);
        let place = &self.places[at as usize % N];
        let value = place.load(Ordering::Acquire);
        if value & FILLED == 0 {
            return None;
        }
        place.store(0, Ordering::Relaxed);
        self.read.store(at.wrapping_add(1), Ordering::Release);
        Some(value as u8)
    }

    /// Returns true if there is nothing to read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let at = self.read.load(Ordering::Relaxed);
        self.places[at as usize % N].load(Ordering::Acquire) & FILLED == 0
    }

    /// Returns how many bytes wait, those being written included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.claimed.load(Ordering::Relaxed).wrapping_sub(self.read.load(Ordering::Relaxed))
            as usize
    }
}

impl<const N: usize> Default for Ring<N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_order_and_refuses_when_full() {
        let ring = Ring::<4>::new();
        assert_eq!(ring.pop(), None);
        assert!((0..4).all(|byte| ring.push(byte)));
        assert!(!ring.push(9), "a full ring takes nothing");
        assert_eq!(ring.len(), 4);
        assert_eq!(ring.pop(), Some(0));
        assert!(ring.push(4));
        assert_eq!(core::iter::from_fn(|| ring.pop()).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert!(ring.is_empty());
    }

    #[test]
    fn several_bytes_are_appended_as_far_as_there_is_room() {
        let ring = Ring::<4>::new();
        assert_eq!(ring.append(&[1, 2, 3], 2), 2);
        assert_eq!(ring.append(&[3, 4, 5], 3), 2);
        assert_eq!(ring.append(&[6], 1), 0);
        assert_eq!(core::iter::from_fn(|| ring.pop()).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(ring.append(&[7], 9), 1, "it has no more");
        assert_eq!((ring.pop(), ring.pop()), (Some(7), None));
    }

    /// No other reader finds a byte that one of several took, and none is left behind.
    #[test]
    fn several_readers_take_each_byte_once() {
        const COUNT: usize = 60_000;
        let ring = Ring::<16>::new();
        let taken: [_; 256] = core::array::from_fn(|_| AtomicU32::new(0));
        let left = AtomicU32::new(COUNT as u32);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while left.load(Ordering::Relaxed) > 0 {
                        let Some(byte) = ring.pop() else { continue };
                        taken[usize::from(byte)].fetch_add(1, Ordering::Relaxed);
                        left.fetch_sub(1, Ordering::Relaxed);
                    }
                });
            }
            for at in 0..COUNT {
                while !ring.push((at % 256) as u8) {
                    std::hint::spin_loop();
                }
            }
        });
        let expected = |byte: usize| COUNT / 256 + usize::from(byte < COUNT % 256);
        for (byte, count) in taken.iter().enumerate() {
            assert_eq!(count.load(Ordering::Relaxed) as usize, expected(byte), "byte {byte}");
        }
        assert!(ring.is_empty());
        assert_eq!(ring.len(), 0);
    }

    #[test]
    fn a_cleared_ring_is_empty_and_full_of_room() {
        let ring = Ring::<4>::new();
        assert!((0..4).all(|byte| ring.push(byte)));
        ring.clear();
        assert!(ring.is_empty());
        assert!((0..4).all(|byte| ring.push(byte)));
    }

    /// Every byte of every writer arrives once, each writer's in its order.
    #[test]
    fn several_writers_lose_nothing() {
        const EACH: usize = 20_000;
        let ring = Ring::<64>::new();
        let mut next = [0u8; 3];
        std::thread::scope(|scope| {
            for writer in 0..3u8 {
                let ring = &ring;
                scope.spawn(move || {
                    for at in 0..EACH {
                        while !ring.push(writer << 6 | (at % 64) as u8) {
                            std::hint::spin_loop();
                        }
                    }
                });
            }
            for _ in 0..3 * EACH {
                let byte = loop {
                    if let Some(byte) = ring.pop() {
                        break byte;
                    }
                };
                let expected = &mut next[usize::from(byte >> 6)];
                assert_eq!(byte & 63, *expected);
                *expected = (*expected + 1) % 64;
            }
        });
    }
}
