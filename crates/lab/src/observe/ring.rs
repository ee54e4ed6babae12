//! Follows the ring of a report area and tells when it was too slow.

use crate::machine::Memory;
use abi::report::{Header, MAGIC, Sample};
use miette::Result;

const HEADER_SIZE: u64 = size_of::<Header>() as u64;
const SAMPLE_SIZE: u64 = size_of::<Sample>() as u64;

/// Follows one report area.
#[derive(Clone, Debug)]
pub struct RingFollower {
    pa: u64,
    size: u64,
    next: u64,
    /// Samples that were overwritten before they were read.
    pub lost: u64,
    /// Times the guest began its report anew.
    pub restarts: u64,
}

impl RingFollower {
    /// Follows the area of `size` bytes at physical address `pa`.
    #[must_use]
    pub fn new(pa: u64, size: u64) -> Self {
        Self { pa, size, next: 0, lost: 0, restarts: 0 }
    }

    /// Appends the samples that are new to `samples` and answers the header as
    /// it stood behind them; `None` while the guest has not initialised the
    /// area, or has written a header that makes no sense.
    ///
    /// # Errors
    /// When memory cannot be read.
    pub fn poll(&mut self, memory: &Memory, samples: &mut Vec<Sample>) -> Result<Option<Header>> {
        let Some(header) = self.header(memory)? else { return Ok(None) };
        if header.written < self.next {
            self.restarts += 1;
            self.next = 0;
        }
        let begin = self.next.max(header.written.saturating_sub(header.capacity));
        let mut new: Vec<Sample> =
            memory.read_ring(self.pa + HEADER_SIZE, header.capacity, begin..header.written)?;
        // The guest went on meanwhile: what it has reached or is writing over
        // now may be torn.
        let Some(after) = self.header(memory)? else { return Ok(None) };
        let sound = after
            .written
            .saturating_add(1)
            .saturating_sub(after.capacity)
            .clamp(begin, header.written);
        self.lost = self.lost.saturating_add(sound - self.next);
        samples.extend(new.drain((sound - begin) as usize..));
        self.next = header.written;
        Ok(Some(Header { written: header.written, ..after }))
    }

    fn header(&self, memory: &Memory) -> Result<Option<Header>> {
        if self.size < HEADER_SIZE {
            return Ok(None);
        }
        let header: Header = memory.read(self.pa)?;
        let fits = header.capacity <= (self.size - HEADER_SIZE) / SAMPLE_SIZE;
        let sound = header.magic == MAGIC && header.capacity > 0 && fits && header.counter_hz > 0;
        Ok(sound.then_some(header))
    }
}
