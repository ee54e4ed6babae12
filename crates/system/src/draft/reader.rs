//! Reads one TOML table key by key, and complains about what is left.

use super::At;
use super::renamed;
use super::values::{Read, TABLE, expect};
use crate::code::Code;
use crate::nearest::did_you_mean;
use crate::problem::{Problems, Span};
use toml::de::{DeTable, DeValue};

/// One table being read.
pub(crate) struct Reader<'a, 'i> {
    table: &'a DeTable<'i>,
    span: Span,
    /// What messages call the table.
    title: &'static str,
    known: Vec<&'static str>,
}

impl<'a, 'i> Reader<'a, 'i> {
    pub(crate) fn new(table: &'a DeTable<'i>, span: Span, title: &'static str) -> Self {
        Self { table, span, title, known: Vec::new() }
    }

    /// Begins to read a value that ought to be a table; complains if it is not one.
    pub(crate) fn open(
        value: &'a At<DeValue<'i>>,
        title: &'static str,
        problems: &mut Problems,
    ) -> Option<Self> {
        let table = expect(value, &TABLE, problems, DeValue::as_table)?;
        Some(Self::new(table, value.span(), title))
    }

    /// Returns where the table stands.
    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    /// Returns the value of `key` as it stands, if it is there.
    pub(crate) fn get(&mut self, key: &'static str) -> Option<&'a At<DeValue<'i>>> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.table.get(key)
    }

    /// Returns the value of `key`, if it is there and readable.
    pub(crate) fn optional<T: Read>(
        &mut self,
        key: &'static str,
        problems: &mut Problems,
    ) -> Option<At<T>> {
        let value = self.get(key)?;
        Some(At::new(value.span(), T::read(value, problems)?))
    }

    /// Returns the value of `key`; complains, with an example, when it is not there.
    pub(crate) fn required<T: Read>(
        &mut self,
        key: &'static str,
        example: &str,
        problems: &mut Problems,
    ) -> Option<At<T>> {
        if self.require(key, example, problems) { self.optional(key, problems) } else { None }
    }

    /// Returns whether `key` is there; complains, with an example, when it is not.
    pub(crate) fn require(
        &mut self,
        key: &'static str,
        example: &str,
        problems: &mut Problems,
    ) -> bool {
        let there = self.get(key).is_some();
        if !there {
            problems
                .add(Code::MissingKey, self.span.clone(), format!("{} has no `{key}`", self.title))
                .hint(format!("for example `{key} = {example}`"));
        }
        there
    }

    /// Complains about every key that was not asked for.
    pub(crate) fn finish(self, problems: &mut Problems) {
        for (key, value) in self.table {
            let word = key.get_ref().as_ref();
            if !self.known.contains(&word) {
                let message = format!("{} knows no key `{word}`", self.title);
                let new = renamed::hint(word, value.get_ref(), &self.known);
                let hint = new.unwrap_or_else(|| did_you_mean(word, self.known.iter().copied()));
                problems.add(Code::UnknownKey, key.span(), message).hint(hint);
            }
        }
    }
}
