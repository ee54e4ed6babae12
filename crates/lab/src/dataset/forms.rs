//! The forms that follow from a dataset.

use super::{Cell, Column, Dataset, Readers};
use crate::table::Table;
use miette::{IntoDiagnostic, Result};
use serde_json::{Map, Value};

impl Dataset {
    /// Returns the table for people.
    pub fn table(&self) -> Table {
        let columns = self.read_by(Readers::People);
        let mut table = Table::new(&self.title, columns.iter().map(|column| column.head.as_str()));
        for row in 0..self.rows {
            table.row(columns.iter().map(|column| column.text(row)));
        }
        table
    }

    /// Returns the content of a CSV file (RFC 4180): a line of keys, then one for each row.
    ///
    /// # Errors
    /// None that a file in memory can cause; the writer's are passed on.
    pub fn csv(&self) -> Result<Vec<u8>> {
        let columns = self.read_by(Readers::Programs);
        let mut file = csv::Writer::from_writer(Vec::new());
        file.write_record(columns.iter().map(|column| &column.key)).into_diagnostic()?;
        for row in 0..self.rows {
            let fields = columns.iter().map(|column| column.cells[row].field());
            file.write_record(fields).into_diagnostic()?;
        }
        file.into_inner().into_diagnostic()
    }

    /// Returns an array with an object for each row, whose names are the columns' keys.
    pub fn json(&self) -> Value {
        let columns = self.read_by(Readers::Programs);
        let of_row = |row: usize| {
            let values = columns.iter().map(|c| (c.key.clone(), Value::from(&c.cells[row])));
            Value::Object(values.collect::<Map<_, _>>())
        };
        Value::Array((0..self.rows).map(of_row).collect())
    }

    fn read_by(&self, readers: Readers) -> Vec<&Column> {
        let read = |c: &&Column| c.readers == Readers::All || c.readers == readers;
        self.columns.iter().filter(read).collect()
    }
}

impl Column {
    pub(super) fn text(&self, row: usize) -> String {
        let (unit, digits) = self.shown;
        let scale = self.unit.seconds().zip(unit.seconds()).map(|(own, shown)| own / shown);
        match (self.cells[row].number(), scale) {
            (Some(value), Some(scale)) => unit.text(&Cell::Real(value * scale), digits),
            _ => unit.text(&self.cells[row], digits),
        }
    }
}
