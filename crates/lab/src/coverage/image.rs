//! The source lines of an image's instructions.

use crate::executed::{Sum, code};
use bound::lines::Lines;
use miette::{IntoDiagnostic, Result, miette};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol};
use std::collections::{BTreeMap, BTreeSet};
use vtime::coverage::INSTRUCTION;

/// A line of source: its file, from the project's root, and its number.
pub type Line = (String, u32);

/// The lines of an image, and what of it was executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapped {
    /// Lines that have instructions, and whether one of these was executed.
    pub lines: BTreeMap<Line, bool>,
    /// The functions that the lines stand in: the innermost one of the first instruction.
    pub functions: BTreeMap<Line, String>,
    /// Instructions without a line, which assembly has, by the label before them.
    pub assembly: BTreeMap<String, Count>,
    /// All instructions.
    pub all: Count,
}

/// So many instructions, and how many of these were executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// All of them.
    pub instructions: u64,
    /// Those that were executed.
    pub executed: u64,
}

impl Count {
    fn add(&mut self, executed: bool) {
        self.instructions += 1;
        self.executed += u64::from(executed);
    }
}

impl Mapped {
    /// Maps the image `elf`, of which `sum` was executed.
    ///
    /// # Errors
    /// When `elf` is no ELF file with code and debug information.
    pub fn of(elf: &[u8], sum: &Sum) -> Result<Self> {
        let (code, labels) = (code(elf)?, labels(elf)?);
        let debug = Lines::parse(elf).map_err(|error| miette!("{error}"))?;
        let mut mapped = Self::default();
        let addresses = code.clone().step_by(usize::try_from(INSTRUCTION).into_diagnostic()?);
        for (index, address) in addresses.enumerate() {
            mapped.add(address, sum.executed.contains(index), &debug, &labels);
        }
        if mapped.lines.is_empty() {
            return Err(miette!("the hypervisor's debug information names no line of its source"));
        }
        Ok(mapped)
    }

    fn add(
        &mut self,
        address: u64,
        executed: bool,
        debug: &Lines<'_>,
        labels: &BTreeMap<u64, String>,
    ) {
        self.all.add(executed);
        let frames = debug.frames(address);
        if frames.iter().all(|frame| frame.file.is_empty()) {
            let label = labels.range(..=address).next_back();
            let label = label.map_or_else(String::new, |(_, name)| name.clone());
            self.assembly.entry(label).or_default().add(executed);
        }
        // Line 0 is what the compiler cannot tell (DWARF 5, section 6.2.2).
        for frame in frames.into_iter().filter(|frame| frame.is_own() && frame.line > 0) {
            let line = (frame.file, frame.line);
            self.functions.entry(line.clone()).or_insert(frame.function);
            *self.lines.entry(line).or_default() |= executed;
        }
    }

    /// Returns the lines of which an instruction was executed.
    pub fn reached(&self) -> BTreeSet<&Line> {
        self.lines.iter().filter(|(_, reached)| **reached).map(|(line, _)| line).collect()
    }
}

/// Finds the labels in the code.
fn labels(elf: &[u8]) -> Result<BTreeMap<u64, String>> {
    let file = ElfFile64::<object::LittleEndian>::parse(elf).into_diagnostic()?;
    let text = file.section_by_name(".text").map(|text| text.index());
    let inside = file.symbols().filter(|symbol| symbol.section_index() == text);
    let named =
        inside.filter_map(|symbol| Some((symbol.address(), symbol.name().ok()?.to_owned())));
    // `$x` and `$d` tell code from data (ELF for the Arm 64-bit Architecture, 5.5.4); what begins
    // with `__` is the linker's.
    let ours = |name: &str| !name.is_empty() && !name.starts_with('$') && !name.starts_with("__");
    Ok(named.filter(|(_, name)| ours(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hypervisor;
    use vtime::coverage::Executed;

    fn mapped(executed: impl IntoIterator<Item = usize>) -> Mapped {
        let elf = hypervisor();
        let mut sum = Sum { machines: 1, executed: Executed::none(1 << 20) };
        executed.into_iter().for_each(|index| sum.executed.insert(index));
        Mapped::of(&elf, &sum).unwrap()
    }

    #[test]
    fn what_was_executed_reaches_its_lines_and_no_others() {
        let nothing = mapped([]);
        assert!(nothing.lines.len() > 2_000, "{} lines", nothing.lines.len());
        assert!(nothing.reached().is_empty());
        assert!(nothing.lines.keys().all(|(file, _)| file.starts_with("crates/")));
        let count = usize::try_from(nothing.all.instructions).unwrap();
        let all = mapped(0..count);
        assert_eq!(all.reached().len(), nothing.lines.len());
        assert_eq!(all.all.executed, all.all.instructions);
        let half = mapped((0..count).step_by(2)).reached().len();
        assert!(half > 0 && half < nothing.lines.len());
    }

    /// An inlined function's instructions reach the line that calls it as well.
    #[test]
    fn a_call_is_reached_with_what_was_inlined() {
        let elf = hypervisor();
        let debug = Lines::parse(&elf).unwrap();
        let own = |address| -> Vec<_> {
            debug.frames(address).into_iter().filter(bound::lines::Frame::is_own).collect()
        };
        let code = code(&elf).unwrap();
        let inlined = code.step_by(4).find(|&address| own(address).len() > 2).unwrap();
        let one = mapped([usize::try_from(inlined / 4).unwrap()]);
        let wanted: BTreeSet<_> =
            own(inlined).into_iter().map(|frame| (frame.file, frame.line)).collect();
        assert_eq!(one.reached(), wanted.iter().filter(|line| line.1 > 0).collect());
    }

    #[test]
    fn assembly_is_told_by_its_labels() {
        let mapped = mapped([0x400 / 4]);
        let vectors = mapped.assembly["exception_vectors"];
        assert!(vectors.instructions > 100 && vectors.executed == 1, "{vectors:?}");
        assert!(mapped.assembly.contains_key("_start"));
    }
}
