//! One pCPU's ring, followed while the machine runs.

use crate::machine::Memory;
use abi::trace::{HEADER_SIZE, Header, MAGIC, RECORD_SIZE, Record};
use miette::Result;

/// Follows one ring.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    header_pa: u64,
    capacity: u64,
    /// The first record that was not read.
    next: u64,
}

/// What is new in a ring.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Records that were overwritten before they were read; they come before `records`.
    pub lost: u64,
    pub records: Vec<Record>,
}

impl Ring {
    /// Follows a ring of `size` bytes, whose header is at this physical address.
    pub fn new(header_pa: u64, size: u64) -> Self {
        Self { header_pa, capacity: size / RECORD_SIZE, next: 0 }
    }

    /// Reads what is new; nothing while the core has not begun.
    pub fn poll(&mut self, memory: &Memory) -> Result<News> {
        let Some(written) = self.written(memory)? else { return Ok(News::default()) };
        let begin = self.next.max(written.saturating_sub(self.capacity));
        let ring_pa = self.header_pa + HEADER_SIZE;
        let mut records = memory.read_ring(ring_pa, self.capacity, begin..written)?;
        // The core went on meanwhile: what it has reached, or is writing over now, may be torn.
        let after = self.written(memory)?.unwrap_or(written);
        let sound = after.saturating_add(1).saturating_sub(self.capacity).clamp(begin, written);
        records.drain(..(sound - begin) as usize);
        let lost = sound - self.next;
        self.next = written;
        Ok(News { lost, records })
    }

    fn written(&self, memory: &Memory) -> Result<Option<u64>> {
        let header: Header = memory.read(self.header_pa)?;
        let known = header.magic == MAGIC && header.capacity == self.capacity;
        Ok((known && header.written >= self.next).then_some(header.written))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::trace::Kind;
    use zerocopy::{FromZeros, IntoBytes};

    const BASE: u64 = 0x4000_0000;
    const CAPACITY: u64 = 256;

    fn write(memory: &Memory, numbers: std::ops::Range<u64>) {
        for number in numbers.clone() {
            let record = Record::new(number, Kind::Wake, 0, 0);
            let at = BASE + HEADER_SIZE + number % CAPACITY * RECORD_SIZE;
            memory.write_bytes(at, record.as_bytes()).unwrap();
        }
        let header = Header {
            written: numbers.end,
            magic: MAGIC,
            capacity: CAPACITY,
            ..Header::new_zeroed()
        };
        memory.write_bytes(BASE, header.as_bytes()).unwrap();
    }

    fn times(news: &News) -> (u64, Option<u64>, Option<u64>) {
        let time = |record: &Record| record.time;
        (news.lost, news.records.first().map(time), news.records.last().map(time))
    }

    #[test]
    fn every_record_is_read_once_or_counted_as_lost() {
        let memory = Memory::create(BASE, 1 << 20).unwrap();
        let mut ring = Ring::new(BASE, CAPACITY * RECORD_SIZE);
        assert_eq!(times(&ring.poll(&memory).unwrap()), (0, None, None), "it has not begun");
        write(&memory, 0..200);
        assert_eq!(times(&ring.poll(&memory).unwrap()), (0, Some(0), Some(199)));
        assert_eq!(times(&ring.poll(&memory).unwrap()), (0, None, None));
        write(&memory, 200..300);
        assert_eq!(times(&ring.poll(&memory).unwrap()), (0, Some(200), Some(299)), "round its end");
        // The oldest record is the next to be written over, and may be torn.
        write(&memory, 300..300 + CAPACITY);
        assert_eq!(times(&ring.poll(&memory).unwrap()), (1, Some(301), Some(555)));
        write(&memory, 556..1_556);
        assert_eq!(times(&ring.poll(&memory).unwrap()), (745, Some(1_301), Some(1_555)));
    }
}
