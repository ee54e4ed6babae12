//! From ELF segments, which lie anywhere, to loads, which are aligned.

use super::guest::{GuestLoad, Piece};
use crate::image::{Bytes, ElfImage, ElfSegment};
use abi::system::LOAD_ALIGN;

/// The loads that fill a guest's memory with the segments of its ELF file:
/// straight from the file where a segment is aligned, else from a copy with
/// zeros before it. Segments that meet within one aligned line become one
/// load, so that no load overwrites what another brought.
pub(crate) fn loads(elf: &ElfImage, bytes: &Bytes) -> Vec<GuestLoad> {
    let mut loads: Vec<GuestLoad> = Vec::new();
    for segment in &elf.segments {
        let line = segment.address & !(LOAD_ALIGN - 1);
        let last = loads.last_mut();
        if let Some(last) = last.filter(|last| last.end() > line) {
            append(last, segment, bytes);
        } else if segment.address == line {
            let piece = Piece { bytes: bytes.clone(), range: segment.file.clone() };
            loads.push(GuestLoad { ipa: line, piece, zeros: zeros(segment) });
        } else {
            let mut first = GuestLoad { ipa: line, piece: Piece::own(Vec::new()), zeros: 0 };
            append(&mut first, segment, bytes);
            loads.push(first);
        }
    }
    loads
}

/// Memory the file does not fill.
fn zeros(segment: &ElfSegment) -> u64 {
    segment.size - segment.file.len() as u64
}

impl GuestLoad {
    /// One past the last address it fills.
    pub(crate) fn end(&self) -> u64 {
        self.ipa + self.piece.len() + self.zeros
    }
}

fn append(load: &mut GuestLoad, segment: &ElfSegment, bytes: &Bytes) {
    let mut all = load.piece.as_slice().to_vec();
    all.resize((segment.address - load.ipa) as usize, 0);
    all.extend_from_slice(&bytes[segment.file.clone()]);
    *load = GuestLoad { ipa: load.ipa, piece: Piece::own(all), zeros: zeros(segment) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// What memory from 0 to `size` holds after the loads; 0xee where nothing
    /// was loaded.
    fn memory(segments: &[(u64, &[u8], u64)], size: usize) -> (usize, Vec<u8>) {
        let (mut bytes, mut list) = (Vec::new(), Vec::new());
        for &(address, data, size) in segments {
            list.push(ElfSegment { address, file: bytes.len()..bytes.len() + data.len(), size });
            bytes.extend_from_slice(data);
        }
        let loads = loads(&ElfImage { entry: 0, segments: list }, &Arc::new(bytes));
        let mut memory = vec![0xee; size];
        for load in &loads {
            assert!(load.ipa.is_multiple_of(LOAD_ALIGN));
            let at = load.ipa as usize;
            let data = load.piece.as_slice();
            memory[at..at + data.len()].copy_from_slice(data);
            memory[at + data.len()..load.end() as usize].fill(0);
        }
        (loads.len(), memory)
    }

    #[test]
    fn aligned_segments_stay_apart() {
        let (count, memory) = memory(&[(0, &[1; 4], 8), (64, &[2; 4], 4)], 72);
        assert_eq!(count, 2);
        assert_eq!(memory[..9], [1, 1, 1, 1, 0, 0, 0, 0, 0xee]);
        assert_eq!(memory[63..69], [0xee, 2, 2, 2, 2, 0xee]);
    }

    #[test]
    fn an_odd_address_brings_zeros_before_it() {
        let (count, memory) = memory(&[(70, &[3; 2], 3)], 80);
        assert_eq!(count, 1);
        assert_eq!(memory[63..74], [0xee, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0xee]);
    }

    #[test]
    fn segments_within_one_line_become_one_load_and_lose_nothing() {
        let segments: [(u64, &[u8], u64); 3] =
            [(0, &[1; 66], 68), (72, &[2; 2], 60), (140, &[3], 1)];
        let (count, memory) = memory(&segments, 144);
        assert_eq!(count, 1);
        assert_eq!(memory[65..75], [1, 0, 0, 0, 0, 0, 0, 2, 2, 0]);
        assert_eq!(memory[74..140], [0; 66]);
        assert_eq!(memory[140..142], [3, 0xee]);
    }
}
