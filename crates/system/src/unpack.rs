//! Takes a bootable file apart again, and checks it as EL2 would.

use crate::pack::sha256;
use abi::system::{Invalid, Part, Region, System};
use object::Endianness;
use object::elf::{FileHeader64, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use std::fmt::{self, Display};
use zerocopy::FromBytes;

/// A bootable file, taken apart.
#[derive(Clone, Debug)]
pub struct Unpacked<'a> {
    /// Where the boot processor begins.
    pub entry: u64,
    /// The tables.
    pub tables: Box<System>,
    /// What is loaded: physical address and size in memory, the bytes of the
    /// file, and whether it may be written and executed. The bundle is the last that has bytes;
    /// behind it stands memory that VMs share, which is only cleared.
    pub segments: Vec<Segment<'a>>,
}

/// A part that is loaded.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// Physical memory.
    pub region: Region,
    /// What fills its beginning; the rest is zero.
    pub data: &'a [u8],
    /// ELF `p_flags`.
    pub flags: u32,
}

/// Why a file is no packed system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnpackError {
    /// It is no ELF file of the right form.
    Container(String),
    /// EL2 would refuse its tables.
    Tables(Invalid),
    /// EL2 would refuse a part of it: it says so.
    Damaged(String),
}

impl Display for UnpackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Container(why) => write!(f, "not a packed system: {why}"),
            Self::Tables(invalid) => f.write_str(invalid.message()),
            Self::Damaged(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for UnpackError {}

/// Takes the contents of a bootable file apart.
///
/// # Errors
/// When it is no packed system, or one that EL2 would refuse.
pub fn unpack(file: &[u8]) -> Result<Unpacked<'_>, UnpackError> {
    let (entry, segments) = segments(file).map_err(UnpackError::Container)?;
    let bundle = segments.iter().rfind(|segment| !segment.data.is_empty());
    let (region, bundle) = bundle.map_or((None, &[][..]), |one| (Some(one.region), one.data));
    let (tables, _) = System::read_from_prefix(bundle)
        .map_err(|_| UnpackError::Container("it has no bundle".to_owned()))?;
    let tables = Box::new(tables);
    let refuse = UnpackError::Tables;
    tables.header.identify().map_err(refuse)?;
    if tables.digest(|bytes| sha256(bytes)) != tables.header.tables_sha256 {
        return Err(refuse(Invalid::TablesDigest));
    }
    tables.validate().map_err(refuse)?;
    if region != Some(tables.header.bundle()) {
        return Err(refuse(Invalid::Bundle));
    }
    let unpacked = Unpacked { entry, tables, segments };
    let sound =
        |part: &&Part| unpacked.at(part.region()).map(|at| sha256([at])) == Some(part.sha256);
    if let Some(part) = unpacked.tables.parts().iter().find(|part| !sound(part)) {
        return Err(UnpackError::Damaged(unpacked.tables.damaged(part).to_string()));
    }
    let word = |pa| {
        let bytes = unpacked.at(Region::new(pa, 8)).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    };
    unpacked.tables.check_stage1(&word).map_err(refuse)?;
    unpacked.tables.check_stage2(&word).map_err(refuse)?;
    Ok(unpacked)
}

fn segments(file: &[u8]) -> Result<(u64, Vec<Segment<'_>>), String> {
    let text = |error: object::read::Error| error.to_string();
    let header = FileHeader64::<Endianness>::parse(file).map_err(text)?;
    let endian = header.endian().map_err(text)?;
    let programs = header.program_headers(endian, file).map_err(text)?;
    let segment = |program: &object::elf::ProgramHeader64<Endianness>| {
        let data = program.data(endian, file).map_err(|()| "it is cut short".to_owned())?;
        let region = Region::new(program.p_paddr(endian), program.p_memsz(endian));
        Ok(Segment { region, data, flags: program.p_flags(endian).0 })
    };
    let loads = programs.iter().filter(|program| program.p_type(endian) == PT_LOAD);
    Ok((header.e_entry(endian), loads.map(segment).collect::<Result<_, String>>()?))
}

impl<'a> Unpacked<'a> {
    /// Bytes of the file that will lie at those physical addresses.
    #[must_use]
    pub fn at(&self, wanted: Region) -> Option<&'a [u8]> {
        self.segments.iter().find_map(|segment| {
            let offset = usize::try_from(wanted.start.checked_sub(segment.region.start)?).ok()?;
            segment.data.get(offset..offset.checked_add(usize::try_from(wanted.size).ok()?)?)
        })
    }
}
