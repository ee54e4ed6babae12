//! Single runs as dots, in columns, with a dash at each column's mean.

use super::axis::{Axis, LEFT, RIGHT, WIDTH, point, round_up};
use crate::quantity::number;
use maud::{Markup, html};

const HEIGHT: f64 = 300.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = HEIGHT - 46.0;
/// The first of the colours used, as in histograms.
const FIRST_COLOR: usize = 2;
/// How far apart dots of one column stand at most, user units.
const SPREAD: f64 = 9.0;

/// What belongs together: one colour.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    /// What it is.
    pub name: &'a str,
    /// Each a column, by the number of its place, and the values in it.
    pub columns: Vec<(usize, Vec<f64>)>,
}

/// Draws `groups` side by side above `places`; values are 0 or more, in `unit`.
#[must_use]
pub fn dots(groups: &[Group], places: &[String], unit: &str) -> Markup {
    let values = || groups.iter().flat_map(|g| &g.columns).flat_map(|(_, values)| values);
    let Some(most) = values().copied().reduce(f64::max).filter(|most| *most > 0.0) else {
        return html! { p { "Nothing was measured." } };
    };
    let y = Axis::linear(0.0..=round_up(most), (BOTTOM, TOP));
    let width = (RIGHT - LEFT) / places.len().max(1) as f64;
    let lane = width / (groups.len() + 1) as f64;
    let middle =
        |place: usize, group: usize| LEFT + width * place as f64 + lane * (group + 1) as f64;
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(format!("runs in {unit}")) {
            (y.grid(false, (LEFT, RIGHT), 6.0, number))
            text.label x="4" y=(point(TOP - 28.0)) { (unit) }
            @for (place, name) in places.iter().enumerate() {
                text.label text-anchor="middle" x=(point(LEFT + width * (place as f64 + 0.5))) y=(point(BOTTOM + 20.0)) { (name) }
            }
            @for (index, group) in groups.iter().enumerate() {
                @for (place, values) in &group.columns {
                    (column(index, group.name, middle(*place, index), values, &y, unit))
                }
                @let x = LEFT + 90.0 + 190.0 * index as f64;
                rect class=(format!("swatch s{}", index + FIRST_COLOR)) x=(point(x)) y="6" width="14" height="14" rx="3" {}
                text.legend x=(point(x + 21.0)) y="18" { (group.name) }
            }
        }
    }
}

fn column(index: usize, name: &str, x: f64, values: &[f64], y: &Axis, unit: &str) -> Markup {
    let class = format!("series s{}", index + FIRST_COLOR);
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    // In order of measuring, from left to right.
    let step = 2.0 * SPREAD / values.len().max(2) as f64;
    let place = |nth: usize| x - SPREAD + step * (nth as f64 + 0.5);
    html! {
        @if !values.is_empty() {
            line class=(class) x1=(point(x - 1.8 * SPREAD)) x2=(point(x + 1.8 * SPREAD))
                y1=(point(y.place(mean))) y2=(point(y.place(mean))) {
                title { (name) ": mean " (number(mean)) " " (unit) }
            }
        }
        @for (nth, value) in values.iter().enumerate() {
            circle class=(class) cx=(point(place(nth))) cy=(point(y.place(*value))) r="3" {
                title { (name) ": " (number(*value)) " " (unit) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_is_a_dot_and_every_column_has_its_mean() {
        let group = |name, columns| Group { name, columns };
        let groups = [
            group("a", vec![(0, vec![1.0, 2.0, 3.0]), (1, vec![4.0])]),
            group("b", vec![(1, Vec::new())]),
        ];
        let page = dots(&groups, &["one".into(), "two".into()], "ms").into_string();
        assert_eq!(page.matches("<circle").count(), 4);
        assert_eq!(page.matches("mean").count(), 2);
        assert!(page.contains("a: mean 2 ms"), "{page}");
        assert!(dots(&[], &[], "ms").into_string().contains("Nothing"));
    }
}
