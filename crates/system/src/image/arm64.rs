//! The header of an arm64 Linux Image (Linux, Documentation/arch/arm64/
//! booting.rst, "Call the kernel image").
//!
//! The crate `linux-loader` knows it too, but only when it is itself compiled
//! for AArch64, and it wants a guest's memory to load into.

use super::Unfit;
use object::pe::{ImageDosHeader, ImageNtHeaders64, ImageSectionHeader};
use object::read::pe::ImageNtHeaders;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `"ARM\x64"`.
const MAGIC: u32 = 0x644d_5241;
/// Set when the kernel is big-endian.
const FLAG_BIG_ENDIAN: u64 = 1 << 0;
/// The kernel's pages have 4 KiB.
const FLAG_4_KIB: u64 = 1 << 1;
/// `b` to itself: the distance, in instructions, is in the lower 26 bits.
const BRANCH: u32 = 0x1400_0000;
/// One past the longest distance that fits, bytes.
const BRANCH_END: u64 = 1 << 27;

/// The first 64 bytes of an Image.
#[derive(FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct Header {
    code: [u32; 2],
    text_offset: u64,
    image_size: u64,
    flags: u64,
    reserved: [u64; 3],
    magic: u32,
    pe_offset: u32,
}

/// Where an Image wants to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinuxImage {
    /// Distance of its first byte from a 2 MiB boundary.
    pub text_offset: u64,
    /// Memory it occupies from its first byte, .bss included.
    pub image_size: u64,
}

impl Header {
    /// Makes the header of an Image that has its place: `text_offset` bytes behind the beginning of
    /// RAM, as it is not said to run anywhere. Its first instruction is `entry` bytes behind the
    /// header's first.
    ///
    /// # Panics
    /// When the entry is out of a branch's reach.
    pub(crate) fn new(entry: u64, text_offset: u64, image_size: u64) -> Self {
        assert!(entry < BRANCH_END && entry.is_multiple_of(4), "a branch reaches the entry");
        Self {
            code: [BRANCH | (entry / 4) as u32, 0],
            text_offset,
            image_size,
            flags: FLAG_4_KIB,
            reserved: [0; 3],
            magic: MAGIC,
            pe_offset: 0,
        }
    }
}

fn header(bytes: &[u8]) -> Option<Header> {
    Header::read_from_prefix(bytes).ok().map(|(header, _)| header)
}

pub(super) fn has_magic(bytes: &[u8]) -> bool {
    header(bytes).is_some_and(|header| header.magic == MAGIC)
}

pub(super) fn read(bytes: &[u8]) -> Result<LinuxImage, Unfit> {
    let header = header(bytes).filter(|header| header.magic == MAGIC).ok_or_else(|| {
        let found = super::foreign::explain(bytes);
        Unfit::new("the file is no arm64 Image: its magic is not at byte 0x38", found.hint)
    })?;
    if header.flags & FLAG_BIG_ENDIAN != 0 {
        let hint = "build the kernel with CONFIG_CPU_LITTLE_ENDIAN=y";
        return Err(Unfit::new("the Image is big-endian", hint));
    }
    if header.image_size == 0 {
        let hint = "kernels from 3.17 on say how much memory they need; take a newer one";
        return Err(Unfit::new("the Image does not say how large it is", hint));
    }
    let too_small = header.image_size < bytes.len() as u64;
    if too_small || header.text_offset >= abi::system::RAM_ALIGN {
        let hint = "the file is damaged; fetch or build it again";
        return Err(Unfit::new("the Image's header contradicts itself", hint));
    }
    let has = bytes.len() as u64;
    if let Some(needs) = length_by_sections(bytes).filter(|&needs| needs > has) {
        let message =
            format!("the Image is cut short: it has {has} bytes and should have at least {needs}");
        return Err(Unfit::new(message, "copy or build it again"));
    }
    Ok(LinuxImage { text_offset: header.text_offset, image_size: header.image_size })
}

/// Returns how many bytes the file must have at least, as its PE header says: a kernel that an
/// EFI firmware could start as well has one (CONFIG_EFI_STUB, as every distribution builds it).
/// `None` for other kernels: nothing in them tells the file's length, as `image_size` counts
/// `.bss` too.
fn length_by_sections(bytes: &[u8]) -> Option<u64> {
    let dos = ImageDosHeader::parse(bytes).ok()?;
    let start = u64::from(dos.nt_headers_offset());
    let mut end = start;
    let sections = match ImageNtHeaders64::parse(bytes, &mut end) {
        Ok((headers, _)) => headers.sections(bytes, end),
        Err(error) => Err(error),
    };
    let Ok(sections) = sections else {
        // What is there of them is no PE header, or not all of them is there.
        return Some(start + size_of::<ImageNtHeaders64>() as u64);
    };
    let end = |section: &ImageSectionHeader| {
        let (start, length) = section.pe_file_range();
        u64::from(start) + u64::from(length)
    };
    sections.iter().map(end).max()
}
