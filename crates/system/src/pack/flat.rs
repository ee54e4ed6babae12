//! The system as memory has it before the first instruction: bytes without holes.
//!
//! Loaders of flat files clear nothing. So what is to be cleared is in the file, as zeros: memory that
//! VMs share, too, and what lies before it.

use super::container::{Chunk, Container, Part};
use crate::image::Header;
use abi::system::{PAGE_SIZE, Region};
use std::io::{self, Write};
use zerocopy::IntoBytes;

/// Memory from the hypervisor's first byte to the last that is loaded or cleared.
#[derive(Clone, Debug)]
pub(super) struct Flat<'a> {
    /// Physical address of the first instruction.
    entry: u64,
    /// The memory.
    pub(super) region: Region,
    parts: Vec<Part<'a>>,
}

/// The packer's regions end below the end of all addresses.
const fn end(region: Region) -> u64 {
    region.start + region.size
}

impl<'a> Flat<'a> {
    /// Lays out what an ELF file has.
    ///
    /// # Panics
    /// When two parts overlap.
    pub(super) fn of(container: Container<'a>) -> Self {
        let Container { entry, mut parts } = container;
        parts.sort_by_key(|part| part.region.start);
        let apart = |pair: &[Part<'_>]| end(pair[0].region) <= pair[1].region.start;
        assert!(parts.windows(2).all(apart), "what is loaded does not overlap");
        let start = parts.first().map_or(0, |part| part.region.start);
        let end = parts.last().map_or(start, |part| end(part.region));
        Self { entry, region: Region::new(start, end - start), parts }
    }

    /// One past the last byte.
    pub(super) const fn end(&self) -> u64 {
        end(self.region)
    }

    /// Where an Image lies, whose header has a page before the hypervisor: its first bytes are the
    /// vector table, which is not to be changed.
    pub(super) const fn image_region(&self) -> Region {
        Region::new(self.region.start - PAGE_SIZE, self.region.size + PAGE_SIZE)
    }

    /// Writes an arm64 Image for a board whose RAM begins at `ram_pa`.
    pub(super) fn write_image(&self, ram_pa: u64, to: &mut impl Write) -> io::Result<()> {
        let Region { start, size } = self.image_region();
        let header = Header::new(self.entry - start, start - ram_pa, size);
        let header = header.as_bytes();
        to.write_all(header)?;
        let mut result = Ok(());
        let mut take = |bytes: &[u8]| {
            if result.is_ok() {
                result = to.write_all(bytes);
            }
        };
        Chunk::Zeros(PAGE_SIZE - header.len() as u64).feed(&mut take);
        self.feed(&mut take);
        result?;
        to.flush()
    }

    /// Hands out all bytes, in pieces.
    fn feed(&self, take: &mut impl FnMut(&[u8])) {
        let mut position = self.region.start;
        for part in &self.parts {
            Chunk::Zeros(part.region.start - position).feed(take);
            part.chunks.iter().for_each(|chunk| chunk.feed(take));
            Chunk::Zeros(part.region.size - part.file_size()).feed(take);
            position = end(part.region);
        }
    }
}
