//! What has been measured already: a file for each case, valid while nothing it
//! depends on has changed.

use crate::results::{WriteError, write_json};
use miette::{IntoDiagnostic, Result, WrapErr};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// One run of a bench, before it is made.
pub trait Named: PartialEq + Clone {
    /// A name for people and files, no other case's.
    fn name(&self) -> String;

    /// How much work it is, compared with others.
    fn work(&self) -> f64 {
        1.0
    }

    /// What a machine is made of for it that neither the case itself nor the basis
    /// says: what was measured with another recipe is not valid.
    fn recipe(&self) -> String {
        String::new()
    }
}

/// What a run brought.
pub trait Measured: Clone + Serialize + DeserializeOwned {
    /// What was run.
    type Case: Named;

    /// Which of them.
    fn case(&self) -> &Self::Case;
    /// Real time from start to end, in seconds.
    fn real_s(&self) -> f64;
}

/// CRC-32 of `files`, in this order, as hexadecimal digits.
///
/// # Errors
/// When one cannot be read.
pub fn checksum(files: &[&Path]) -> Result<String> {
    let mut sum = crc32fast::Hasher::new();
    for file in files {
        let bytes = fs::read(file).into_diagnostic();
        sum.update(&bytes.wrap_err_with(|| format!("cannot read {}", file.display()))?);
    }
    Ok(format!("{:08x}", sum.finalize()))
}

fn recipe(case: &impl Named) -> u32 {
    crc32fast::hash(case.recipe().as_bytes())
}

/// Measurements on disk; `B` is what they depend on besides their case.
#[derive(Debug)]
pub struct Store<B> {
    directory: PathBuf,
    basis: B,
}

#[derive(Serialize, Deserialize)]
struct Entry<B, M> {
    basis: B,
    /// CRC-32 of [`Named::recipe`].
    recipe: u32,
    measurement: M,
}

impl<B: Clone + PartialEq + Serialize + DeserializeOwned> Store<B> {
    /// Those in `directory`, which exists; valid are those with this `basis`.
    #[must_use]
    pub fn new(directory: PathBuf, basis: B) -> Self {
        Self { directory, basis }
    }

    /// Where they are.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The measurement of `case`, if there is a valid one.
    #[must_use]
    pub fn find<M: Measured>(&self, case: &M::Case) -> Option<M> {
        let text = fs::read(self.path(case)).ok()?;
        let entry: Entry<B, M> = serde_json::from_slice(&text).ok()?;
        let valid = entry.basis == self.basis
            && entry.recipe == recipe(case)
            && entry.measurement.case() == case;
        valid.then_some(entry.measurement)
    }

    /// Keeps a measurement.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep<M: Measured>(&self, measurement: &M) -> Result<(), WriteError> {
        let (basis, recipe) = (self.basis.clone(), recipe(measurement.case()));
        let measurement = measurement.clone();
        write_json(&self.path(measurement.case()), &Entry { basis, recipe, measurement })
    }

    fn path(&self, case: &impl Named) -> PathBuf {
        self.directory.join(format!("{}.json", case.name()))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::cell::RefCell;

    thread_local! {
        static RECIPE: RefCell<String> = const { RefCell::new(String::new()) };
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Plain(pub String, pub u32);

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Found {
        pub case: Plain,
        pub value: f64,
    }

    impl Named for Plain {
        fn name(&self) -> String {
            self.0.clone()
        }

        fn recipe(&self) -> String {
            RECIPE.with_borrow(Clone::clone)
        }
    }

    impl Measured for Found {
        type Case = Plain;

        fn case(&self) -> &Plain {
            &self.case
        }

        fn real_s(&self) -> f64 {
            self.value
        }
    }

    #[test]
    fn another_basis_recipe_or_parameter_makes_it_invalid() {
        let directory = tempfile::tempdir().unwrap();
        let store = |instrument: &str| Store::new(directory.path().into(), instrument.to_owned());
        let case = Plain("hackbench".into(), 4);
        assert_eq!(store("a").find::<Found>(&case), None);
        let found = Found { case: case.clone(), value: 1.5 };
        store("a").keep(&found).unwrap();
        assert_eq!(store("a").find(&case), Some(found));
        assert_eq!(store("b").find::<Found>(&case), None);
        assert_eq!(store("a").find::<Found>(&Plain("hackbench".into(), 5)), None);
        RECIPE.set("quantum_us = 50".into());
        assert_eq!(store("a").find::<Found>(&case), None);
    }
}
