//! What a guest records of itself ([`abi::report::events`]), followed while the machine runs.
//!
//! The guest may write anything there at any time: every word is checked each time it is read, and
//! what is taken at one look is bounded.

use crate::machine::Memory;
use abi::report::events::{self, Event, Header, MAGIC};
use miette::Result;
use zerocopy::IntoBytes;

/// How many events of a vCPU are taken at one look, the latest: more than a busy Linux records
/// between two looks.
const MOST: u64 = 4_096;
/// How many events of a vCPU are taken in a run, the first: no more than a guest that floods the
/// area may fill disk and memory with. The rest counts as lost.
const MOST_IN_ALL: u64 = 1 << 20;

/// Follows the events of one VM.
#[derive(Clone, Debug)]
pub(super) struct Follower {
    pa: u64,
    size: u64,
    /// How many vCPUs the VM has.
    vcpus: u64,
    begun: u64,
    /// The first event of each vCPU that was not read.
    next: Vec<u64>,
    /// How many events of each vCPU may still be taken.
    room: Vec<u64>,
}

/// What is new of one vCPU.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Index of the vCPU in its VM.
    pub vcpu: usize,
    /// Events that were overwritten before they were read, or were too many; they come before
    /// `events`.
    pub lost: u64,
    pub events: Vec<Event>,
}

impl Follower {
    /// Follows a VM with so many vCPUs, whose report area of `size` bytes is at this physical
    /// address.
    pub fn new(pa: u64, size: u64, vcpus: usize) -> Self {
        let (pa, size) = (pa + events::offset(size), size - events::offset(size));
        Self {
            pa,
            size,
            vcpus: vcpus as u64,
            begun: 0,
            next: vec![0; vcpus],
            room: vec![MOST_IN_ALL; vcpus],
        }
    }

    /// Reads what is new; nothing while the guest has not begun, or its header makes no sense.
    pub fn poll(&mut self, memory: &Memory) -> Result<Vec<News>> {
        let Some(header) = self.header(memory)? else { return Ok(Vec::new()) };
        if header.begun != self.begun {
            self.begun = header.begun;
            self.next.fill(0);
        }
        let rings = 0..usize::try_from(header.rings).unwrap_or(0).min(self.next.len());
        rings.map(|vcpu| self.poll_ring(memory, &header, vcpu)).collect()
    }

    fn poll_ring(&mut self, memory: &Memory, header: &Header, vcpu: usize) -> Result<News> {
        let written = self.written(memory, vcpu)?;
        if written < self.next[vcpu] {
            self.next[vcpu] = 0;
        }
        let kept = header.capacity.min(MOST).min(self.room[vcpu]);
        let begin = self.next[vcpu].max(written.saturating_sub(kept));
        let first = events::event(vcpu as u64, 0, header.rings, header.capacity);
        let mut events: Vec<Event> =
            memory.read_ring(self.pa + first, header.capacity, begin..written)?;
        // The guest went on meanwhile: what it has reached, or is writing over now, may be torn.
        let after = self.written(memory, vcpu)?;
        let is_same = self.header(memory)?.is_some_and(|now| now.as_bytes() == header.as_bytes());
        let sound = if is_same {
            after.saturating_add(1).saturating_sub(header.capacity).clamp(begin, written)
        } else {
            written
        };
        events.drain(..(sound - begin) as usize);
        let lost = sound - self.next[vcpu];
        self.room[vcpu] -= events.len() as u64;
        self.next[vcpu] = written;
        Ok(News { vcpu, lost, events })
    }

    /// Returns the header if it makes sense: then all rings are within the area.
    fn header(&self, memory: &Memory) -> Result<Option<Header>> {
        if self.size < size_of::<Header>() as u64 {
            return Ok(None);
        }
        let header: Header = memory.read(self.pa)?;
        let fits = || {
            let all = header.rings.checked_mul(header.capacity)?;
            let room = self.size.checked_sub(events::ring(header.rings))?;
            (all <= room / size_of::<Event>() as u64).then_some(())
        };
        let counts = header.capacity > 0 && (1..=self.vcpus).contains(&header.rings);
        let is_sound = header.magic == MAGIC && header.counter_hz > 0 && counts;
        Ok((is_sound && fits().is_some()).then_some(header))
    }

    fn written(&self, memory: &Memory, vcpu: usize) -> Result<u64> {
        let ring: events::Ring = memory.read(self.pa + events::ring(vcpu as u64))?;
        Ok(ring.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::random::Chance;
    use std::ops::Range;
    use zerocopy::FromZeros;

    const BASE: u64 = 0x4000_0000;
    const SIZE: u64 = 0x4000;
    const EVENTS: u64 = BASE + SIZE / 2;

    fn memory(header: &Header) -> Memory {
        let memory = Memory::create(BASE, SIZE).unwrap();
        memory.write_bytes(EVENTS, header.as_bytes()).unwrap();
        memory
    }

    fn header() -> Header {
        let (counter_hz, rings, capacity) = (1_000, 2, 32);
        Header { magic: MAGIC, counter_hz, begun: 5, rings, capacity, reserved: [0; 3] }
    }

    fn event(time: u64) -> Event {
        Event { time, ..Event::new_zeroed() }
    }

    fn write(memory: &Memory, vcpu: u64, numbers: Range<u64>) {
        for number in numbers.clone() {
            let at = EVENTS + events::event(vcpu, number % 32, 2, 32);
            memory.write_bytes(at, event(number).as_bytes()).unwrap();
        }
        memory.write_bytes(EVENTS + events::ring(vcpu), numbers.end.as_bytes()).unwrap();
    }

    fn times(news: &[News]) -> Vec<(usize, u64, Option<u64>, usize)> {
        let first = |news: &News| news.events.first().map(|event| event.time);
        news.iter().map(|n| (n.vcpu, n.lost, first(n), n.events.len())).collect()
    }

    #[test]
    fn every_event_is_read_once_or_counted_as_lost() {
        let memory = memory(&header());
        let mut follower = Follower::new(BASE, SIZE, 4);
        write(&memory, 1, 0..30);
        let news = follower.poll(&memory).unwrap();
        assert_eq!(times(&news), [(0, 0, None, 0), (1, 0, Some(0), 30)]);
        write(&memory, 0, 0..1);
        write(&memory, 1, 30..40);
        let news = follower.poll(&memory).unwrap();
        assert_eq!(times(&news), [(0, 0, Some(0), 1), (1, 0, Some(30), 10)]);
        // The oldest event is the next to be written over, and may be torn.
        write(&memory, 1, 40..72);
        assert_eq!(times(&follower.poll(&memory).unwrap())[1], (1, 1, Some(41), 31));
        write(&memory, 1, 72..172);
        assert_eq!(times(&follower.poll(&memory).unwrap())[1], (1, 69, Some(141), 31));
    }

    #[test]
    fn a_guest_that_floods_the_area_fills_no_more_than_its_room() {
        let memory = memory(&header());
        let mut follower = Follower::new(BASE, SIZE, 4);
        follower.room[1] = 40;
        write(&memory, 1, 0..30);
        follower.poll(&memory).unwrap();
        write(&memory, 1, 30..60);
        assert_eq!(times(&follower.poll(&memory).unwrap())[1], (1, 20, Some(50), 10));
        write(&memory, 1, 60..70);
        assert_eq!(times(&follower.poll(&memory).unwrap())[1], (1, 10, None, 0));
        write(&memory, 0, 0..1);
        assert_eq!(times(&follower.poll(&memory).unwrap())[0], (0, 0, Some(0), 1));
    }

    #[test]
    fn a_guest_that_starts_again_is_read_from_its_beginning() {
        let memory = memory(&header());
        let mut follower = Follower::new(BASE, SIZE, 2);
        write(&memory, 0, 0..10);
        assert_eq!(times(&follower.poll(&memory).unwrap())[0], (0, 0, Some(0), 10));
        memory.write_bytes(EVENTS, Header { begun: 6, ..header() }.as_bytes()).unwrap();
        write(&memory, 0, 0..12);
        assert_eq!(times(&follower.poll(&memory).unwrap())[0], (0, 0, Some(0), 12));
    }

    #[test]
    fn a_header_that_makes_no_sense_is_no_header() {
        let good = header();
        let bad = [
            Header { magic: 0, ..good },
            Header { counter_hz: 0, ..good },
            Header { rings: 0, ..good },
            Header { rings: 5, ..good },
            Header { rings: u64::MAX, ..good },
            Header { capacity: 0, ..good },
            Header { capacity: 64, ..good },
            Header { capacity: u64::MAX, ..good },
        ];
        for header in bad {
            let memory = memory(&header);
            let mut follower = Follower::new(BASE, SIZE, 4);
            assert!(follower.poll(&memory).unwrap().is_empty(), "{header:?}");
        }
        let mut nothing = Follower::new(BASE, 0, 4);
        assert!(nothing.poll(&memory(&good)).unwrap().is_empty(), "there is no area");
    }

    #[test]
    fn any_words_are_read_within_bounds() {
        let mut chance = Chance::seeded(7);
        let mut follower = Follower::new(BASE, SIZE, 4);
        for _ in 0..2_000 {
            let (capacity, rings) = (chance.between(0, 70), chance.between(0, 5));
            let begun = chance.between(0, 3);
            let memory = memory(&Header { begun, rings, capacity, ..header() });
            for vcpu in 0..4 {
                let written = chance.between(0, u64::MAX - 1) >> chance.between(0, 63);
                let at = EVENTS + events::ring(vcpu);
                memory.write_bytes(at, written.as_bytes()).unwrap();
            }
            for news in follower.poll(&memory).unwrap() {
                assert!(news.events.len() as u64 <= capacity.min(MOST));
            }
        }
    }
}
