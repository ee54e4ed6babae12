//! ELF kernels.

use super::Unfit;
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, FileKind};
use std::ops::Range;

/// An ELF file that can be loaded and entered with the MMU off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElfImage {
    /// Guest-physical address of the first instruction.
    pub entry: u64,
    /// What to load, in ascending order of address; nothing overlaps.
    pub segments: Vec<ElfSegment>,
}

/// A piece of memory an ELF file fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElfSegment {
    /// Guest-physical address (`p_paddr`).
    pub address: u64,
    /// Bytes of the file.
    pub file: Range<usize>,
    /// Bytes of memory; what the file does not fill is zero.
    pub size: u64,
}

impl ElfSegment {
    /// One past its last address.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.address.saturating_add(self.size)
    }
}

pub(super) fn has_magic(bytes: &[u8]) -> bool {
    bytes.starts_with(&elf::ELFMAG)
}

pub(super) fn read(bytes: &[u8]) -> Result<ElfImage, Unfit> {
    if !has_magic(bytes) {
        let hint = super::foreign::explain(bytes).hint;
        return Err(Unfit::new("the file is no ELF file", hint));
    }
    if FileKind::parse(bytes) == Ok(FileKind::Elf32) {
        return Err(Unfit::new("the ELF file is for a 32-bit machine", FOR_AARCH64));
    }
    let damaged = |error| Unfit::new(format!("the ELF file is damaged: {error}"), "build it again");
    let header = FileHeader64::<Endianness>::parse(bytes).map_err(damaged)?;
    let endian = header.endian().map_err(damaged)?;
    check_machine(header, endian)?;
    let programs = header.program_headers(endian, bytes).map_err(damaged)?;
    let loads =
        || programs.iter().filter(|p| p.p_type(endian) == elf::PT_LOAD && p.p_memsz(endian) > 0);
    let mut segments = loads()
        .map(|program| {
            let data = program
                .data(endian, bytes)
                .map_err(|()| Unfit::new("the ELF file is cut short", "build or copy it again"))?;
            segment(
                program.p_paddr(endian),
                data.len(),
                program.p_offset(endian),
                program.p_memsz(endian),
            )
        })
        .collect::<Result<Vec<_>, _>>()?;
    segments.sort_by_key(|segment| segment.address);
    if let Some(pair) = segments.windows(2).find(|pair| pair[0].end() > pair[1].address) {
        let message = format!("two segments of the ELF file overlap at {:#x}", pair[1].address);
        return Err(Unfit::new(message, "check the linker script's load addresses"));
    }
    // e_entry is virtual; the guest begins with its MMU off.
    let entry = header.e_entry(endian);
    let within = |p: &&ProgramHeader64<Endianness>| {
        let at = entry.checked_sub(p.p_vaddr(endian));
        at.is_some_and(|at| at < p.p_filesz(endian))
    };
    let load = loads().find(within).ok_or_else(|| {
        let message = format!("the ELF file's entry {entry:#x} lies in none of its segments");
        Unfit::new(message, "check ENTRY() in the linker script")
    })?;
    let entry = (entry - load.p_vaddr(endian)).wrapping_add(load.p_paddr(endian));
    Ok(ElfImage { entry, segments })
}

const FOR_AARCH64: &str = "build it for AArch64, little-endian (EM_AARCH64)";

fn check_machine(header: &FileHeader64<Endianness>, endian: Endianness) -> Result<(), Unfit> {
    let machine = header.e_machine(endian);
    if machine != elf::EM_AARCH64 || endian != Endianness::Little {
        let message = format!("the ELF file is for another machine (e_machine {})", machine.0);
        return Err(Unfit::new(message, FOR_AARCH64));
    }
    if header.e_type(endian) != elf::ET_EXEC {
        let hint = "link it statically at fixed addresses (ET_EXEC)";
        return Err(Unfit::new("the ELF file is no fixed-address executable", hint));
    }
    Ok(())
}

fn segment(address: u64, filled: usize, offset: u64, size: u64) -> Result<ElfSegment, Unfit> {
    // Where nothing is in the file its offset means nothing, and may be anywhere.
    let start = if filled == 0 { 0 } else { usize::try_from(offset).unwrap_or(usize::MAX) };
    let sound = (filled as u64) <= size && address.checked_add(size).is_some();
    if !sound {
        return Err(Unfit::new(
            "a segment of the ELF file has an impossible size",
            "build it again",
        ));
    }
    Ok(ElfSegment { address, file: start..start.saturating_add(filled), size })
}
