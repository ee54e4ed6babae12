//! Kernels: what kind of file it is, and what it needs of memory.

mod arm64;
mod elf;
mod foreign;

pub use crate::draft::Format;
pub(crate) use arm64::Header;
pub use arm64::LinuxImage;
pub use elf::{ElfImage, ElfSegment};

use std::sync::Arc;

/// The contents of a file, shared by all VMs that use it.
pub type Bytes = Arc<Vec<u8>>;

/// A guest's kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The file.
    pub bytes: Bytes,
    /// What it is.
    pub kind: KernelKind,
}

/// What kind of file a kernel is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelKind {
    /// An arm64 Linux Image, or another kernel in that format.
    Image(LinuxImage),
    /// A statically linked AArch64 ELF file.
    Elf(ElfImage),
    /// Bytes that go to the beginning of memory and are entered there.
    Flat,
}

/// Why a file is no kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// What is wrong with it.
    pub message: String,
    /// How to mend that.
    pub hint: String,
}

impl Unfit {
    fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}

impl KernelKind {
    /// The kind, in the words of a description's `format`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Image(_) => "image",
            Self::Elf(_) => "elf",
            Self::Flat => "flat",
        }
    }
}

/// Returns true if a file is ELF, whatever it is said to be.
pub(crate) fn is_elf(bytes: &[u8]) -> bool {
    elf::has_magic(bytes)
}

/// Finds out what a file is, and whether it can be booted. A flat binary
/// cannot be told from anything else, so it must be called one.
///
/// # Errors
/// Why it cannot be booted, or is not what it is `stated` to be.
pub fn identify(bytes: &[u8], stated: Option<Format>) -> Result<KernelKind, Unfit> {
    if bytes.is_empty() {
        return Err(Unfit::new("the file is empty", "was the build that makes it interrupted?"));
    }
    match stated {
        Some(Format::Flat) => Ok(KernelKind::Flat),
        Some(Format::Elf) => elf::read(bytes).map(KernelKind::Elf),
        Some(Format::Image) => arm64::read(bytes).map(KernelKind::Image),
        None if arm64::has_magic(bytes) => arm64::read(bytes).map(KernelKind::Image),
        None if elf::has_magic(bytes) => elf::read(bytes).map(KernelKind::Elf),
        None => Err(foreign::explain(bytes)),
    }
}
