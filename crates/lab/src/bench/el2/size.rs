//! How large the hypervisor is.

use super::features::{self, Feature};
use crate::source::{self, Linked};
use miette::{IntoDiagnostic, Result, WrapErr};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{elf, endian::LittleEndian};
use std::path::Path;

/// Size of the hypervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// Bytes of its image that are loaded (PT_LOAD, sizes in the file).
    pub image: u64,
    /// The crates that the image is made of.
    pub source: Vec<Linked>,
    /// The same by what it is for.
    pub features: Vec<Feature>,
}

impl Size {
    /// Measures the ELF file `image` and its source below the project's `root`.
    pub fn measure(image: &[u8], root: &Path) -> Result<Self> {
        let source = source::measure(root).wrap_err("cannot count the hypervisor's source")?;
        let features = features::measure(image, root)?;
        let image = image_size(image).into_diagnostic().wrap_err("the hypervisor's ELF file")?;
        Ok(Self { image, source, features })
    }

    /// Returns how many lines run at EL2.
    pub fn lines(&self) -> u64 {
        self.source.iter().map(|linked| linked.lines).sum()
    }
}

fn image_size(image: &[u8]) -> object::read::Result<u64> {
    let header = elf::FileHeader64::<LittleEndian>::parse(image)?;
    let segments = header.program_headers(LittleEndian, image)?.iter();
    let loaded = segments.filter(|s| s.p_type(LittleEndian) == elf::PT_LOAD);
    Ok(loaded.map(|segment| segment.p_filesz(LittleEndian)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_elf_file_has_an_image() {
        assert!(image_size(b"no ELF file").is_err());
    }
}
