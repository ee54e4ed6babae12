//! The hypervisor: a static position-independent ELF file, moved here to the
//! address the board gives it, so that EL2 starts without relocating itself.

use super::error::PackError;
use super::{relocate, signature};
use crate::paging::stage1::Kind;
use abi::system::{HYPERVISOR_SIZE, PAGE_SIZE, Region};
use object::Endianness;
use object::elf::{self, FileHeader64, PF_W, PF_X, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader};

/// The hypervisor at its final address.
#[derive(Clone, Debug)]
pub(crate) struct Hypervisor {
    pub(crate) entry: u64,
    pub(crate) segments: Vec<Segment>,
    /// Where the public key belongs, if the build checks signatures.
    pub(super) key: Option<u64>,
}

/// A part of it.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) region: Region,
    pub(crate) data: Vec<u8>,
    pub(crate) flags: elf::ProgramFlags,
}

pub(super) const REBUILD: &str = "build it again from crates/el2, as a static-pie linked at 0";

fn damaged(error: object::read::Error) -> PackError {
    PackError::new(format!("the hypervisor's ELF file is damaged: {error}"), REBUILD)
}

/// Reads the hypervisor's ELF file and moves it to `base`.
pub(crate) fn read(file: &[u8], base: u64) -> Result<Hypervisor, PackError> {
    let header = FileHeader64::<Endianness>::parse(file).map_err(damaged)?;
    let endian = header.endian().map_err(damaged)?;
    if header.e_machine(endian) != elf::EM_AARCH64 || endian != Endianness::Little {
        return Err(PackError::new("the hypervisor is not built for AArch64", REBUILD));
    }
    if header.e_type(endian) != elf::ET_DYN {
        let message = "the hypervisor is not position-independent (ET_DYN)";
        return Err(PackError::new(message, REBUILD));
    }
    let programs = header.program_headers(endian, file).map_err(damaged)?;
    let mut segments = segments(programs, endian, file, base)?;
    relocate::relocate(programs, endian, file, base, &mut segments)?;
    let entry = base.saturating_add(header.e_entry(endian));
    let mut code = segments.iter().filter(|segment| segment.kind() == Kind::Code);
    if !code.any(|segment| segment.region.contains(Region::new(entry, 4))) {
        let message = format!("the hypervisor's entry {entry:#x} is in no executable segment");
        return Err(PackError::new(message, REBUILD));
    }
    let key = signature::place(file).map_err(damaged)?.map(|at| base.saturating_add(at));
    Ok(Hypervisor { entry, segments, key })
}

/// Returns how many bytes of the hypervisor's ELF file are loaded.
///
/// # Errors
/// When it is not what it must be.
pub fn image_size(file: &[u8]) -> Result<u64, PackError> {
    let hypervisor = read(file, /* base */ 0)?;
    Ok(hypervisor.segments.iter().map(|segment| segment.data.len() as u64).sum())
}

/// The segment that has the dynamic section, and with it the relocations, is for the host: it is
/// not loaded.
fn segments(
    programs: &[ProgramHeader64<Endianness>],
    endian: Endianness,
    file: &[u8],
    base: u64,
) -> Result<Vec<Segment>, PackError> {
    let mut segments = Vec::new();
    let within = |program: &ProgramHeader64<_>| {
        Region::new(program.p_vaddr(endian), program.p_memsz(endian))
    };
    let dynamic = programs.iter().find(|program| program.p_type(endian) == elf::PT_DYNAMIC);
    for program in programs.iter().filter(|program| program.p_type(endian) == elf::PT_LOAD) {
        if dynamic.is_some_and(|dynamic| within(program).contains(within(dynamic))) {
            continue;
        }
        let data = program
            .data(endian, file)
            .map_err(|()| PackError::new("the hypervisor's ELF file is cut short", REBUILD))?;
        let within = within(program);
        if !Region::new(0, HYPERVISOR_SIZE).contains(within) || data.len() as u64 > within.size {
            let end = within.start.saturating_add(within.size);
            let message = format!(
                "the hypervisor ends at {end:#x}, behind its {HYPERVISOR_SIZE:#x} bytes of memory"
            );
            return Err(PackError::new(message, "make it smaller: abi::system::HYPERVISOR_SIZE"));
        }
        let region = Region::new(base + within.start, within.size);
        segments.push(Segment { region, data: data.to_vec(), flags: program.p_flags(endian) });
    }
    segments.sort_by_key(|segment| segment.region.start);
    for segment in &segments {
        if segment.flags.0 & PF_W.0 != 0 && segment.flags.0 & PF_X.0 != 0 {
            let message = "a segment of the hypervisor is both writable and executable";
            return Err(PackError::new(message, REBUILD));
        }
    }
    for pair in segments.windows(2) {
        if pair[0].pages().overlaps(pair[1].pages()) && pair[0].kind() != pair[1].kind() {
            let message = format!(
                "two segments of the hypervisor with different rights share the page at {:#x}",
                pair[1].pages().start - base
            );
            return Err(PackError::new(message, "align them to 4 KiB in its linker script"));
        }
    }
    Ok(segments)
}

impl Segment {
    /// What EL2 may do with it.
    pub(crate) fn kind(&self) -> Kind {
        if self.flags.0 & PF_X.0 != 0 {
            Kind::Code
        } else if self.flags.0 & PF_W.0 != 0 {
            Kind::Data
        } else {
            Kind::Constant
        }
    }

    /// Returns the bytes of the file's part of it that lie there; none if not all of them do.
    pub(super) fn bytes_at(&mut self, region: Region) -> Option<&mut [u8]> {
        if !Region::new(self.region.start, self.data.len() as u64).contains(region) {
            return None;
        }
        let start = (region.start - self.region.start) as usize;
        self.data.get_mut(start..start + region.size as usize)
    }

    /// The whole pages it lies in.
    pub(crate) fn pages(&self) -> Region {
        let start = self.region.start & !(PAGE_SIZE - 1);
        let end = (self.region.start + self.region.size).next_multiple_of(PAGE_SIZE);
        Region::new(start, end - start)
    }
}

impl Hypervisor {
    /// What is mapped of its memory, by kind: the segments. Pages between them, and behind the
    /// last one, are not mapped; below each stack there is one.
    pub(crate) fn views(&self) -> Vec<(Region, Kind)> {
        let mut views: Vec<(Region, Kind)> = Vec::new();
        let mut end = 0;
        for segment in &self.segments {
            let pages = segment.pages();
            let start = pages.start.max(end);
            let last = pages.start + pages.size;
            if last > start {
                views.push((Region::new(start, last - start), segment.kind()));
                end = last;
            }
        }
        views
    }
}
