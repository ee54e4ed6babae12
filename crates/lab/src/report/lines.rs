//! Curves over a few points that stand equally far apart.

use super::alone;
use super::axis::{Axis, LEFT, RIGHT, WIDTH, point};
use crate::quantity::number;
use maud::{Markup, html};

const HEIGHT: f64 = 360.0;
/// Top of the plot, under a legend of one row.
const TOP: f64 = 44.0;
/// Each further row of the legend.
const ROW: f64 = 18.0;
/// Place for a name of the legend: short ones, any.
const PLACES: [(usize, f64); 2] = [(9, 84.0), (usize::MAX, 190.0)];
/// How many curves have colours of their own.
const COLORS: usize = 8;
const BOTTOM: f64 = HEIGHT - 56.0;
/// Radius of the mark at a point.
const MARK: f64 = 3.2;

/// What is measured over what varies.
#[derive(Clone, Debug)]
pub struct Chart<'a> {
    /// What varies, with its unit.
    pub across: &'a str,
    /// What is drawn.
    pub up: &'a str,
    /// Its unit.
    pub unit: &'a str,
    /// Where the upward axis ends; it begins at 0.
    pub most: f64,
    /// The points.
    pub values: Vec<f64>,
    /// A name and a figure for each point; not a number where there is none.
    /// Eight have colours of their own.
    pub curves: Vec<(&'a str, Vec<f64>)>,
    /// Names and heights of lines across the plot, for comparison.
    pub lines: Vec<(&'a str, f64)>,
}

impl Chart<'_> {
    /// For a page.
    #[must_use]
    pub fn draw(&self) -> Markup {
        html! { svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(self.up) {
            (self.content())
        } }
    }

    /// As a file of its own.
    #[must_use]
    pub fn file(&self) -> String {
        alone(&self.draw()).unwrap_or_default()
    }

    fn content(&self) -> Markup {
        let up = Axis::linear(0.0..=self.most, (BOTTOM, self.top()));
        let place = |index: usize| self.place(index);
        html! {
            (up.grid(false, (LEFT, RIGHT), 5.0, |tick| format!("{} {}", number(tick), self.unit)))
            @for (name, height) in &self.lines {
                @let at = point(up.place(*height));
                line.compared x1=(point(LEFT)) x2=(point(RIGHT)) y1=(at) y2=(at) {}
                text.label text-anchor="end" x=(point(RIGHT - 4.0)) y=(at) dy="-0.35em" { (name) }
            }
            @for (index, &value) in self.values.iter().enumerate() {
                text.label text-anchor="middle" x=(point(place(index))) y=(point(BOTTOM + 20.0)) { (number(value)) }
            }
            text.label text-anchor="middle" x=(point((LEFT + RIGHT) / 2.0)) y=(point(HEIGHT - 10.0)) { (self.across) }
            text.label x="4" y="16.0" { (self.up) }
            @for (number, (_, figures)) in self.curves.iter().enumerate() {
                path class=(format!("s{} curve", number % COLORS)) d=(path(figures, &up, place)) {}
                @for (index, &figure) in figures.iter().enumerate().filter(|(_, f)| f.is_finite()) {
                    (mark(number, place(index), up.place(figure)))
                }
            }
            (self.legend())
            @for index in 0..self.values.len() { (self.hover(index)) }
        }
    }

    fn place(&self, index: usize) -> f64 {
        #[allow(clippy::cast_precision_loss)] // a few points
        let (index, last) = (index as f64, (self.values.len().max(2) - 1) as f64);
        LEFT + 24.0 + (RIGHT - LEFT - 48.0) * index / last
    }

    fn legend(&self) -> Markup {
        let width = self.width_of_names();
        html! { @for (row, names) in self.curves.chunks(per_row(width)).enumerate() {
            @for (column, (name, _)) in names.iter().enumerate() {
                @let at = RIGHT - width * as_f64(names.len() - column);
                @let down = TOP - 18.0 + ROW * as_f64(row);
                (mark(row * per_row(width) + column, at, down))
                text.legend x=(point(at + 9.0)) y=(point(down)) dy="0.35em" { (name) }
            }
        } }
    }

    /// Room for each name of the legend.
    fn width_of_names(&self) -> f64 {
        let longest = self.curves.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let place = PLACES.into_iter().find(|(most, _)| longest <= *most);
        place.map_or(RIGHT - LEFT, |(_, width)| width)
    }

    /// Top of the plot, under the legend.
    fn top(&self) -> f64 {
        let rows = self.curves.len().div_ceil(per_row(self.width_of_names()));
        TOP + ROW * as_f64(rows.saturating_sub(1))
    }

    /// Says the figures of one point where the mouse stands.
    fn hover(&self, index: usize) -> Markup {
        let half = (RIGHT - LEFT) / 2.0 / (self.values.len().max(1) as f64);
        html! {
            rect.hover x=(point(self.place(index) - half)) y=(point(self.top())) width=(point(2.0 * half)) height=(point(BOTTOM - self.top())) {
                title {
                    (number(self.values[index])) " " (self.across)
                    @for (name, figures) in self.curves.iter().filter(|(_, f)| f[index].is_finite()) {
                        "\n" (name) " " (format!("{:.1} {}", figures[index], self.unit))
                    }
                }
            }
        }
    }
}

/// Each curve has marks of its own shape, for those who see no colours.
fn mark(number: usize, x: f64, y: f64) -> Markup {
    let (class, r) = (format!("s{}", number % COLORS), MARK);
    html! {
        @match number % 4 {
            0 => circle class=(class) cx=(point(x)) cy=(point(y)) r=(r) {},
            1 => rect class=(class) x=(point(x - r)) y=(point(y - r)) width=(2.0 * r) height=(2.0 * r) {},
            2 => path class=(class) d=(format!("M{:.1} {:.1}l{:.1} {:.1}h{:.1}Z", x, y - r, r, 2.0 * r, -2.0 * r)) {},
            _ => path class=(class) d=(format!("M{:.1} {:.1}l{r:.1} {r:.1} {:.1} {r:.1} {:.1} {:.1}Z", x, y - r, -r, -r, -r)) {},
        }
    }
}

fn path(figures: &[f64], up: &Axis, place: impl Fn(usize) -> f64) -> String {
    let known = figures.iter().enumerate().filter(|(_, figure)| figure.is_finite());
    let step = |(step, (index, &figure)): (usize, (usize, &f64))| {
        let letter = if step == 0 { "M" } else { "L" };
        format!("{letter}{} {}", point(place(index)), point(up.place(figure)))
    };
    known.enumerate().map(step).collect()
}

/// Names in a row of the legend, each with so much room.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a few
fn per_row(width: f64) -> usize {
    ((RIGHT - LEFT) / width).max(1.0) as usize
}

#[allow(clippy::cast_precision_loss)] // a few
fn as_f64(few: usize) -> f64 {
    few as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_without_a_figure_is_left_out_and_long_names_take_rows() {
        let names = ["on-demand-and-more"; 5];
        let chart = Chart {
            across: "f",
            up: "time",
            unit: "ms",
            most: 10.0,
            values: vec![0.0, 0.5, 1.0],
            curves: names.map(|name| (name, vec![1.0, f64::NAN, 2.0])).to_vec(),
            lines: Vec::new(),
        };
        assert!((chart.top() - TOP - ROW).abs() < 1e-9);
        let drawn = chart.file();
        assert!(!drawn.contains("NaN") && drawn.matches("on-demand-and-more 2.0 ms").count() == 5);
    }

    #[test]
    fn every_curve_and_point_is_drawn() {
        let chart = Chart {
            across: "period (ms)",
            up: "schedulable",
            unit: "%",
            most: 100.0,
            values: vec![5.0, 10.0, 40.0],
            curves: vec![("DSwO", vec![100.0, 50.0, 0.0]), ("PSwO", vec![100.0, 0.0, 0.0])],
            lines: vec![("half", 50.0)],
        };
        let file = chart.file();
        let middle = point((TOP + BOTTOM) / 2.0);
        let curve = format!(
            "M{} {}L{} {middle}L",
            point(LEFT + 24.0),
            point(TOP),
            point((LEFT + RIGHT) / 2.0)
        );
        assert!(file.contains(&curve), "{curve} in {file}");
        assert_eq!(file.matches("curve\" d=").count(), 2);
        assert!(file.contains("40 period (ms)\nDSwO 0.0 %\nPSwO 0.0 %"), "{file}");
        assert!(file.contains(&format!("y1=\"{middle}\" y2=\"{middle}\"")), "{file}");
        assert!(file.contains("xmlns") && !chart.draw().into_string().contains("xmlns"));
    }
}
