//! What an experiment found, in the one form all of ours have.
//!
//! `results/NAME/result.json` holds parameters, figures, and checks; the exit
//! code follows from the checks.

mod check;
mod directory;
mod files;

pub use check::{AGREES, Check, Goal, KNOWN_TO_FAIL, NOT_MEASURED, TOO_FEW, UNDECIDED};
pub use directory::{Directory, lock_file};
pub use files::{has_place, write_file, write_json};

use crate::table::Table;
use serde::Serialize;
use serde_json::{Map, Value};

/// Result of one experiment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    /// Short name, also the directory's.
    pub name: String,
    /// True if every check holds.
    holds: bool,
    /// Under which conditions: versions, sizes, the system description.
    pub parameters: Map<String, Value>,
    /// What was measured.
    pub figures: Map<String, Value>,
    /// What the host had to do with it, such as real time. In virtual time all
    /// the rest is equal from run to run.
    pub host: Map<String, Value>,
    /// What was demanded of it.
    checks: Vec<Check>,
}

impl Outcome {
    /// Returns an outcome without findings: everything holds.
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), holds: true, ..Self::default() }
    }

    /// Records a condition.
    pub fn parameter(&mut self, name: &str, value: impl Into<Value>) {
        self.parameters.insert(name.into(), value.into());
    }

    /// Records a figure.
    pub fn figure(&mut self, name: &str, value: impl Into<Value>) {
        self.figures.insert(name.into(), value.into());
    }

    /// Records a demand and whether it is met.
    pub fn check(&mut self, check: Check) {
        self.holds &= check.holds();
        self.checks.push(check);
    }

    /// Takes back demands on values that could not be found.
    pub fn forget_unknown(&mut self) {
        self.checks.retain(|check| check.value.is_some());
        self.holds = self.checks.iter().all(Check::holds);
    }

    /// Returns everything demanded so far.
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// Returns what was demanded, what was found, and whether that is enough.
    pub fn table(&self) -> Table {
        let mut table = Table::new("Checks", Check::HEAD);
        self.checks.iter().for_each(|check| table.row(check.row()));
        table
    }

    /// Returns which demands were not met, a line for each.
    #[must_use]
    pub fn objections(&self) -> Vec<String> {
        let failed = self.checks.iter().filter(|check| check.fails());
        failed.map(|c| format!("{}: {}, goal {}", c.name, c.value_text(), c.goal)).collect()
    }

    /// Returns true when all of it is met.
    pub fn holds(&self) -> bool {
        self.holds
    }

    /// Returns the process's exit code: 0 when all demands are met or the result is only
    /// to be reported, else 1.
    pub fn exit_code(&self, report_only: bool) -> u8 {
        u8::from(!report_only && self.checks.iter().any(Check::fails))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(values: &[f64]) -> Outcome {
        let mut outcome = Outcome::new("demo");
        for &value in values {
            outcome.check(Check::new("missed", value, "activations", Goal::Exactly(0.0)));
        }
        outcome
    }

    #[test]
    fn one_failed_check_fails_the_whole_unless_only_reported() {
        for (values, code) in [(&[][..], 0), (&[0.0, 0.0], 0), (&[0.0, 2.0, 0.0], 1)] {
            let outcome = outcome(values);
            assert_eq!(outcome.holds(), code == 0);
            assert_eq!(outcome.exit_code(false), code);
            assert_eq!(outcome.exit_code(true), 0);
        }
    }

    #[test]
    fn the_file_tells_at_one_look_what_falls_short() {
        let directory = tempfile::tempdir().unwrap();
        let mut outcome = outcome(&[3.0]);
        outcome.parameter("pcpus", 2);
        outcome.figure("share", 0.25);
        Directory::create(directory.path(), "demo").unwrap().write_outcome(&outcome).unwrap();
        let text = std::fs::read(directory.path().join("demo/result.json")).unwrap();
        let read: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(read["holds"], false);
        assert_eq!(
            (&read["parameters"]["pcpus"], &read["figures"]["share"]),
            (&2.into(), &0.25.into())
        );
        let check = serde_json::json!({
            "name": "missed", "value": 3, "unit": "activations", "goal": "= 0", "holds": false
        });
        assert_eq!(read["checks"], Value::Array(vec![check]));
    }
}
