//! The last lines of a console, for people.

use std::collections::VecDeque;

/// Lines kept.
const KEPT: usize = 4;

/// The last lines of one console.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail(VecDeque<String>);

impl Tail {
    /// Takes a new line; an empty one is not worth its place.
    pub(super) fn hear(&mut self, line: &str) {
        if line.is_empty() {
            return;
        }
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(line.into());
    }

    /// Returns them, the oldest first.
    pub fn lines(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns them as one text.
    #[must_use]
    pub fn text(&self) -> String {
        self.lines().collect::<Vec<_>>().join("\n")
    }
}
