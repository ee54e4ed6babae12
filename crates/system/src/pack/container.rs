//! The file itself: an ELF64 executable with physical addresses, which QEMU's
//! `-kernel` and every boot loader can load.
//!
//! `object`'s ELF writer wants all contents in one buffer; ours are tens of
//! megabytes that lie in files already, so only the headers are its.

use abi::system::{PAGE_SIZE, Region};
use object::elf::{self, FileHeader64, ProgramFlags, ProgramHeader64};
use object::pod::bytes_of;
use object::{LittleEndian as LE, U16, U32, U64};
use std::io::{self, Write};

/// A run of bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Chunk<'a> {
    Data(&'a [u8]),
    Zeros(u64),
}

/// Something to be loaded.
#[derive(Clone, Debug)]
pub(super) struct Part<'a> {
    /// Where; what the chunks do not fill is zero.
    pub(super) region: Region,
    pub(super) flags: ProgramFlags,
    pub(super) chunks: Vec<Chunk<'a>>,
}

/// A bootable file.
#[derive(Clone, Debug)]
pub(super) struct Container<'a> {
    pub(super) entry: u64,
    pub(super) parts: Vec<Part<'a>>,
}

impl Chunk<'_> {
    const fn len(&self) -> u64 {
        match self {
            Self::Data(bytes) => bytes.len() as u64,
            Self::Zeros(count) => *count,
        }
    }

    /// Hands out the bytes, in pieces.
    pub(super) fn feed(&self, take: &mut impl FnMut(&[u8])) {
        const ZEROS: [u8; PAGE_SIZE as usize] = [0; PAGE_SIZE as usize];
        match *self {
            Self::Data(bytes) => take(bytes),
            Self::Zeros(mut count) => {
                while count > 0 {
                    let now = count.min(PAGE_SIZE);
                    take(&ZEROS[..now as usize]);
                    count -= now;
                }
            }
        }
    }
}

impl Part<'_> {
    /// Bytes that are not only cleared.
    pub(super) fn file_size(&self) -> u64 {
        self.chunks.iter().map(Chunk::len).sum()
    }
}

impl Container<'_> {
    /// Where each part begins in the file: page-aligned like its address, so
    /// that it can be mapped.
    fn offsets(&self) -> Vec<u64> {
        let mut end = self.headers_size();
        let place = |part: &Part<'_>| {
            let offset = end.next_multiple_of(PAGE_SIZE) + part.region.start % PAGE_SIZE;
            end = offset + part.file_size();
            offset
        };
        self.parts.iter().map(place).collect()
    }

    fn headers_size(&self) -> u64 {
        let programs = self.parts.len() * size_of::<ProgramHeader64<LE>>();
        (size_of::<FileHeader64<LE>>() + programs) as u64
    }

    pub(super) fn file_size(&self) -> u64 {
        let last = self.offsets().into_iter().zip(&self.parts).next_back();
        last.map_or(0, |(offset, part)| offset + part.file_size())
    }

    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let offsets = self.offsets();
        to.write_all(bytes_of(&self.file_header()))?;
        for (part, &offset) in self.parts.iter().zip(&offsets) {
            to.write_all(bytes_of(&program_header(part, offset)))?;
        }
        let mut position = self.headers_size();
        for (part, offset) in self.parts.iter().zip(offsets) {
            let gap = Chunk::Zeros(offset - position);
            for chunk in [gap].iter().chain(&part.chunks) {
                write_chunk(chunk, to)?;
            }
            position = offset + part.file_size();
        }
        to.flush()
    }

    fn file_header(&self) -> FileHeader64<LE> {
        let size = |bytes: usize| U16::new(LE, bytes as u16);
        FileHeader64 {
            e_ident: elf::Ident {
                magic: elf::ELFMAG,
                class: elf::ELFCLASS64,
                data: elf::ELFDATA2LSB,
                version: elf::EV_CURRENT,
                os_abi: elf::ELFOSABI_NONE,
                abi_version: 0,
                padding: [0; 7],
            },
            e_type: U16::new(LE, elf::ET_EXEC),
            e_machine: U16::new(LE, elf::EM_AARCH64),
            e_version: U32::new(LE, elf::EV_CURRENT.0.into()),
            e_entry: U64::new(LE, self.entry),
            e_phoff: U64::new(LE, size_of::<FileHeader64<LE>>() as u64),
            e_shoff: U64::new(LE, 0),
            e_flags: U32::new(LE, elf::FileFlags(0)),
            e_ehsize: size(size_of::<FileHeader64<LE>>()),
            e_phentsize: size(size_of::<ProgramHeader64<LE>>()),
            e_phnum: size(self.parts.len()),
            e_shentsize: size(0),
            e_shnum: size(0),
            e_shstrndx: U16::new(LE, elf::SymbolSection(0)),
        }
    }
}

fn program_header(part: &Part<'_>, offset: u64) -> ProgramHeader64<LE> {
    let word = |value: u64| U64::new(LE, value);
    ProgramHeader64 {
        p_type: U32::new(LE, elf::PT_LOAD),
        p_flags: U32::new(LE, part.flags),
        p_offset: word(offset),
        p_vaddr: word(part.region.start),
        p_paddr: word(part.region.start),
        p_filesz: word(part.file_size()),
        p_memsz: word(part.region.size),
        p_align: word(PAGE_SIZE),
    }
}

fn write_chunk(chunk: &Chunk<'_>, to: &mut impl Write) -> io::Result<()> {
    let mut result = Ok(());
    chunk.feed(&mut |bytes| {
        if result.is_ok() {
            result = to.write_all(bytes);
        }
    });
    result
}
