//! What has been measured already: a file for each case, valid while nothing it
//! depends on has changed.

use super::case::{Case, Images};
use super::run::Measurement;
use crate::results::{WriteError, write_json};
use crate::suite::Bench;
use miette::{IntoDiagnostic, Result, WrapErr};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// What a measurement depends on besides its case: versions, and checksums
/// (CRC-32) of files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basis {
    /// QEMU's version.
    pub qemu: String,
    /// The instrument's shared object.
    pub instrument: String,
    /// Linux and its user space.
    pub linux: String,
    /// The bare-metal guest.
    pub metronome: String,
}

impl Basis {
    /// The present one.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn of(bench: &Bench) -> Result<Self> {
        let images = Images::of(&bench.root);
        Ok(Self {
            qemu: bench.qemu.version().to_string(),
            instrument: checksum(&[bench.instrument.path()])?,
            linux: checksum(&[&images.kernel, &images.initramfs])?,
            metronome: checksum(&[&images.metronome])?,
        })
    }
}

fn checksum(files: &[&Path]) -> Result<String> {
    let mut sum = crc32fast::Hasher::new();
    for file in files {
        let bytes = fs::read(file).into_diagnostic();
        sum.update(&bytes.wrap_err_with(|| format!("cannot read {}", file.display()))?);
    }
    Ok(format!("{:08x}", sum.finalize()))
}

/// Measurements on disk.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    basis: Basis,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    basis: Basis,
    measurement: Measurement,
}

impl Store {
    /// Those in `directory`, which exists; valid are those with this `basis`.
    #[must_use]
    pub fn new(directory: PathBuf, basis: Basis) -> Self {
        Self { directory, basis }
    }

    /// What they depend on.
    #[must_use]
    pub fn basis(&self) -> &Basis {
        &self.basis
    }

    /// The measurement of `case`, if there is a valid one.
    #[must_use]
    pub fn find(&self, case: &Case) -> Option<Measurement> {
        let text = fs::read(self.path(case)).ok()?;
        let entry: Entry = serde_json::from_slice(&text).ok()?;
        let valid = entry.basis == self.basis && entry.measurement.case == *case;
        valid.then_some(entry.measurement)
    }

    /// Keeps a measurement.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&self, measurement: &Measurement) -> Result<(), WriteError> {
        let (basis, measurement) = (self.basis.clone(), measurement.clone());
        write_json(&self.path(&measurement.case), &Entry { basis, measurement })
    }

    fn path(&self, case: &Case) -> PathBuf {
        self.directory.join(format!("{}.json", case.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::Guest;
    use super::super::figures::Figures;
    use super::*;

    fn basis(instrument: &str) -> Basis {
        let text = |text: &str| text.to_owned();
        let (qemu, linux, metronome) = (text("10.0.2"), text("1"), text("2"));
        Basis { qemu, instrument: instrument.into(), linux, metronome }
    }

    #[test]
    fn another_instrument_or_other_parameters_make_it_invalid() {
        let directory = tempfile::tempdir().unwrap();
        let store = |instrument| Store::new(directory.path().into(), basis(instrument));
        let case = Case::new(Guest::Cyclictest { loops: 10 }, 4);
        assert_eq!(store("a").find(&case), None);
        let figures = Figures::Cyclictest([(3, 40)].into());
        let measurement = Measurement::bare(case, 1.5, figures);
        store("a").keep(&measurement).unwrap();
        assert_eq!(store("a").find(&case), Some(measurement));
        assert_eq!(store("b").find(&case), None);
        assert_eq!(store("a").find(&Case::new(Guest::Cyclictest { loops: 20 }, 4)), None);
    }
}
