//! The machine's memory, which the host reads while the machine runs.
//!
//! A file without a name (memfd) that QEMU maps and we read with `pread`: no
//! call into the guest, no stop, no unsafe mapping, and nothing to remove
//! afterwards however we end.

use miette::{Result, miette};
use rustix::fs::MemfdFlags;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use zerocopy::{FromBytes, IntoBytes};

/// Physical memory, beginning at some physical address.
#[derive(Debug)]
pub struct Memory {
    file: File,
    base_pa: u64,
    size: u64,
}

impl Memory {
    /// Fresh memory of `size` bytes, all zero, that begins at physical address
    /// `base_pa`. It costs what is touched.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn create(base_pa: u64, size: u64) -> io::Result<Self> {
        let file: File = rustix::fs::memfd_create("cassata-ram", MemfdFlags::CLOEXEC)?.into();
        file.set_len(size)?;
        Ok(Self { file, base_pa, size })
    }

    /// Where another process of the same user can open it, as long as this
    /// value lives.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }

    /// Reads `bytes.len()` bytes at physical address `pa`. An aligned 64-bit
    /// word is seen whole; two words may be of different instants.
    ///
    /// # Errors
    /// When they are not within the machine's memory, or the system refuses.
    pub fn read_bytes(&self, pa: u64, bytes: &mut [u8]) -> Result<()> {
        let offset = self.offset(pa, bytes.len() as u64)?;
        self.file.read_exact_at(bytes, offset).map_err(refused)
    }

    /// Reads a value at physical address `pa`.
    ///
    /// # Errors
    /// As [`Memory::read_bytes`].
    pub fn read<T: FromBytes + IntoBytes>(&self, pa: u64) -> Result<T> {
        let mut value = T::new_zeroed();
        self.read_bytes(pa, value.as_mut_bytes())?;
        Ok(value)
    }

    /// Reads values by number from a ring of so many, which begins at physical address `pa`; not
    /// more of them than it holds.
    ///
    /// # Errors
    /// As [`Memory::read_bytes`].
    pub fn read_ring<T>(&self, pa: u64, capacity: u64, numbers: Range<u64>) -> Result<Vec<T>>
    where
        T: FromBytes + IntoBytes + Clone,
    {
        let mut all = vec![T::new_zeroed(); (numbers.end - numbers.start) as usize];
        let place = numbers.start % capacity;
        let before_end = ((capacity - place) as usize).min(all.len());
        let (first, second) = all.split_at_mut(before_end);
        self.read_bytes(pa + place * size_of::<T>() as u64, first.as_mut_bytes())?;
        self.read_bytes(pa, second.as_mut_bytes())?;
        Ok(all)
    }

    /// Writes `bytes` at physical address `pa`, for tests and for tools that
    /// prepare memory before a machine starts.
    ///
    /// # Errors
    /// As [`Memory::read_bytes`].
    pub fn write_bytes(&self, pa: u64, bytes: &[u8]) -> Result<()> {
        let offset = self.offset(pa, bytes.len() as u64)?;
        self.file.write_all_at(bytes, offset).map_err(refused)
    }

    fn offset(&self, pa: u64, size: u64) -> Result<u64> {
        pa.checked_sub(self.base_pa)
            .filter(|offset| offset.checked_add(size).is_some_and(|end| end <= self.size))
            .ok_or_else(|| {
                miette!("physical address {pa:#x} (+{size:#x}) is outside the machine's memory")
            })
    }
}

fn refused(cause: io::Error) -> miette::Report {
    miette!("cannot access the machine's memory: {cause}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_opening_of_the_path_is_the_same_memory() {
        let memory = Memory::create(0x4000_0000, 0x2000).unwrap();
        let other = File::options().read(true).write(true).open(memory.path()).unwrap();
        other.write_all_at(&0x0123_4567_89ab_cdef_u64.to_le_bytes(), 0x1008).unwrap();
        assert_eq!(memory.read::<u64>(0x4000_1008).unwrap(), 0x0123_4567_89ab_cdef);
    }

    #[test]
    fn reads_outside_are_refused() {
        let memory = Memory::create(0x4000_0000, 0x1000).unwrap();
        assert!(memory.read::<u64>(0x4000_0ff8).is_ok());
        for pa in [0, 0x3fff_ffff, 0x4000_0ff9, u64::MAX] {
            let error = memory.read::<u64>(pa).unwrap_err();
            assert!(error.to_string().contains("is outside"), "{pa:#x}: {error}");
        }
    }

    #[test]
    fn a_ring_is_read_across_its_end() {
        let memory = Memory::create(0x1000, 0x1000).unwrap();
        for number in 5..9_u64 {
            let place = 0x1100 + number % 4 * 8;
            memory.write_bytes(place, &number.to_le_bytes()).unwrap();
        }
        let read = |numbers| memory.read_ring::<u64>(0x1100, 4, numbers).unwrap();
        assert_eq!(read(5..9), [5, 6, 7, 8]);
        assert_eq!((read(6..8), read(7..7)), (vec![6, 7], vec![]));
    }
}
