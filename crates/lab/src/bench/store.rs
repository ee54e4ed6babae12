//! What has been measured already: a file for each case, valid while nothing it
//! depends on has changed.

use super::inputs::Inputs;
use crate::results::write_json;
use miette::Result;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// One run of a bench, before it is made.
pub trait Case: Clone + PartialEq + Send + Serialize + Sync {
    /// Returns a name for people and files that no other case has.
    fn name(&self) -> String;

    /// Returns how much work it is, compared with others.
    fn work(&self) -> f64 {
        1.0
    }

    /// Returns what a machine is told for it that neither the case itself nor the inputs
    /// say: what was measured with another text is not valid.
    fn config_text(&self) -> String {
        String::new()
    }
}

/// What a run brought.
pub trait Measured: Clone + Send + Serialize + DeserializeOwned {
    type Case: Case;

    fn case(&self) -> &Self::Case;
    /// Returns the real time from start to end, in seconds.
    fn real_s(&self) -> f64;
}

fn checksum(case: &impl Case) -> u32 {
    crc32fast::hash(case.config_text().as_bytes())
}

/// Returns all of `case`; null for one that JSON has no form for, and there is none.
fn value(case: &impl Case) -> Value {
    serde_json::to_value(case).unwrap_or_default()
}

/// Says where a measurement has its case and its time.
macro_rules! measured {
    ($of:ty, $case:ident: $case_of:ty, $($real_s:ident).+) => {
        impl $crate::bench::store::Measured for $of {
            type Case = $case_of;

            fn case(&self) -> &Self::Case {
                &self.$case
            }

            fn real_s(&self) -> f64 {
                self.$($real_s).+
            }
        }
    };
}
pub(super) use measured;

/// Measurements on disk.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    inputs: Inputs,
}

#[derive(Serialize, Deserialize)]
struct Entry<M> {
    inputs: Inputs,
    /// CRC-32 of [`Case::config_text`].
    description: u32,
    measurement: M,
}

/// Why a case brought nothing. Only those that merge what workers brought ask for it: another run
/// tries the case again.
#[derive(Serialize, Deserialize)]
struct Failure {
    inputs: Inputs,
    /// CRC-32 of [`Case::config_text`].
    description: u32,
    case: Value,
    why: String,
}

impl Store {
    /// Opens the store in `directory`, which exists. Only what was measured with these
    /// `inputs` is valid.
    pub fn new(directory: PathBuf, inputs: Inputs) -> Self {
        Self { directory, inputs }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns what measurements have to be made with to be valid.
    pub fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    /// Returns the measurement of `case`, if there is a valid one.
    pub fn find<M: Measured>(&self, case: &M::Case) -> Option<M> {
        let text = fs::read(self.path(case)).ok()?;
        let entry: Entry<M> = serde_json::from_slice(&text).ok()?;
        let valid = entry.inputs == self.inputs
            && entry.description == checksum(case)
            && entry.measurement.case() == case;
        valid.then_some(entry.measurement)
    }

    /// Keeps a measurement, in place of an earlier one or of a failure.
    pub fn keep<M: Measured>(&self, measurement: &M) -> Result<()> {
        let (inputs, description) = (self.inputs.clone(), checksum(measurement.case()));
        let measurement = measurement.clone();
        let failure = self.failure_path(measurement.case());
        write_json(&self.path(measurement.case()), &Entry { inputs, description, measurement })?;
        // As a rule there is none.
        drop(fs::remove_file(failure));
        Ok(())
    }

    /// Keeps why `case` brought nothing, in place of an earlier measurement.
    pub fn keep_failure(&self, case: &impl Case, why: &str) -> Result<()> {
        let (inputs, description) = (self.inputs.clone(), checksum(case));
        let (case_value, why) = (value(case), why.to_owned());
        let failure = Failure { inputs, description, case: case_value, why };
        write_json(&self.failure_path(case), &failure)?;
        // As a rule there is none.
        drop(fs::remove_file(self.path(case)));
        Ok(())
    }

    /// Returns why `case` brought nothing, if it was run with these inputs.
    pub fn failure(&self, case: &impl Case) -> Option<String> {
        let text = fs::read(self.failure_path(case)).ok()?;
        let failure: Failure = serde_json::from_slice(&text).ok()?;
        let valid = failure.inputs == self.inputs
            && failure.description == checksum(case)
            && failure.case == value(case);
        valid.then_some(failure.why)
    }

    fn failure_path(&self, case: &impl Case) -> PathBuf {
        self.directory.join(format!("{}.failure.json", case.name()))
    }

    fn path(&self, case: &impl Case) -> PathBuf {
        self.directory.join(format!("{}.json", case.name()))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::cell::RefCell;

    thread_local! {
        static CONFIG_TEXT: RefCell<String> = const { RefCell::new(String::new()) };
    }

    /// Inputs with this version of QEMU.
    pub fn inputs(qemu: &str) -> Inputs {
        serde_json::from_value(serde_json::json!({ "qemu": qemu })).unwrap()
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Plain(pub String, pub u32);

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Found {
        pub case: Plain,
        pub value: f64,
    }

    impl Case for Plain {
        fn name(&self) -> String {
            self.0.clone()
        }

        fn config_text(&self) -> String {
            CONFIG_TEXT.with_borrow(Clone::clone)
        }
    }

    measured!(Found, case: Plain, value);

    #[test]
    fn other_inputs_another_description_or_another_parameter_makes_it_invalid() {
        let directory = tempfile::tempdir().unwrap();
        let store = |instrument: &str| Store::new(directory.path().into(), inputs(instrument));
        let case = Plain("hackbench".into(), 4);
        assert_eq!(store("a").find::<Found>(&case), None);
        let found = Found { case: case.clone(), value: 1.5 };
        store("a").keep(&found).unwrap();
        assert_eq!(store("a").find(&case), Some(found));
        assert_eq!(store("b").find::<Found>(&case), None);
        assert_eq!(store("a").find::<Found>(&Plain("hackbench".into(), 5)), None);
        CONFIG_TEXT.set("quantum = \"50us\"".into());
        assert_eq!(store("a").find::<Found>(&case), None);
    }
    #[test]
    fn the_last_word_on_a_case_holds() {
        let directory = tempfile::tempdir().unwrap();
        let store = |qemu: &str| Store::new(directory.path().into(), inputs(qemu));
        let (case, other) = (Plain("hackbench".into(), 4), Plain("hackbench".into(), 5));
        let found = Found { case: case.clone(), value: 1.5 };
        store("a").keep_failure(&case, "too late").unwrap();
        assert_eq!(store("a").failure(&case).as_deref(), Some("too late"));
        assert_eq!((store("b").failure(&case), store("a").failure(&other)), (None, None));
        store("a").keep(&found).unwrap();
        assert_eq!((store("a").failure(&case), store("a").find(&case)), (None, Some(found)));
        store("a").keep_failure(&case, "too late").unwrap();
        assert_eq!(store("a").find::<Found>(&case), None);
    }
}
