//! A figure for each of several names: a bar each, one below the other.

use super::axis::{Axis, RIGHT, WIDTH, point, round_up};
use crate::quantity::number;
use maud::{Markup, html};

const TOP: f64 = 8.0;
/// From one bar to the next, and how thick one is.
const STEP: f64 = 26.0;
const THICK: f64 = 15.0;
/// Under the last bar, the axis and what it is about.
const FOOT: f64 = 44.0;
/// Where bars begin: right of their names.
const BEGIN: f64 = 250.0;
/// Room for a figure behind its bar.
const BEHIND: f64 = 150.0;

/// One of them.
#[derive(Clone, Debug)]
pub struct Row {
    /// Of what.
    pub name: String,
    /// 0 or more.
    pub value: f64,
    /// The figure in words.
    pub text: String,
}

/// Draws `rows` to one scale; `across` says what the figures are, and in which unit.
#[must_use]
pub fn rows(rows: &[Row], across: &str) -> Markup {
    if rows.is_empty() {
        return html! { p { "Nothing was measured." } };
    }
    let most = rows.iter().map(|row| row.value).fold(0.0, f64::max);
    let most = if most > 0.0 { most } else { 1.0 };
    let x = Axis::linear(0.0..=round_up(most), (BEGIN, RIGHT - BEHIND));
    #[allow(clippy::cast_precision_loss)] // a few
    let (bottom, down) = (TOP + STEP * rows.len() as f64, |index: usize| TOP + STEP * index as f64);
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {}", bottom + FOOT)) role="img" aria-label=(across) {
            (x.grid(true, (bottom, TOP), 6.0, number))
            @for (index, row) in rows.iter().enumerate() {
                @let middle = point(down(index) + STEP / 2.0);
                @let width = x.place(row.value) - BEGIN;
                rect class="s2" x=(point(BEGIN)) y=(point(down(index) + (STEP - THICK) / 2.0))
                    width=(point(width)) height=(point(THICK)) {
                    title { (row.name) ": " (row.text) }
                }
                text.legend text-anchor="end" x=(point(BEGIN - 10.0)) y=(middle) dy="0.35em" { (row.name) }
                text.label x=(point(BEGIN + width + 8.0)) y=(middle) dy="0.35em" { (row.text) }
            }
            text.label text-anchor="middle" x=(point((BEGIN + RIGHT - BEHIND) / 2.0)) y=(point(bottom + FOOT - 6.0)) { (across) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_figure() {
        let row = |name: &str, value| Row { name: name.into(), value, text: format!("{value} ms") };
        let page = rows(&[row("none", 100.0), row("on-demand", 25.0), row("x", 0.0)], "ms");
        let page = page.into_string();
        let whole = RIGHT - BEHIND - BEGIN;
        for width in [whole, whole / 4.0, 0.0] {
            assert!(page.contains(&format!("width=\"{}\"", point(width))), "{width}: {page}");
        }
        assert!(page.contains("on-demand: 25 ms"));
        assert!(rows(&[row("none", 0.0)], "ms").into_string().contains("width=\"0.0\""));
        assert!(rows(&[], "ms").into_string().contains("Nothing"));
    }
}
