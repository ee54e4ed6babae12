//! Code, functions and pointers to functions in the ELF file.

use crate::Error;
use crate::decode;
use crate::graph::Code;
use crate::notes::{self, Note};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, RelocationFlags, SymbolKind, elf};
use std::collections::{BTreeMap, BTreeSet};

/// The hypervisor's image.
#[derive(Debug)]
pub struct Image<'a> {
    code: &'a [u8],
    base: u64,
    functions: BTreeMap<u64, String>,
    labels: BTreeMap<String, u64>,
    pointed_to: BTreeSet<u64>,
    notes: Vec<Note>,
    noted: BTreeSet<u64>,
    stack: u64,
}

/// What begins the name of a piece of code that the linker has moved out of a function because of
/// an erratum of Cortex-A53: it jumps back, so it is no function.
const MOVED: [&str; 2] = ["e843419@", "e835769@"];

impl<'a> Image<'a> {
    /// Reads the ELF file of a position-independent executable.
    ///
    /// # Errors
    /// When it is none, or has no symbols.
    pub fn parse(file: &'a [u8]) -> Result<Self, Error> {
        let wrong = |error: object::Error| Error::Image(error.to_string());
        let elf = ElfFile64::<LittleEndian>::parse(file).map_err(wrong)?;
        let text = elf.section_by_name(".text").ok_or_else(|| Error::Image("no code".into()))?;
        let (base, code) = (text.address(), text.data().map_err(wrong)?);
        let end = base + text.size();
        let mut functions = BTreeMap::new();
        let mut labels = BTreeMap::new();
        for symbol in elf.symbols() {
            let Ok(name) = symbol.name() else { continue };
            let inside = symbol.section_index() == Some(text.index());
            // `$x` and `$d` tell code from data (ELF for the Arm 64-bit Architecture, 5.5.4).
            if !inside || name.is_empty() || name.starts_with('$') || symbol.address() >= end {
                continue;
            }
            labels.insert(name.to_owned(), symbol.address());
            let moved = MOVED.iter().any(|moved| name.starts_with(moved));
            if matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Label | SymbolKind::Unknown)
                && !moved
            {
                let name = format!("{:#}", rustc_demangle::demangle(name));
                let known = functions.entry(symbol.address()).or_insert_with(|| name.clone());
                if symbol.is_global() {
                    *known = name;
                }
            }
        }
        if functions.is_empty() {
            return Err(Error::Image("no symbols".into()));
        }
        let mut pointed_to = BTreeSet::new();
        for (_, relocation) in elf.dynamic_relocations().into_iter().flatten() {
            let relative = RelocationFlags::Elf { r_type: elf::R_AARCH64_RELATIVE };
            let addend = relocation.addend() as u64;
            if relocation.flags() == relative && functions.contains_key(&addend) {
                pointed_to.insert(addend);
            }
        }
        let section = elf.section_by_name(notes::SECTION);
        let data = section.map_or(Ok(&[][..]), |section| section.data()).map_err(wrong)?;
        let notes = notes::read(data)?;
        let is_stack = |name: &str| {
            let number = name.strip_prefix(".stack");
            number.is_some_and(|number| number.parse::<u64>().is_ok())
        };
        let stacks = elf.sections().filter(|section| section.name().is_ok_and(is_stack));
        let stack = stacks.map(|section| section.size()).min().unwrap_or(0);
        let noted = notes.iter().map(|note| note.address).collect();
        Ok(Self { code, base, functions, labels, pointed_to, notes, noted, stack })
    }

    /// Has a function begin at an address: assembly that has no symbol of its own.
    pub fn declare(&mut self, address: u64, name: &str) {
        self.functions.insert(address, name.into());
    }

    /// Returns the address of a label.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<u64> {
        self.labels.get(name).copied()
    }

    /// Returns a function's name.
    #[must_use]
    pub fn name(&self, function: u64) -> &str {
        self.functions.get(&function).map_or("?", String::as_str)
    }

    /// Returns the functions and their names.
    pub fn functions(&self) -> impl Iterator<Item = (u64, &str)> {
        self.functions.iter().map(|(&address, name)| (address, name.as_str()))
    }

    /// Returns the functions to which something in the image's data points.
    pub fn pointed_to(&self) -> impl Iterator<Item = u64> {
        self.pointed_to.iter().copied()
    }

    /// Returns what the source says of its loops.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Returns the size of a core's stack, the smallest if they differ, bytes: link.ld reserves a
    /// section for each. 0 if there is none.
    #[must_use]
    pub fn stack(&self) -> u64 {
        self.stack
    }

    /// Returns the address of its first instruction.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Returns how many instructions the image has.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.code.len() as u64 / decode::SIZE
    }
}

impl Code for Image<'_> {
    fn word(&self, address: u64) -> Option<u32> {
        let at = usize::try_from(address.checked_sub(self.base)?).ok()?;
        let bytes = self.code.get(at..at + decode::SIZE as usize)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    fn begins_other(&self, address: u64, from: u64) -> bool {
        address != from && self.functions.contains_key(&address)
    }

    fn is_noted(&self, address: u64) -> bool {
        self.noted.contains(&address)
    }
}
