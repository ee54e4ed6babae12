//! What a guest records of itself while it runs: which task has each vCPU, and marks of its own.
//!
//! It lies in the second half of the report area, from [`offset`] on, whatever the first half has.
//! A [`Header`], a [`Ring`] for each vCPU, then the [`Event`]s of each vCPU. A vCPU writes its own
//! ring alone: first the event, then [`Ring::written`]; the host reads `written` first.
//! `guests/include/cassata_events.h` says the same in C.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// First word of a header that the guest has initialised.
pub const MAGIC: u64 = u64::from_le_bytes(*b"CASEVNT\x01");
/// Most bytes of an event's text.
pub const TEXT: usize = 48;

/// Beginning of the events.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`], written last.
    pub magic: u64,
    /// Frequency of the counter that events take their times from.
    pub counter_hz: u64,
    /// Counter when the guest initialised this: a guest that starts again has another.
    pub begun: u64,
    /// How many rings follow: ring n is of the VM's vCPU n.
    pub rings: u64,
    /// How many events each ring holds.
    pub capacity: u64,
    /// 0.
    pub reserved: [u64; 3],
}

/// How far one vCPU has come.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Ring {
    /// Events written since the guest's start; the next goes to `written % capacity`.
    pub written: u64,
    /// 0. Two vCPUs share no cache line.
    pub reserved: [u64; 7],
}

/// One thing that happened in a guest.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Event {
    /// When, by the counter.
    pub time: u64,
    /// What: see [`Kind`].
    pub kind: u8,
    /// Bytes of `text` that are its own; a zero among them ends it earlier.
    pub length: u8,
    /// 0.
    pub reserved: u16,
    /// The task, by the number that the guest knows it by.
    pub task: u32,
    /// Name of the task, or what was marked. UTF-8.
    pub text: [u8; TEXT],
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The task has the vCPU from now on.
    Switch = 0,
    /// The task has marked this moment.
    Mark = 1,
}

const HEADER_SIZE: u64 = size_of::<Header>() as u64;
const RING_SIZE: u64 = size_of::<Ring>() as u64;
const EVENT_SIZE: u64 = size_of::<Event>() as u64;

// `cassata_events.h` asserts the same of its side.
const _: () = {
    use core::mem::offset_of;
    assert!(HEADER_SIZE == 64 && RING_SIZE == 64 && EVENT_SIZE == 64);
    assert!(offset_of!(Header, begun) == 16 && offset_of!(Header, capacity) == 32);
    assert!(offset_of!(Event, kind) == 8 && offset_of!(Event, length) == 9);
    assert!(offset_of!(Event, task) == 12 && offset_of!(Event, text) == 16);
};

impl Event {
    /// Returns what happened; none if this host does not know it.
    #[must_use]
    pub const fn kind(&self) -> Option<Kind> {
        match self.kind {
            0 => Some(Kind::Switch),
            1 => Some(Kind::Mark),
            _ => None,
        }
    }

    /// Returns the bytes of its text.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        let text = &self.text[..usize::from(self.length).min(TEXT)];
        &text[..text.iter().position(|&byte| byte == 0).unwrap_or(text.len())]
    }
}

/// Returns where the events begin in a report area of `size` bytes.
#[must_use]
pub const fn offset(size: u64) -> u64 {
    size / 2 / HEADER_SIZE * HEADER_SIZE
}

/// Returns how many events each of so many rings can hold in a report area of `size` bytes; 0: it
/// is too small.
#[must_use]
pub const fn capacity(size: u64, rings: u64) -> u64 {
    let room = (size - offset(size)).saturating_sub(HEADER_SIZE);
    let (heads, each) = (rings.saturating_mul(RING_SIZE), rings.saturating_mul(EVENT_SIZE));
    match room.saturating_sub(heads).checked_div(each) {
        Some(capacity) => capacity,
        None => 0,
    }
}

/// Returns the offset of a ring's [`Ring`] behind [`offset`].
#[must_use]
pub const fn ring(ring: u64) -> u64 {
    HEADER_SIZE + ring * RING_SIZE
}

/// Returns the offset of an event's place behind [`offset`], where there are so many rings of
/// `capacity` events each.
#[must_use]
pub const fn event(of: u64, place: u64, rings: u64, capacity: u64) -> u64 {
    ring(rings) + (of * capacity + place) * EVENT_SIZE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_and_events_have_places_of_their_own() {
        for (size, rings) in [(4_096, 1), (4_096, 8), (65_536, 2), (1 << 20, 3)] {
            let capacity = capacity(size, rings);
            assert!(capacity > 0);
            assert_eq!(ring(rings), event(0, 0, rings, capacity));
            assert_eq!(event(0, capacity, rings, capacity), event(1, 0, rings, capacity));
            let end = offset(size) + event(rings, 0, rings, capacity);
            assert!(end <= size && end + rings * EVENT_SIZE > size, "{size} {rings}: {end}");
        }
        // As `guests/freertos/tests/events.c` says.
        let sizes = [(4_096, 1), (4_096, 8), (65_536, 2), (1 << 20, 2)];
        assert_eq!(sizes.map(|(size, rings)| capacity(size, rings)), [30, 2, 254, 4_094]);
        assert_eq!([capacity(0, 1), capacity(100, 1), capacity(4_096, 0)], [0; 3]);
        assert_eq!(capacity(4_096, u64::MAX), 0);
    }

    #[test]
    fn a_text_ends_with_its_length_or_a_zero() {
        let mut event = Event::new_from(b"idle\0rest");
        assert_eq!(event.text(), b"idle");
        event.length = 2;
        assert_eq!(event.text(), b"id");
        (event.text, event.length) = ([b'x'; TEXT], 255);
        assert_eq!(event.text().len(), TEXT);
    }

    impl Event {
        fn new_from(text: &[u8]) -> Self {
            let mut event = Self {
                time: 0,
                kind: 0,
                length: TEXT as u8,
                reserved: 0,
                task: 0,
                text: [0; TEXT],
            };
            event.text[..text.len()].copy_from_slice(text);
            event
        }
    }
}
