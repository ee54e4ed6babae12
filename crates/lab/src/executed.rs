//! What machines executed of the hypervisor, recorded and added up for each of its images.

use miette::{IntoDiagnostic, Result, WrapErr, miette};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use vtime::coverage::{Coverage, Executed, INSTRUCTION};

/// The ending of a record's file name.
const ENDING: &str = "executed";

/// Where machines record what they execute of the hypervisor.
#[derive(Clone, Debug)]
pub struct Records {
    directory: PathBuf,
    /// Machines so far, each of which has a file of its own.
    machines: Arc<AtomicU32>,
}

/// What all machines with one image executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// How many machines recorded something.
    pub machines: u64,
    /// What they executed.
    pub executed: Executed,
}

impl Records {
    /// Keeps records in `directory`, which is emptied of those of an earlier run.
    ///
    /// # Errors
    /// When the directory cannot be made or emptied.
    pub fn begin(directory: &Path) -> Result<Self> {
        let fail = |error| miette!("cannot make {} anew: {error}", directory.display());
        if directory.exists() {
            fs::remove_dir_all(directory).map_err(fail)?;
        }
        fs::create_dir_all(directory).map_err(fail)?;
        Ok(Self { directory: directory.into(), machines: Arc::default() })
    }

    /// Returns what the next machine is to record, which has the hypervisor whose ELF file is
    /// `elf`, and its code at the physical addresses `range`.
    #[must_use]
    pub fn next(&self, elf: &[u8], range: Range<u64>) -> Coverage {
        let number = self.machines.fetch_add(1, Relaxed);
        let file = self.directory.join(format!("{}.{number}.{ENDING}", name(elf)));
        Coverage { range, file }
    }

    /// Adds up what was recorded of the image `elf`.
    ///
    /// # Errors
    /// When a record cannot be read, or is not of this image.
    pub fn of(&self, elf: &[u8]) -> Result<Sum> {
        let all = Coverage { range: code(elf)?, file: PathBuf::new() };
        let executed = Executed::none(all.instructions());
        let mut sum = Sum { machines: 0, executed };
        for path in self.files()?.remove(&name(elf)).unwrap_or_default() {
            let fail = |error| miette!("the record {}: {error}", path.display());
            let one = Executed::read(&path).map_err(fail)?;
            sum.executed.merge(&one).map_err(fail)?;
            // One that was killed has left an empty record.
            sum.machines += u64::from(one.count() > 0);
        }
        Ok(sum)
    }

    /// Finds the records of each image.
    fn files(&self) -> Result<BTreeMap<String, Vec<PathBuf>>> {
        let fail = |error| miette!("cannot read {}: {error}", self.directory.display());
        let mut files: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for entry in fs::read_dir(&self.directory).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            if path.extension().is_some_and(|ending| ending == ENDING) {
                let file = path.file_name().unwrap_or_default().to_string_lossy();
                let image = file.split('.').next().unwrap_or_default().to_owned();
                files.entry(image).or_default().push(path);
            }
        }
        Ok(files)
    }
}

/// Returns where the code of the hypervisor is in its image, whose ELF file is `elf`: addresses from
/// the image's beginning.
///
/// # Errors
/// When `elf` is no ELF file with code.
pub fn code(elf: &[u8]) -> Result<Range<u64>> {
    let file = ElfFile64::<object::LittleEndian>::parse(elf).into_diagnostic();
    let file = file.wrap_err("the hypervisor's ELF file")?;
    let text = file.section_by_name(".text").ok_or_else(|| miette!("there is no code"))?;
    let size = text.size().next_multiple_of(INSTRUCTION);
    Ok(text.address()..text.address() + size)
}

/// Names an image by its bytes.
fn name(elf: &[u8]) -> String {
    format!("{:08x}", crc32fast::hash(elf))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hypervisor;

    #[test]
    fn records_of_an_image_are_added_and_others_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("records");
        fs::create_dir(&place).unwrap();
        fs::write(place.join("0.0.executed"), "of an earlier run").unwrap();
        let (records, elf) = (Records::begin(&place).unwrap(), hypervisor());
        let next = || records.next(&elf, code(&elf).unwrap());
        assert_eq!(records.of(&elf).unwrap().machines, 0);
        for index in [3, 70] {
            let coverage = next();
            let mut executed = Executed::none(coverage.instructions());
            executed.insert(index);
            executed.write(&coverage.file).unwrap();
        }
        let killed = next();
        Executed::none(killed.instructions()).write(&killed.file).unwrap();
        fs::write(place.join("12345678.9.executed"), "of another image").unwrap();
        let sum = records.of(&elf).unwrap();
        assert_eq!((sum.machines, sum.executed.count()), (2, 2));
        assert!(sum.executed.contains(3) && sum.executed.contains(70));
        fs::write(&killed.file, "too short").unwrap();
        let error = records.of(&elf).unwrap_err().to_string();
        assert!(error.contains("another number of instructions"), "{error}");
    }

    #[test]
    fn what_is_no_hypervisor_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let records = Records::begin(directory.path()).unwrap();
        assert!(records.of(b"no ELF file").is_err());
    }
}
