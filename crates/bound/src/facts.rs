//! What neither the image nor the source says: a table beside the source, with a reason for each
//! line. What the table says and the image does not bear out is an error, so that no line stays
//! behind when the code goes.

use crate::Error;
use serde::Deserialize;

/// The table.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// How often an exclusive access is tried again.
    pub exclusive: Exclusive,
    /// Loops in code that is not the project's own.
    #[serde(default, rename = "loop")]
    pub loops: Vec<LoopFact>,
    /// Where pointers to functions lead.
    #[serde(default, rename = "call")]
    pub calls: Vec<CallFact>,
    /// Pointers to functions that are called elsewhere.
    #[serde(default)]
    pub elsewhere: Vec<Elsewhere>,
    /// Calls by which functions come to call themselves, at some distance.
    #[serde(default, rename = "recursion")]
    pub recursions: Vec<RecursionFact>,
    /// Assembly that sets the stack pointer.
    #[serde(default)]
    pub empties: Vec<EmptiesFact>,
    /// Functions that tell kinds apart.
    #[serde(default)]
    pub dispatchers: Vec<String>,
    /// What guests come for.
    #[serde(default, rename = "kind")]
    pub kinds: Vec<Kind>,
}

/// How often an exclusive access is tried again.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exclusive {
    /// How often it is tried in all.
    pub times: u64,
    /// Why it is not more.
    pub why: String,
}

/// How often a loop runs that has no note.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopFact {
    /// The function that has the loop, or into which it was inlined.
    #[serde(rename = "in")]
    pub function: String,
    /// How often its header is executed each time that it is entered.
    pub times: u64,
    /// How often for a call whose third argument is a constant.
    pub by_size: Option<BySize>,
    /// Why it is not more.
    pub why: String,
}

/// How often a loop runs in a call whose third argument is a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BySize {
    /// What each round deals with, at least.
    pub bytes: u64,
    /// Rounds that deal with less, before or behind the others.
    pub rest: u64,
}

impl BySize {
    /// Returns how often the loop's header is executed at most for so many bytes.
    #[must_use]
    pub fn times(&self, size: u64) -> u64 {
        (size / self.bytes).saturating_add(1).max(self.rest.min(size) + 1)
    }
}

/// Where a call through a pointer leads.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallFact {
    /// The function that calls.
    pub from: String,
    /// The functions that may be called.
    pub to: Vec<String>,
    /// Why these and no others.
    pub why: String,
}

/// Functions to which something points, and which no guest's exception comes to call so.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Elsewhere {
    /// The functions.
    pub to: String,
    /// Why they are not called so.
    pub why: String,
}

/// How deep a function calls itself.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecursionFact {
    /// The function.
    pub of: String,
    /// How often it is on the stack at once at most.
    pub depth: u32,
    /// Why it is not more.
    pub why: String,
}

/// A piece of assembly that sets the stack pointer where the stack is as good as empty.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmptiesFact {
    /// The function.
    #[serde(rename = "in")]
    pub function: String,
    /// What stays above, bytes.
    pub above: u64,
    /// Why nothing else is needed any more.
    pub why: String,
}

/// One thing for which guests come.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// What people call it.
    pub name: String,
    /// Where it enters.
    pub entry: Entry,
    /// The functions that serve it, and other kinds only if these say so, too.
    pub through: Vec<String>,
    /// Functions that are not called: what comes after, or belongs to other kinds.
    #[serde(default)]
    pub without: Vec<String>,
}

/// An entry of the exception vectors from a guest in AArch64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Entry {
    /// A call, a trap or an abort.
    Synchronous,
    /// An interrupt.
    Interrupt,
}

impl Facts {
    /// Reads the table.
    ///
    /// # Errors
    /// When it is not well formed.
    pub fn parse(text: &str) -> Result<Self, Error> {
        toml::from_str(text).map_err(|error| Error::Facts(error.to_string()))
    }

    /// Returns how often all functions have to be summarized, so that each recursion is followed
    /// to its depth.
    #[must_use]
    pub fn passes(&self) -> u32 {
        self.recursions.iter().map(|fact| fact.depth).max().unwrap_or(1)
    }
}

/// Returns true if a name fits a pattern, in which `*` stands for anything.
#[must_use]
pub fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<_> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, name, expected) in [
            ("memcpy", "memcpy", true),
            ("memcpy", "memcpy2", false),
            ("<* as Policy>::needs", "<a::B as Policy>::needs", true),
            ("<* as Policy>::needs", "<a::B as Policy>::view", false),
            ("*", "", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }
}
