//! One grammar of plots: a dataset, a mark, and which column stands where.
//!
//! | module | story |
//! | --- | --- |
//! | `series` | the rows of a dataset, grouped by what has a colour |
//! | `bands` | lines and dots above places, bars beside names |
//! | `spans` | areas and curves over time, histograms |

mod bands;
mod series;
mod spans;

use super::axis::{LEFT, RIGHT, WIDTH, point};
use super::furniture::{Entry, LEGEND_ROW, Legend, Sample, Zone, hover};
use crate::dataset::{Dataset, Unit};
use maud::{Markup, html};
use series::Series;

/// Height of a plot whose rows do not decide on it, user units.
const HEIGHT: f64 = 340.0;
/// Top of the plot under a legend of one row.
const TOP: f64 = 44.0;
/// Under the plot: labels of the horizontal axis, and its name.
const FOOT: f64 = 52.0;

/// What stands for a row of the dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Lines,
    Curves,
    Dots,
    Bars,
    Areas,
    Histogram,
}

/// A drawing of a dataset.
#[derive(Clone, Debug)]
#[must_use]
pub struct Plot {
    data: Dataset,
    mark: Mark,
    x: String,
    y: String,
    by: Option<String>,
    color: Option<String>,
    end: Option<String>,
    goal: Option<String>,
    top: Option<f64>,
    rules: Vec<(String, f64)>,
    interval: Option<(String, String)>,
}

/// What a mark makes of the data.
struct Drawn {
    axes: Markup,
    shapes: Markup,
    zones: Vec<Zone>,
}

/// Where the plot's four edges are.
#[derive(Clone, Copy)]
struct Sheet {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Plot {
    fn new(mark: Mark, data: &Dataset, x: &str, y: &str) -> Self {
        let (x, y) = (x.into(), y.into());
        let (by, color, end, goal, top) = (None, None, None, None, None);
        let (data, rules, interval) = (data.clone(), Vec::new(), None);
        Self { data, mark, x, y, by, color, end, goal, top, rules, interval }
    }

    /// Plots column `y` over the values of `x`, which stand equally far apart, as lines.
    pub fn lines(data: &Dataset, x: &str, y: &str) -> Self {
        Self::new(Mark::Lines, data, x, y)
    }

    /// Plots column `y` over the numbers in `x`, each where it stands in its range, as curves.
    pub fn curves(data: &Dataset, x: &str, y: &str) -> Self {
        Self::new(Mark::Curves, data, x, y)
    }

    /// Plots each row as a dot above its `x`, with a dash at each group's mean.
    pub fn dots(data: &Dataset, x: &str, y: &str) -> Self {
        Self::new(Mark::Dots, data, x, y)
    }

    /// Plots column `value` as a bar beside each row's `name`.
    pub fn bars(data: &Dataset, name: &str, value: &str) -> Self {
        Self::new(Mark::Bars, data, value, name)
    }

    /// Plots column `y` as areas upon each other, each row from `begin` to `end`.
    pub fn areas(data: &Dataset, begin: &str, end: &str, y: &str) -> Self {
        Self { end: Some(end.into()), ..Self::new(Mark::Areas, data, begin, y) }
    }

    /// Plots how often (`count`) which `value` occurred, logarithmic both ways, since what
    /// matters is far out and rare. Median, 99th percentile and maximum are dashed.
    pub fn histogram(data: &Dataset, value: &str, count: &str) -> Self {
        Self::new(Mark::Histogram, data, value, count)
    }

    /// Gives each value of column `key` a colour and a place in the legend.
    pub fn by(self, key: &str) -> Self {
        Self { by: Some(key.into()), ..self }
    }

    /// Chooses colours by the numbers in column `key`.
    pub fn colored(self, key: &str) -> Self {
        Self { color: Some(key.into()), ..self }
    }

    /// Draws a line at the goal of each bar, the most that it should be.
    pub fn goal(self, key: &str) -> Self {
        Self { goal: Some(key.into()), ..self }
    }

    /// Sets where the upward axis ends.
    pub fn up_to(self, top: f64) -> Self {
        Self { top: Some(top), ..self }
    }

    /// Draws at each point of a line the interval from column `low` to column `high`, where the
    /// value lies.
    pub fn interval(self, low: &str, high: &str) -> Self {
        Self { interval: Some((low.into(), high.into())), ..self }
    }

    /// Draws a dashed line across the plot, for comparison.
    pub fn rule(mut self, name: &str, value: f64) -> Self {
        self.rules.push((name.into(), value));
        self
    }

    /// Draws it for a page.
    pub fn draw(&self) -> Markup {
        let series = series::of(self);
        if !series.iter().any(|one| one.rows.iter().any(|row| row.y.is_some())) {
            return html! { p { "Nothing was measured." } };
        }
        let legend = self.by.as_ref().map(|_| self.legend(&series));
        let top = match &legend {
            None if self.mark == Mark::Bars => 8.0,
            None => TOP,
            Some(legend) => TOP + LEGEND_ROW * (legend.rows() - 1) as f64,
        };
        let left = if self.mark == Mark::Bars { bands::begin_of_bars(&series) } else { LEFT };
        let bottom = match self.mark {
            Mark::Bars => {
                top + bands::STEP * series.iter().map(|s| s.rows.len()).sum::<usize>() as f64
            }
            Mark::Areas => 160.0_f64.max(top + 100.0),
            _ => HEIGHT - FOOT,
        };
        let sheet = Sheet { left, right: RIGHT, top, bottom };
        let drawn = match self.mark {
            Mark::Lines => bands::lines(self, &series, sheet),
            Mark::Curves => spans::curves(self, &series, sheet),
            Mark::Dots => bands::dots(self, &series, sheet),
            Mark::Bars => bands::bars(&series, sheet),
            Mark::Areas => spans::areas(self, &series, sheet),
            Mark::Histogram => spans::histogram(self, &series, sheet),
        };
        let (across, up) = (self.axis_name(&self.x), self.axis_name(&self.y));
        html! {
            svg viewBox=(format!("0 0 {WIDTH} {}", bottom + FOOT)) role="img" aria-label=(format!("{up} over {across}")) {
                (drawn.axes)
                (names(&across, if self.mark == Mark::Bars { "" } else { &up }, sheet))
                (drawn.shapes)
                @if let Some(legend) = &legend { (legend.draw()) }
                (hover(&drawn.zones))
            }
        }
    }

    /// Returns its legend; the vertical axis's name stands left of it.
    fn legend<'a>(&self, series: &'a [Series]) -> Legend<'a> {
        let sample = |one: &Series| match self.mark {
            Mark::Lines => Sample::Mark(one.index, one.color.clone()),
            _ => Sample::Swatch(one.color.clone()),
        };
        let entries = series.iter().map(|one| Entry { name: &one.name, sample: sample(one) });
        let (right, room, top) = (RIGHT, RIGHT - LEFT - 120.0, TOP - 30.0);
        Legend { entries: entries.collect(), right, room, top }
    }

    /// Returns what people call a column, with its unit.
    fn axis_name(&self, key: &str) -> String {
        let (_, head, unit) = self.data.column(key);
        match (unit, unit.sign()) {
            (Unit::Instructions, _) => format!("{head}, instructions"),
            (_, "") => head.into(),
            (_, sign) => format!("{head}, {sign}"),
        }
    }

    fn unit(&self, key: &str) -> Unit {
        self.data.column(key).2
    }
}

/// Returns the names of both axes.
fn names(across: &str, up: &str, sheet: Sheet) -> Markup {
    html! {
        text.label text-anchor="middle" x=(point((sheet.left + sheet.right) / 2.0)) y=(point(sheet.bottom + 42.0)) { (across) }
        text.label x="4" y="16.0" { (up) }
    }
}

/// Returns the greatest of all values, 0 without any.
fn most<'a>(series: &'a [Series], of: impl Fn(&'a series::Row) -> Option<f64>) -> f64 {
    series.iter().flat_map(|one| &one.rows).filter_map(of).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests;
