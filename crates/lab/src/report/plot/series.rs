//! The rows of a dataset, grouped by what has a colour.

use super::super::furniture;
use super::Plot;
use crate::dataset::Cell;

/// Rows of one colour, with a name in the legend.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub name: String,
    /// Style class: `s0` to `s7`.
    pub color: String,
    /// The place among the others, which chooses the shape of its marks.
    pub index: usize,
    pub rows: Vec<Row>,
}

/// One row, as far as the plot needs it.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// The column across as a number, if it is one.
    pub x: Option<f64>,
    /// The column upwards, likewise; where names stand upwards, that across.
    pub y: Option<f64>,
    /// The place on an axis of names.
    pub band: String,
    /// The value as people read it.
    pub text: String,
    /// Where the row ends, if it spans something.
    pub end: Option<f64>,
    /// The goal beside the value, and how people read it.
    pub goal: Option<(f64, String)>,
    /// Where the value lies, from the first to the second.
    pub interval: Option<(f64, f64)>,
}

/// Returns the series in the order in which they appear.
pub(super) fn of(plot: &Plot) -> Vec<Series> {
    let data = &plot.data;
    let bars = plot.mark == super::Mark::Bars;
    let (value, band) = if bars { (&plot.x, &plot.y) } else { (&plot.y, &plot.x) };
    let number = |key: &str, row: usize| data.column(key).0[row].number();
    let goal = |row| {
        let key = plot.goal.as_deref()?;
        Some((number(key, row)?, data.text(key, row)))
    };
    let interval = |row| {
        let (low, high) = plot.interval.as_ref()?;
        number(low, row).zip(number(high, row))
    };
    let mut all: Vec<Series> = Vec::new();
    for row in 0..data.column(value).0.len() {
        let name = plot.by.as_deref().map_or_else(String::new, |key| data.text(key, row));
        let place = all.iter().position(|series| series.name == name).unwrap_or_else(|| {
            let color = color(plot, row, all.len());
            let index = all.len();
            all.push(Series { name: name.clone(), color, index, rows: Vec::new() });
            index
        });
        all[place].rows.push(Row {
            x: number(&plot.x, row),
            y: number(value, row),
            band: data.text(band, row),
            text: data.text(value, row),
            end: plot.end.as_deref().and_then(|key| number(key, row)),
            goal: goal(row),
            interval: interval(row),
        });
    }
    all
}

/// The first two colours stand for VMs elsewhere on a page: single series have the third.
fn color(plot: &Plot, row: usize, index: usize) -> String {
    let chosen = plot.color.as_deref().map(|key| &plot.data.column(key).0[row]);
    let number = match chosen {
        Some(Cell::Count(number)) => *number as usize,
        _ if plot.by.is_none() || plot.mark == super::Mark::Histogram => index + 2,
        _ => index,
    };
    furniture::color(number)
}

/// Returns the places on an axis of names, in the order in which they appear.
pub(super) fn bands(series: &[Series]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for row in series.iter().flat_map(|one| &one.rows) {
        if !all.contains(&row.band) {
            all.push(row.band.clone());
        }
    }
    all
}
