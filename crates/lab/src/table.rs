//! A table, for the terminal and for a report alike.

use console::{Alignment, measure_text_width, pad_str};
use std::fmt;

/// A table whose first column names its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// Heads of the columns; when none has a name, the line is left out.
    pub head: Vec<String>,
    /// As many cells in each as there are heads.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub fn new<'a>(title: &str, head: impl IntoIterator<Item = &'a str>) -> Self {
        let head = head.into_iter().map(str::to_owned).collect();
        Self { title: title.into(), head, rows: Vec::new() }
    }

    /// Returns the table in Markdown, without its title. Columns of figures but for the first stand on the
    /// right, those of words on the left.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let side = |column| if column > 0 && self.has_figures(column) { "---:" } else { "---" };
        let sides = (0..self.head.len()).map(side);
        let sides: Vec<String> = sides.map(str::to_owned).collect();
        let rows = self.rows.iter().map(|row| line(row));
        line(&self.head) + &line(&sides) + &rows.collect::<String>()
    }

    /// Returns the title, and below it the table in Markdown.
    pub fn titled_markdown(&self) -> String {
        format!("{}:\n\n{}", self.title, self.markdown())
    }

    /// Returns true unless a column has more words than figures.
    fn has_figures(&self, column: usize) -> bool {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let bare = cells.map(|cell| cell.trim_start_matches(['<', '>', '=', '+', '-', '±', ' ']));
        let some = bare.filter(|bare| !bare.is_empty());
        let is_figure = |bare: &&str| bare.starts_with(|first: char| first.is_ascii_digit());
        let (figures, words): (Vec<_>, Vec<_>) = some.partition(is_figure);
        figures.len() >= words.len()
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| {
            let cells = std::iter::once(&self.head).chain(&self.rows);
            cells.filter_map(|row| row.get(column)).map(|c| measure_text_width(c)).max()
        };
        let widths: Vec<_> = (0..self.head.len()).map(|c| width(c).unwrap_or(0)).collect();
        writeln!(f, "{}", self.title)?;
        let named = self.head.iter().any(|head| !head.is_empty());
        for row in named.then_some(&self.head).into_iter().chain(&self.rows) {
            let mut line = String::from(" ");
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                let side = if column == 0 { Alignment::Left } else { Alignment::Right };
                line.push_str(if column == 0 { " " } else { "  " });
                line.push_str(&pad_str(cell, width, side, None));
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_without_names_take_no_line() {
        let mut table = Table::new("Facts", ["", ""]);
        table.row(["missed", "0"].map(String::from));
        assert_eq!(table.to_string(), "Facts\n  missed  0\n");
    }

    #[test]
    fn numbers_stand_on_the_right_in_markdown_too() {
        let mut table = Table::new("Latency", ["", "p50"]);
        table.row(["dispatch", "9.21 µs"].map(String::from));
        assert_eq!(table.markdown(), "|  | p50 |\n| --- | ---: |\n| dispatch | 9.21 µs |\n");
    }

    #[test]
    fn words_stand_on_the_left_in_markdown() {
        let mut table = Table::new("Checks", ["", "value", "goal", ""]);
        table.row(["late", "9.21 µs", "<= 5", "FAILS"].map(String::from));
        table.row(["lost", "-", "= 0", "not measured"].map(String::from));
        let sides = |table: &Table| table.markdown().lines().nth(1).unwrap().to_owned();
        assert_eq!(sides(&table), "| --- | ---: | ---: | --- |");
        table.row(["sent", "not measured", "5 to 6", "holds"].map(String::from));
        assert_eq!(sides(&table), "| --- | ---: | ---: | --- |", "some figures may be missing");
        let mut table = Table::new("Cost", ["", "above"]);
        table.row(["x", "+2.2 %"].map(String::from));
        assert_eq!(sides(&table), "| --- | ---: |");
    }

    #[test]
    fn columns_align() {
        let mut table = Table::new("Latency", ["", "p50", "max"]);
        table.row(["dispatch", "9.21 µs", "1 ms"].map(String::from));
        table.row(["response", "4 µs", "120 µs"].map(String::from));
        let expected = "Latency\n                p50     max\n  dispatch  9.21 µs    1 ms\n  response     4 µs  120 µs\n";
        assert_eq!(table.to_string(), expected);
    }
}
