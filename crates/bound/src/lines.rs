//! The source of an instruction, as the debug information tells it.

use crate::Error;
use addr2line::{Context, gimli};
use gimli::{EndianSlice, LittleEndian};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};
use std::fmt;

/// A function that an instruction belongs to, inlined ones included.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frame {
    /// The function's name.
    pub function: String,
    /// Its file, from the project's root where it is below.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// The debug information of an image.
pub struct Lines<'a> {
    context: Context<EndianSlice<'a, LittleEndian>>,
}

impl<'a> Lines<'a> {
    /// Reads the debug information of the ELF file.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn parse(file: &'a [u8]) -> Result<Self, Error> {
        let wrong = |error: object::Error| Error::Image(error.to_string());
        let elf = ElfFile64::<object::LittleEndian>::parse(file).map_err(wrong)?;
        let section = |id: gimli::SectionId| {
            let section = elf.section_by_name(id.name());
            let data = section.map_or(Ok(&[][..]), |section| section.data());
            data.map(|data| EndianSlice::new(data, LittleEndian)).map_err(|_| gimli::Error::Io)
        };
        let context = gimli::Dwarf::load(section).and_then(Context::from_dwarf);
        let context = context.map_err(|error| Error::Image(error.to_string()))?;
        Ok(Self { context })
    }

    /// Returns the functions that an instruction belongs to, the innermost first.
    #[must_use]
    pub fn frames(&self, address: u64) -> Vec<Frame> {
        let mut frames = Vec::new();
        let Ok(mut found) = self.context.find_frames(address).skip_all_loads() else {
            return frames;
        };
        while let Ok(Some(frame)) = found.next() {
            let name = frame.function.and_then(|name| Some(name.raw_name().ok()?.into_owned()));
            let name = name.unwrap_or_default();
            let place = frame.location;
            frames.push(Frame {
                function: format!("{:#}", rustc_demangle::demangle(&name)),
                file: place.as_ref().and_then(|at| at.file).map_or_else(String::new, short),
                line: place.as_ref().and_then(|at| at.line).unwrap_or(0),
                column: place.as_ref().and_then(|at| at.column).unwrap_or(0),
            });
        }
        frames
    }

    /// Returns the line of the project's own source that an instruction comes from: where it
    /// belongs to the language's library, the line that calls that.
    #[must_use]
    pub fn place(&self, address: u64) -> String {
        let frames = self.frames(address);
        let own = frames.iter().find(|frame| frame.file.starts_with("crates/"));
        own.or(frames.first()).map_or_else(|| format!("{address:#x}"), Frame::to_string)
    }
}

/// Cuts what is before the project's root, or before the library's crates.
fn short(path: &str) -> String {
    for root in ["/crates/", "/library/"] {
        if let Some(at) = path.rfind(root) {
            return path[at + 1..].into();
        }
    }
    path.into()
}
