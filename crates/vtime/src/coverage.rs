//! Which instructions of an address range were executed.
//!
//! The record says it of single instructions, not of the blocks that QEMU translates: an
//! exception leaves a block in its middle, and what follows there was not executed. An
//! instruction that takes an exception itself counts as executed.

use crate::stats::replace;
use std::fs;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Bytes of an instruction (Arm DDI 0487, section C2.1: A64 instructions have a fixed length).
pub const INSTRUCTION: u64 = 4;

/// What to record, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Physical addresses of the instructions; both ends are multiples of
    /// [`INSTRUCTION`].
    pub range: Range<u64>,
    /// The file for the record.
    pub file: PathBuf,
}

impl Coverage {
    /// The longest range accepted, in bytes: the instrument keeps eight bytes for each
    /// instruction and core.
    pub const MAX_BYTES: u64 = 4 << 20;

    /// How many instructions the range has.
    #[must_use]
    pub fn instructions(&self) -> usize {
        // At most a million.
        ((self.range.end - self.range.start) / INSTRUCTION) as usize
    }

    /// The index of the instruction at a physical address, if that is in the range.
    #[must_use]
    pub fn index(&self, address: u64) -> Option<usize> {
        let inside = self.range.contains(&address);
        inside.then(|| ((address - self.range.start) / INSTRUCTION) as usize)
    }
}

/// The record: a bit for each instruction of a range, of which the first is bit 0 of the
/// first byte. The file has nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    bytes: Vec<u8>,
}

impl Executed {
    /// Returns a record of so many instructions, of which none was executed.
    #[must_use]
    pub fn none(instructions: usize) -> Self {
        Self { bytes: vec![0; instructions.div_ceil(8)] }
    }

    /// Records that the instruction with this index was executed.
    ///
    /// # Panics
    /// If the record has no such instruction.
    pub fn insert(&mut self, index: usize) {
        self.bytes[index / 8] |= 1 << (index % 8);
    }

    /// Returns true if the instruction with this index was executed; false as well if the
    /// record has none.
    #[must_use]
    pub fn contains(&self, index: usize) -> bool {
        self.bytes.get(index / 8).is_some_and(|byte| byte & 1 << (index % 8) != 0)
    }

    /// How many instructions were executed.
    #[must_use]
    pub fn count(&self) -> usize {
        self.bytes.iter().map(|byte| byte.count_ones() as usize).sum()
    }

    /// Adds what another record of the same range has.
    ///
    /// # Errors
    /// If the other record is of another number of instructions.
    pub fn merge(&mut self, other: &Self) -> io::Result<()> {
        if self.bytes.len() != other.bytes.len() {
            return Err(io::Error::other("it is of another number of instructions"));
        }
        for (byte, others) in self.bytes.iter_mut().zip(&other.bytes) {
            *byte |= others;
        }
        Ok(())
    }

    /// Writes the file so that a reader sees either the old or the new one.
    ///
    /// # Errors
    /// As [`crate::stats::Statistics::write`].
    pub fn write(&self, path: &Path) -> io::Result<()> {
        replace(path, |file| file.write_all(&self.bytes))
    }

    /// Reads the file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(path: &Path) -> io::Result<Self> {
        Ok(Self { bytes: fs::read(path)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_instruction_of_the_range_has_an_index_and_nothing_else_has() {
        let coverage = Coverage { range: 0x1000..0x1010, file: PathBuf::new() };
        assert_eq!(coverage.instructions(), 4);
        assert_eq!(
            [0xffc, 0x1000, 0x100c, 0x1010].map(|at| coverage.index(at)),
            [None, Some(0), Some(3), None]
        );
    }

    #[test]
    fn a_record_is_written_read_and_added() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("coverage");
        let (mut one, mut other) = (Executed::none(11), Executed::none(11));
        one.insert(0);
        other.insert(10);
        one.write(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), [1, 0]);
        one.merge(&other).unwrap();
        one.write(&path).unwrap();
        let read = Executed::read(&path).unwrap();
        assert_eq!(read, one);
        let found: Vec<_> = (0..20).filter(|&index| read.contains(index)).collect();
        assert_eq!((found, read.count()), (vec![0, 10], 2));
        assert!(one.merge(&Executed::none(17)).is_err());
    }
}
