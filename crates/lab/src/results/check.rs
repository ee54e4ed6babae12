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
    /// From where to where the value may be: it was estimated, and chance moves it. None: it is exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<[f64; 2]>,
    /// Why it is known not to hold, if it is: the demand stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<&'static str>,
    #[serde(skip)]
    kind: Kind,
}

/// The verdict on a demand that is not met, as is known.
pub const KNOWN_TO_FAIL: &str = "FAILS, as known";
/// The value and the verdict where nothing was measured.
pub const NOT_MEASURED: &str = "not measured";
/// The verdict on a statement that our figures bear out.
pub const AGREES: &str = "agrees";
/// The verdict on a statement that chance decides.
pub const UNDECIDED: &str = "within what runs differ by";
/// The verdict on one for which there are too few values to tell what chance does.
pub const TOO_FEW: &str = "too few runs to tell";

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

    /// Compares `value` with `goal`. A value that is absent or no number meets no goal: it was not
    /// measured.
    pub fn new(name: &str, value: impl Into<Option<f64>>, unit: &str, goal: Goal) -> Self {
        let value = value.into().filter(|value| !value.is_nan());
        let holds = value.is_some_and(|value| goal.met_by(value));
        let (name, unit, range, known) = (name.into(), unit.into(), None, None);
        Self { name, value, unit, goal, holds, range, known, kind: Kind::Demand }
    }

    /// Says from where to where the value may be, by what runs differ by. A demand is judged by its value
    /// all the same. A statement neither agrees nor differs where only a part of the range meets its goal.
    /// Ends that are no numbers: there are too few runs to tell.
    pub fn within(self, range: [f64; 2]) -> Self {
        Self { range: Some(range), ..self }
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

    /// Returns in a few words how it came out. What was not measured neither agrees nor differs.
    pub fn verdict(&self) -> &'static str {
        if self.value.is_none() {
            return NOT_MEASURED;
        }
        match (self.kind == Kind::Statement, self.holds) {
            (true, _) if self.is_of_too_few() => TOO_FEW,
            (true, _) if self.is_undecided() => UNDECIDED,
            (false, true) => "holds",
            (false, false) if self.known.is_some() => KNOWN_TO_FAIL,
            (false, false) => "FAILS",
            (true, true) => AGREES,
            (true, false) => "differs",
        }
    }

    /// Returns true if nothing tells from where to where the value may be, though it is an estimate.
    fn is_of_too_few(&self) -> bool {
        self.range.is_some_and(|range| range.iter().any(|end| end.is_nan()))
    }

    /// Returns true if the goal is met in a part of the range only.
    fn is_undecided(&self) -> bool {
        self.range.is_some_and(|range| {
            let met = range.map(|end| self.goal.met_by(end)) == [true; 2];
            !met && !self.goal.missed_between(range)
        })
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

    /// The value with its unit, for people, and from where to where it may be.
    pub fn value_text(&self) -> String {
        let Some(value) = self.value else { return NOT_MEASURED.into() };
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        let range = self.range.filter(|_| !self.is_of_too_few());
        let range = range.map(|[low, high]| format!(" ({} to {})", number(low), number(high)));
        format!("{}{unit}{}", number(value), range.unwrap_or_default())
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

    /// Returns true if no value between these ends meets it.
    fn missed_between(self, [least, most]: [f64; 2]) -> bool {
        match self {
            Self::Exactly(goal) => goal < least || goal > most,
            Self::AtLeast(goal) => most < goal,
            Self::AtMost(goal) => least > goal,
            Self::Between(low, high) => most < low || least > high,
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
    fn what_is_missing_or_no_number_meets_nothing_and_was_not_measured() {
        for value in [None, Some(f64::NAN)] {
            for goal in [Goal::AtLeast(f64::MIN), Goal::AtMost(f64::MAX)] {
                let check = Check::new("x", value, "%", goal);
                assert!(!check.holds() && check.fails());
                assert_eq!([check.value_text(), check.verdict().into()], [NOT_MEASURED; 2]);
                assert_eq!(check.as_statement().verdict(), NOT_MEASURED);
            }
        }
    }

    #[test]
    fn a_statement_that_chance_decides_neither_agrees_nor_differs() {
        let check = |goal, range| Check::new("x", 1.0, "", goal).within(range);
        let said = |goal, range| check(goal, range).as_statement().verdict();
        assert_eq!(said(Goal::AtMost(1.02), [0.9, 1.1]), UNDECIDED);
        assert_eq!(said(Goal::AtMost(1.02), [0.99, 1.01]), "agrees");
        assert_eq!(said(Goal::AtMost(0.95), [0.96, 1.04]), "differs");
        assert_eq!(said(Goal::AtLeast(1.0), [0.9, 1.1]), UNDECIDED);
        assert_eq!(said(Goal::AtLeast(1.2), [0.9, 1.1]), "differs");
        assert_eq!(said(Goal::Between(0.95, 1.05), [0.96, 1.04]), "agrees");
        assert_eq!(said(Goal::Between(0.95, 1.05), [0.9, 1.1]), UNDECIDED);
        assert_eq!(said(Goal::Between(1.2, 1.3), [0.9, 1.1]), "differs");
        assert_eq!(said(Goal::Exactly(2.0), [0.9, 1.1]), "differs");
        assert_eq!(said(Goal::AtMost(2.0), [f64::NAN; 2]), TOO_FEW);
        assert_eq!(check(Goal::AtMost(2.0), [f64::NAN; 2]).value_text(), "1");
        let demand = check(Goal::AtMost(1.02), [0.9, 1.1]);
        assert_eq!((demand.verdict(), demand.value_text().as_str()), ("holds", "1 (0.9 to 1.1)"));
        assert!(check(Goal::AtMost(0.99), [0.9, 1.1]).fails(), "a demand is judged by its value");
    }
}
