//! What every plot has: a legend, hover texts, names of axes.

use super::super::axis::{LEFT, RIGHT, point};
use super::series::Series;
use super::{LEGEND_ROW, Sheet, TOP};
use maud::{Markup, html};

/// Radius of the mark at a point.
const MARK: f64 = 3.2;
/// Room that a letter of the legend takes, and what stands before a name.
const LETTER: f64 = 7.5;
const BEFORE: f64 = 28.0;

/// Where the pointer finds a text.
pub(super) struct Zone {
    pub x: (f64, f64),
    pub y: (f64, f64),
    pub text: String,
}

/// Returns the texts that appear under the pointer.
pub(super) fn hover(zones: &[Zone]) -> Markup {
    html! { @for zone in zones {
        rect.hover x=(point(zone.x.0)) y=(point(zone.y.0)) width=(point((zone.x.1 - zone.x.0).max(0.5)))
            height=(point((zone.y.1 - zone.y.0).max(0.5))) { title { (zone.text) } }
    } }
}

/// Returns the names of both axes.
pub(super) fn names(across: &str, up: &str, sheet: Sheet) -> Markup {
    html! {
        text.label text-anchor="middle" x=(point((sheet.left + sheet.right) / 2.0)) y=(point(sheet.bottom + 42.0)) { (across) }
        text.label x="4" y="16.0" { (up) }
    }
}

/// Returns a mark: each series has a shape of its own, for readers that see no colours.
pub(super) fn mark(series: &Series, x: f64, y: f64) -> Markup {
    let r = MARK;
    let class = &series.color;
    html! {
        @match series.index % 4 {
            0 => circle class=(class) cx=(point(x)) cy=(point(y)) r=(r) {},
            1 => rect class=(class) x=(point(x - r)) y=(point(y - r)) width=(2.0 * r) height=(2.0 * r) {},
            2 => path class=(class) d=(format!("M{:.1} {:.1}l{:.1} {:.1}h{:.1}Z", x, y - r, r, 2.0 * r, -2.0 * r)) {},
            _ => path class=(class) d=(format!("M{:.1} {:.1}l{r:.1} {r:.1} {:.1} {r:.1} {:.1} {:.1}Z", x, y - r, -r, -r, -r)) {},
        }
    }
}

/// Returns how many rows the legend of `series` takes.
pub(super) fn legend_rows(series: &[Series]) -> usize {
    series.len().div_ceil(per_row(series)).max(1)
}

/// Returns the legend: names in rows above the plot, with marks or with swatches.
pub(super) fn legend(series: &[Series], marks: bool) -> Markup {
    let width = width(series);
    html! { @for (row, some) in series.chunks(per_row(series)).enumerate() {
        @for (column, one) in some.iter().enumerate() {
            @let x = RIGHT - width * (some.len() - column) as f64;
            @let y = TOP - 30.0 + LEGEND_ROW * row as f64;
            @if marks { (mark(one, x + 7.0, y)) }
            @else { rect class=(format!("swatch {}", one.color)) x=(point(x)) y=(point(y - 6.0)) width="12" height="12" rx="3" {} }
            text.legend x=(point(x + 18.0)) y=(point(y)) dy="0.35em" { (one.name) }
        }
    } }
}

/// Returns the room that each name of the legend has.
fn width(series: &[Series]) -> f64 {
    let longest = series.iter().map(|one| one.name.chars().count()).max().unwrap_or(0);
    longest as f64 * LETTER + BEFORE
}

/// Returns how many names stand in a row; the vertical axis's name stands left of them.
fn per_row(series: &[Series]) -> usize {
    ((RIGHT - LEFT - 120.0) / width(series)).max(1.0) as usize
}
