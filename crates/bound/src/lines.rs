//! The source of an instruction, as the debug information tells it.

use crate::Error;
use addr2line::{Context, gimli};
use gimli::{EndianSlice, LittleEndian};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};
use std::fmt;

/// The project's root as the image names it, wherever that is (`setup/toolchain.sh`).
const ROOT: &str = "./";
/// The sources of the language as the image names them: `/rustc/COMMIT/library/...`.
const LANGUAGE: &str = "/rustc/";
/// Where the project's own crates are, from its root.
const OWN: &str = "crates/";

/// A function that an instruction belongs to, inlined ones included.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frame {
    /// The function's name.
    pub function: String,
    /// The file, from the root of the project or of the language's sources; empty if the debug
    /// information names none.
    pub file: String,
    /// The line; 0 if it is not known.
    pub line: u32,
    /// The column; 0 if it is not known.
    pub column: u32,
}

impl Frame {
    /// Returns true if the function stands in one of the project's own crates.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.file.starts_with(OWN)
    }
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

    /// Returns the innermost function of the project's own that an instruction belongs to: where
    /// the language's library was inlined, the one that calls that.
    #[must_use]
    pub fn own(&self, address: u64) -> Option<Frame> {
        self.frames(address).into_iter().find(Frame::is_own)
    }

    /// Returns the line of the project's own source that an instruction comes from, or else that
    /// of the library.
    #[must_use]
    pub fn place(&self, address: u64) -> String {
        let frame = self.own(address).or_else(|| self.frames(address).into_iter().next());
        frame.map_or_else(|| format!("{address:#x}"), |frame| frame.to_string())
    }
}

/// Cuts the root off a path in the image.
fn short(path: &str) -> String {
    let language = path.strip_prefix(LANGUAGE).and_then(|path| path.split_once('/'));
    language.map_or_else(|| path.strip_prefix(ROOT).unwrap_or(path), |(_, path)| path).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_below_the_root_is_own() {
        for (path, file, is_own) in [
            ("./crates/abi/src/system.rs", "crates/abi/src/system.rs", true),
            ("/rustc/ac68faa2/library/core/src/str/mod.rs", "library/core/src/str/mod.rs", false),
            ("registry/memchr-2.7.4/crates/a.rs", "registry/memchr-2.7.4/crates/a.rs", false),
            ("/home/crates/a.rs", "/home/crates/a.rs", false),
        ] {
            let (function, line, column) = (String::new(), 1, 0);
            let frame = Frame { function, file: short(path), line, column };
            assert_eq!((frame.file.as_str(), frame.is_own()), (file, is_own), "{path}");
        }
    }
}
