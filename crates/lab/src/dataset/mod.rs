//! Results as typed columns with units. A table for people, CSV and JSON for programs, and
//! every plot follow from the same columns, so a number is written down once.
//!
//! | module | story |
//! | --- | --- |
//! | [`cell`] | one value |
//! | [`mod@unit`] | what a column counts, and how people read it |
//! | `forms` | the table, the CSV file, the JSON value |

mod cell;
mod forms;
mod unit;

pub use cell::Cell;
pub use unit::Unit;

use crate::observe::Distribution;

/// The percentiles of every summary, with their names: thousandths of all values.
const PERCENTILES: [(&str, u64); 3] = [("p50", 500), ("p99", 990), ("p99.9", 999)];

/// A named set of rows, all with the same columns.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Dataset {
    name: String,
    title: String,
    columns: Vec<Column>,
    rows: usize,
}

/// All values of one kind, one for each row.
#[derive(Clone, Debug, PartialEq)]
struct Column {
    key: String,
    head: String,
    unit: Unit,
    /// The unit in which people read it, and how many digits behind the point.
    shown: (Unit, Option<usize>),
    readers: Readers,
    cells: Vec<Cell>,
}

/// Which forms have a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readers {
    All,
    People,
    Programs,
}

/// A dataset in the making: what its rows are made from, and the columns so far.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder<R> {
    dataset: Dataset,
    rows: Vec<R>,
}

impl Dataset {
    /// Begins a dataset with a row for each of `rows`. `name` is its key in `result.json`
    /// and names its CSV file; `title` stands above its table.
    pub fn of<R>(name: &str, title: &str, rows: impl IntoIterator<Item = R>) -> Builder<R> {
        let rows: Vec<R> = rows.into_iter().collect();
        let (name, title) = (name.into(), title.into());
        let dataset = Self { name, title, columns: Vec::new(), rows: rows.len() };
        Builder { dataset, rows }
    }

    /// Returns the same under another name.
    pub fn renamed(self, name: &str) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Returns the key in `result.json`, which is also the stem of the CSV file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns true when there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the column whose key is `key`: its cells, what people call it, its unit.
    ///
    /// # Panics
    /// When there is none: keys are written in our own code.
    pub(crate) fn column(&self, key: &str) -> (&[Cell], &str, Unit) {
        let column = self.columns.iter().find(|column| column.key == key);
        let column = column.unwrap_or_else(|| panic!("{} has no column {key}", self.name));
        (&column.cells, &column.head, column.unit)
    }

    /// Returns the cell of column `key` as people read it.
    pub(crate) fn text(&self, key: &str, row: usize) -> String {
        let column = self.columns.iter().find(|column| column.key == key);
        column.map_or_else(String::new, |column| column.text(row))
    }

    /// Returns the rows that have one of `values` in column `key`.
    pub fn only(&self, key: &str, values: &[&str]) -> Self {
        self.rows_where(key, |cell| values.iter().any(|value| *cell == (*value).into()))
    }

    /// Returns the rows that have something in column `key`.
    pub fn known(&self, key: &str) -> Self {
        self.rows_where(key, |cell| *cell != Cell::Missing)
    }

    fn rows_where(&self, key: &str, wanted: impl Fn(&Cell) -> bool) -> Self {
        let keep: Vec<bool> = self.column(key).0.iter().map(wanted).collect();
        let mut some = self.clone();
        some.rows = keep.iter().filter(|keep| **keep).count();
        for column in &mut some.columns {
            let mut keep = keep.iter();
            column.cells.retain(|_| keep.next().is_some_and(|keep| *keep));
        }
        some
    }
}

impl<R> Builder<R> {
    /// Adds a column. Its key and, with spaces, its head are `key`; the unit is appended
    /// to the key, so that programs find it in the name.
    pub fn column<C: Into<Cell>>(mut self, key: &str, unit: Unit, of: impl Fn(&R) -> C) -> Self {
        let cells = self.rows.iter().map(|row| of(row).into()).collect();
        let (key, head) = (format!("{key}{}", unit.suffix()), key.replace('_', " "));
        let (shown, readers) = ((unit, None), Readers::All);
        self.dataset.columns.push(Column { key, head, unit, shown, readers, cells });
        self
    }

    /// Adds a column of names, and the like, without a unit.
    pub fn name<C: Into<Cell>>(self, key: &str, of: impl Fn(&R) -> C) -> Self {
        self.column(key, Unit::None, of)
    }

    /// Sets what people read above the last column.
    pub fn head(self, head: &str) -> Self {
        self.last(|column| column.head = head.into())
    }

    /// Sets how many digits people see behind the point in the last column.
    pub fn digits(self, digits: usize) -> Self {
        self.last(|column| column.shown.1 = Some(digits))
    }

    /// Sets the unit of time in which people read the last column, and its digits.
    pub fn shown_in(self, unit: Unit, digits: usize) -> Self {
        self.last(|column| column.shown = (unit, Some(digits)))
    }

    /// Leaves the last column out of the table.
    pub fn for_programs(self) -> Self {
        self.last(|column| column.readers = Readers::Programs)
    }

    /// Leaves the last column out of CSV and JSON.
    pub fn for_people(self) -> Self {
        self.last(|column| column.readers = Readers::People)
    }

    fn last(mut self, change: impl FnOnce(&mut Column)) -> Self {
        if let Some(column) = self.dataset.columns.last_mut() {
            change(column);
        }
        self
    }

    /// Adds how many values a distribution has, its extremes, its mean, and the percentiles that so many values tell.
    /// `scale` turns its ticks into `unit`.
    pub fn summary<'a>(
        self,
        unit: Unit,
        scale: impl Fn(&R) -> f64,
        of: impl Fn(&R) -> Option<&'a Distribution>,
    ) -> Self {
        let at = |row: &R, value: fn(&Distribution) -> Option<f64>| {
            of(row).and_then(value).map(|ticks| ticks * scale(row))
        };
        let mut all = self
            .column("samples", Unit::None, |row| of(row).map(Distribution::count))
            .column("min", unit, |row| at(row, |all| all.min().map(f64::from)))
            .column("mean", unit, |row| at(row, Distribution::mean));
        for (name, permille) in PERCENTILES {
            let percentile = |row: &R| of(row)?.told_percentile(permille).map(f64::from);
            all = all.column(name, unit, |row| percentile(row).map(|ticks| ticks * scale(row)));
        }
        all.column("max", unit, |row| at(row, |all| all.max().map(f64::from)))
    }

    /// Ends the dataset.
    pub fn done(self) -> Dataset {
        self.dataset
    }
}

#[cfg(test)]
mod tests;
