//! Relocations of a static-pie: every word that holds an address of its own
//! gets the base added (ELF for the Arm 64-bit Architecture, AAELF64, 5.7.16).

use super::error::PackError;
use super::hypervisor::Segment;
use abi::system::Region;
use object::Endianness;
use object::elf::{self, ProgramHeader64, Rela64};
use object::pod;
use object::read::elf::{ProgramHeader, Rela};

const HINT: &str = "link the hypervisor with -static -pie --no-dynamic-linker, and without \
                    --pack-dyn-relocs";

/// Applies all relocations to segments that lie at `base` already.
pub(super) fn relocate(
    programs: &[ProgramHeader64<Endianness>],
    endian: Endianness,
    file: &[u8],
    base: u64,
    segments: &mut [Segment],
) -> Result<(), PackError> {
    let Some(table) = table(programs, endian, file)? else { return Ok(()) };
    let bytes = in_file(programs, endian, file, table);
    let bytes = bytes.ok_or_else(|| broken("its relocation table is in no segment"))?;
    let count = bytes.len() / size_of::<Rela64<Endianness>>();
    let (relas, _) = pod::slice_from_bytes::<Rela64<Endianness>>(bytes, count)
        .map_err(|()| broken("its relocation table is cut short"))?;
    for rela in relas {
        match rela.r_type(endian, false) {
            elf::R_AARCH64_NONE => {}
            elf::R_AARCH64_RELATIVE => {
                let value = base.wrapping_add_signed(rela.r_addend(endian));
                let at = base.wrapping_add(rela.r_offset(endian));
                let word = Region::new(at, 8);
                let word = segments.iter_mut().find_map(|segment| segment.bytes_at(word));
                let word = word.ok_or_else(|| broken("a relocation lies outside its data"))?;
                word.copy_from_slice(&value.to_le_bytes());
            }
            kind => return Err(broken(&format!("it needs a relocation of type {}", kind.0))),
        }
    }
    Ok(())
}

fn broken(what: &str) -> PackError {
    PackError::new(format!("the hypervisor cannot be moved to its address: {what}"), HINT)
}

/// Where PT_DYNAMIC says that the relocations are; `None` when there are none.
fn table(
    programs: &[ProgramHeader64<Endianness>],
    endian: Endianness,
    file: &[u8],
) -> Result<Option<Region>, PackError> {
    let mut region = Region::new(0, 0);
    for program in programs {
        let dynamic = program.dynamic(endian, file).map_err(|_| broken("PT_DYNAMIC is damaged"))?;
        for entry in dynamic.unwrap_or_default() {
            let value = entry.d_val.get(endian);
            match entry.d_tag.get(endian) {
                elf::DT_NULL => break,
                elf::DT_RELA => region.start = value,
                elf::DT_RELASZ => region.size = value,
                elf::DT_RELR | elf::DT_REL => {
                    return Err(broken("it has relocations not of RELA form"));
                }
                elf::DT_JMPREL => return Err(broken("it has a procedure linkage table")),
                _ => {}
            }
        }
    }
    Ok((region.size > 0).then_some(region))
}

/// The bytes that the file has for a region, wherever that is loaded.
fn in_file<'file>(
    programs: &[ProgramHeader64<Endianness>],
    endian: Endianness,
    file: &'file [u8],
    region: Region,
) -> Option<&'file [u8]> {
    let mut programs = programs.iter().filter(|program| program.p_type(endian) == elf::PT_LOAD);
    let program = programs.find(|program| {
        Region::new(program.p_vaddr(endian), program.p_filesz(endian)).contains(region)
    })?;
    let start = (region.start - program.p_vaddr(endian)) as usize;
    program.data(endian, file).ok()?.get(start..start + region.size as usize)
}
