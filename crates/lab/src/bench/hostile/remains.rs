//! What is in the memory that a machine has left, beside an adversary whose device does DMA where it is told.

use crate::machine::Memory;
use miette::{IntoDiagnostic, Result, WrapErr};
use object::elf::{PF_W, ProgramFlags};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSegment, SegmentFlags};
use std::ops::Range;
use std::path::Path;

/// What the device is told to write (`guests/probe/src/adversary/dma.rs`): halves of a word.
const FOREIGN: [u32; 2] = [0x6b1d_9e37, 0xd4a5_5eed];
/// Bytes that are looked at in one go.
const PIECE: usize = 1 << 20;
const WORD: usize = size_of::<u64>();

/// Returns what is not as it must be, a sentence each: what EL2 never writes is what `image` has, that is its code, its
/// constants, its tables and the guests' images; and nothing but the adversary's `own` memory, all of the board's `ram`
/// otherwise, holds what the device was to write.
///
/// # Errors
/// When memory or the image cannot be read.
pub fn look(
    memory: &Memory,
    image: &Path,
    ram: Range<u64>,
    own: &Range<u64>,
) -> Result<Vec<String>> {
    let file = std::fs::read(image).into_diagnostic().wrap_err("the image")?;
    let elf = ElfFile64::<object::Endianness>::parse(&*file).into_diagnostic()?;
    let mut all = Vec::new();
    for segment in elf.segments() {
        let SegmentFlags::Elf { p_flags, .. } = segment.flags() else { continue };
        if p_flags & PF_W == ProgramFlags(0) {
            let packed = segment.data().into_diagnostic()?;
            all.extend(changed(memory, segment.address(), packed)?);
        }
    }
    all.extend(written(memory, ram, own)?);
    Ok(all)
}

/// Returns where memory from `pa` on is first not what was `packed`.
fn changed(memory: &Memory, pa: u64, packed: &[u8]) -> Result<Option<String>> {
    let mut found = vec![0; packed.len()];
    memory.read_bytes(pa, &mut found)?;
    let first = found.iter().zip(packed).position(|(found, packed)| found != packed);
    Ok(first
        .map(|at| format!("memory at {:#x}, which EL2 never writes, has changed", pa + at as u64)))
}

/// Returns the first place outside of the adversary's own memory where what its device writes is found.
fn written(memory: &Memory, ram: Range<u64>, own: &Range<u64>) -> Result<Option<String>> {
    let [low, high] = FOREIGN.map(u32::to_le_bytes);
    let word = [low, high].concat();
    let mut piece = vec![0; PIECE];
    for pa in ram.step_by(PIECE) {
        memory.read_bytes(pa, &mut piece)?;
        let places = piece.chunks_exact(WORD).enumerate().filter(|(_, found)| *found == word);
        let mut places = places.map(|(at, _)| pa + (at * WORD) as u64);
        if let Some(at) = places.find(|at| !own.contains(at)) {
            return Ok(Some(format!("the adversary's device has written to {at:#x}")));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0x4000_0000;

    fn memory() -> Memory {
        Memory::create(BASE, 2 * PIECE as u64).unwrap()
    }

    #[test]
    fn what_is_packed_must_stay() {
        let (memory, packed) = (memory(), [1, 2, 3, 4]);
        memory.write_bytes(BASE + 0x100, &packed).unwrap();
        assert_eq!(changed(&memory, BASE + 0x100, &packed).unwrap(), None);
        memory.write_bytes(BASE + 0x102, &[9]).unwrap();
        let why = changed(&memory, BASE + 0x100, &packed).unwrap().unwrap();
        assert!(why.contains("0x40000102"), "{why}");
    }

    #[test]
    fn what_the_device_writes_is_found_in_all_memory_but_its_vms() {
        let (memory, end) = (memory(), BASE + 2 * PIECE as u64);
        let own = BASE + 0x1000..BASE + 0x2000;
        let write = |pa| {
            let halves = FOREIGN.map(u32::to_le_bytes).concat();
            memory.write_bytes(pa, &halves).unwrap();
        };
        write(BASE + 0x1000);
        write(BASE + 0x1ff8);
        assert_eq!(written(&memory, BASE..end, &own).unwrap(), None);
        write(end - 8);
        let why = written(&memory, BASE..end, &own).unwrap().unwrap();
        assert!(why.ends_with("0x401ffff8"), "{why}");
        write(BASE + 0x2000);
        let why = written(&memory, BASE..end, &own).unwrap().unwrap();
        assert!(why.ends_with("0x40002000"), "{why}");
    }

    /// The guest's word and this one are the same.
    #[test]
    fn the_guest_writes_this_word() {
        let root = crate::testing::root();
        let text = std::fs::read_to_string(root.join("guests/probe/src/adversary/dma.rs")).unwrap();
        let line = text.lines().find(|line| line.starts_with("const HALVES")).unwrap();
        let numbers = line.split("0x").skip(1).map(|rest| {
            let digits: String =
                rest.chars().filter(|c| *c != '_').take_while(char::is_ascii_hexdigit).collect();
            u32::from_str_radix(&digits, 16).unwrap()
        });
        assert_eq!(numbers.collect::<Vec<_>>(), FOREIGN);
    }
}
