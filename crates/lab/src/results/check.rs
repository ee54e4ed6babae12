//! A demand on a figure.

use crate::quantity::number;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::fmt;

/// A figure, what is demanded of it, and whether it is met.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[must_use]
pub struct Check {
    /// What is checked, in words.
    pub name: String,
    /// What was found; `null` when it could not be found, which fails.
    #[serde(serialize_with = "integer_if_whole")]
    pub value: Option<f64>,
    /// Of the value and the goal.
    pub unit: String,
    /// What was demanded.
    #[serde(serialize_with = "as_text")]
    pub goal: Goal,
    holds: bool,
    /// Why it is known not to hold, if it is: the demand stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<&'static str>,
    #[serde(skip)]
    kind: Kind,
}

/// The verdict on a demand that is not met, as is known.
pub const KNOWN_TO_FAIL: &str = "FAILS, as known";

/// What follows when a check does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The command fails.
    Demand,
    /// That, and no document quotes the figures: they are not what they are called.
    Premise,
    /// Nothing: that is a finding.
    Statement,
}

/// What is demanded of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// This value and no other.
    Exactly(f64),
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
    /// From the first to the second, both included.
    Between(f64, f64),
}

impl Check {
    /// What heads a table of checks.
    pub const HEAD: [&str; 4] = ["", "value", "goal", ""];

    /// Compares `value` with `goal`. A value that is absent meets no goal.
    pub fn new(name: &str, value: impl Into<Option<f64>>, unit: &str, goal: Goal) -> Self {
        let value = value.into();
        let holds = value.is_some_and(|value| goal.met_by(value));
        let (name, unit) = (name.into(), unit.into());
        Self { name, value, unit, goal, holds, known: None, kind: Kind::Demand }
    }

    /// Something that must have happened: 1 when it did.
    pub fn done(name: &str, done: bool) -> Self {
        Self::new(name, f64::from(u8::from(done)), "", Goal::Exactly(1.0))
    }

    /// Makes it a statement of a paper about its own figures: that ours do not agree is a
    /// finding, not a fault.
    pub fn as_statement(self) -> Self {
        Self { kind: Kind::Statement, ..self }
    }

    /// Makes it a premise of the other figures: where it does not hold, they are not what they are
    /// called, and [documents](crate::answer::Answer::write_documents) do not quote them.
    pub fn as_premise(self) -> Self {
        Self { kind: Kind::Premise, ..self }
    }

    /// Says why it is known not to hold, in a sentence. It fails as it would without, and its reader
    /// knows that it is no news.
    pub fn as_known(self, why: &'static str) -> Self {
        Self { known: Some(why), ..self }
    }

    /// Returns why it is known not to hold, if it is.
    pub fn known(&self) -> Option<&'static str> {
        self.known
    }

    /// Returns true when it is a premise that does not hold.
    pub fn spoils(&self) -> bool {
        !self.holds && self.kind == Kind::Premise
    }

    /// Returns true when it is a demand on us that is not met.
    pub fn fails(&self) -> bool {
        !self.holds && self.kind != Kind::Statement
    }

    /// Returns in a word how it came out.
    pub fn verdict(&self) -> &'static str {
        match (self.kind == Kind::Statement, self.holds) {
            (false, true) => "holds",
            (false, false) if self.known.is_some() => KNOWN_TO_FAIL,
            (false, false) => "FAILS",
            (true, true) => "agrees",
            (true, false) => "differs",
        }
    }

    /// Returns true when it is what a paper says of its figures, and nothing that is demanded.
    pub fn is_statement(&self) -> bool {
        self.kind == Kind::Statement
    }

    /// Returns how it came out, as a row below [`Check::HEAD`].
    pub fn row(&self) -> [String; 4] {
        [self.name.clone(), self.value_text(), self.goal.to_string(), self.verdict().into()]
    }

    /// Returns true if the demand is met.
    pub fn holds(&self) -> bool {
        self.holds
    }

    /// The value with its unit, for people.
    pub fn value_text(&self) -> String {
        let value = self.value.map_or_else(|| "none".into(), number);
        if self.unit.is_empty() { value } else { format!("{value} {}", self.unit) }
    }
}

impl Goal {
    fn met_by(self, value: f64) -> bool {
        match self {
            Self::Exactly(goal) => value == goal,
            Self::AtLeast(goal) => value >= goal,
            Self::AtMost(goal) => value <= goal,
            Self::Between(low, high) => (low..=high).contains(&value),
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Exactly(goal) => write!(f, "= {}", number(goal)),
            Self::AtLeast(goal) => write!(f, ">= {}", number(goal)),
            Self::AtMost(goal) => write!(f, "<= {}", number(goal)),
            Self::Between(low, high) => write!(f, "{} to {}", number(low), number(high)),
        }
    }
}

fn as_text<S: Serializer>(goal: &Goal, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(goal)
}

/// Counts appear as integers.
fn integer_if_whole<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    let whole = |v: f64| v.fract() == 0.0 && v.abs() < 9e15;
    let json = value.map_or(Value::Null, |v| if whole(v) { (v as i64).into() } else { v.into() });
    json.serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_include_their_bounds() {
        let goals =
            [Goal::Exactly(2.0), Goal::AtLeast(2.0), Goal::AtMost(2.0), Goal::Between(1.0, 2.0)];
        for goal in goals {
            assert!(Check::new("x", 2.0, "", goal).holds(), "{goal}");
        }
        assert!(!Check::new("x", 2.001, "", Goal::Exactly(2.0)).holds());
        assert!(!Check::new("x", 1.999, "", Goal::AtLeast(2.0)).holds());
        assert!(!Check::new("x", 2.001, "", Goal::AtMost(2.0)).holds());
        assert!(!Check::new("x", 0.999, "", Goal::Between(1.0, 2.0)).holds());
    }

    #[test]
    fn what_is_known_to_fail_fails_and_says_so() {
        let check = |value| Check::new("late", value, "us", Goal::AtMost(1.0)).as_known("Why.");
        assert!(check(2.0).fails() && check(2.0).verdict() == KNOWN_TO_FAIL);
        assert!(!check(1.0).fails() && check(1.0).verdict() == "holds");
        assert_eq!(serde_json::to_value(check(2.0)).unwrap()["known"], "Why.");
        let new = Check::new("late", 2.0, "us", Goal::AtMost(1.0));
        assert_eq!(new.verdict(), "FAILS");
        assert_eq!(serde_json::to_value(new).unwrap().get("known"), None);
    }

    #[test]
    fn what_is_missing_or_no_number_meets_nothing() {
        for value in [None, Some(f64::NAN)] {
            for goal in [Goal::AtLeast(f64::MIN), Goal::AtMost(f64::MAX)] {
                assert!(!Check::new("x", value, "", goal).holds());
            }
        }
    }
}
