//! The header of an arm64 Linux Image (Linux, Documentation/arch/arm64/
//! booting.rst, "Call the kernel image").
//!
//! The crate `linux-loader` knows it too, but only when it is itself compiled
//! for AArch64, and it wants a guest's memory to load into.

use super::Unfit;
use object::pe::{ImageDosHeader, ImageNtHeaders64, ImageSectionHeader};
use object::read::pe::ImageNtHeaders;
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// `"ARM\x64"`.
const MAGIC: u32 = 0x644d_5241;
/// Set when the kernel is big-endian.
const FLAG_BIG_ENDIAN: u64 = 1 << 0;

#[derive(FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Header {
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
