//! Marks on an axis of names: lines and dots above places, bars beside names.

use super::super::axis::{Axis, point, round_up};
use super::super::furniture::{Zone, mark};
use super::series::{Row, Series, bands as names_of};
use super::{Drawn, Plot, Sheet, most};
use crate::quantity::number;
use maud::{Markup, html};
use std::fmt::Write;

/// Room that a letter of a bar's name takes.
const LETTER: f64 = 6.8;
/// Most room for the names of bars.
const MOST_ROOM: f64 = 540.0;
/// From one bar to the next, and how thick one is.
pub(super) const STEP: f64 = 26.0;
const THICK: f64 = 15.0;
/// Room for a figure behind its bar.
const BEHIND: f64 = 190.0;
/// How far apart dots of one column stand at most, user units.
const SPREAD: f64 = 9.0;

/// Returns where bars begin: right of their names.
pub(super) fn begin_of_bars(series: &[Series]) -> f64 {
    let longest = names_of(series).iter().map(|name| name.chars().count()).max().unwrap_or(0);
    (20.0 + LETTER * longest as f64).min(MOST_ROOM)
}

/// Places that stand equally far apart.
struct Bands {
    names: Vec<String>,
    step: f64,
    left: f64,
}

impl Bands {
    fn of(series: &[Series], sheet: Sheet) -> Self {
        let names = names_of(series);
        let step = (sheet.right - sheet.left) / names.len().max(1) as f64;
        Self { names, step, left: sheet.left }
    }

    fn middle(&self, name: &str) -> f64 {
        let index = self.names.iter().position(|other| other == name).unwrap_or(0);
        self.left + self.step * (index as f64 + 0.5)
    }

    fn labels(&self, sheet: Sheet) -> Markup {
        html! { @for name in &self.names {
            text.label text-anchor="middle" x=(point(self.middle(name))) y=(point(sheet.bottom + 20.0)) { (name) }
        } }
    }
}

fn upward(plot: &Plot, series: &[Series], sheet: Sheet) -> Axis {
    let rules = plot.rules.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let high = most(series, |row| row.interval.map(|(_, high)| high));
    let most = most(series, |row| row.y).max(high).max(rules);
    let top = plot.top.unwrap_or_else(|| round_up(most.max(f64::MIN_POSITIVE)).min(1.15 * most));
    Axis::linear(0.0..=top, (sheet.bottom, sheet.top))
}

fn axes(plot: &Plot, up: &Axis, bands: &Bands, sheet: Sheet) -> Markup {
    html! {
        (up.grid(false, (sheet.left, sheet.right), 5.0, number))
        (bands.labels(sheet))
        @for (name, height) in &plot.rules {
            @let at = point(up.place(*height));
            line.compared x1=(point(sheet.left)) x2=(point(sheet.right)) y1=(at) y2=(at) {}
            text.label text-anchor="end" x=(point(sheet.right - 4.0)) y=(at) dy="-0.35em" { (name) }
        }
    }
}

/// A line for each series, with a mark at each point.
pub(super) fn lines(plot: &Plot, series: &[Series], sheet: Sheet) -> Drawn {
    let (up, bands) = (upward(plot, series, sheet), Bands::of(series, sheet));
    let at = |row: &Row| row.y.map(|y| (bands.middle(&row.band), up.place(y)));
    let shapes = html! { @for one in series {
        path class=(format!("{} curve", one.color)) d=(path(one.rows.iter().filter_map(at))) {}
        @for row in &one.rows { @if let Some((low, high)) = row.interval {
            @let x = point(bands.middle(&row.band));
            line class=(format!("{} curve", one.color)) x1=(x) x2=(x) y1=(point(up.place(low))) y2=(point(up.place(high))) {}
        } }
        @for (x, y) in one.rows.iter().filter_map(at) { (mark(one.index, &one.color, x, y)) }
    } };
    let across = plot.data.column(&plot.x).1;
    let zone = |name: &String| {
        let mut text = format!("{across} {name}");
        for one in series {
            for row in one.rows.iter().filter(|row| row.band == *name && row.y.is_some()) {
                let _ = write!(text, "\n{} {}", one.name, row.text);
            }
        }
        let (middle, half) = (bands.middle(name), bands.step / 2.0);
        Zone { x: (middle - half, middle + half), y: (sheet.top, sheet.bottom), text }
    };
    let zones = bands.names.iter().map(zone).collect();
    Drawn { axes: axes(plot, &up, &bands, sheet), shapes, zones }
}

fn path(places: impl Iterator<Item = (f64, f64)>) -> String {
    let step = |(step, (x, y)): (usize, (f64, f64))| {
        format!("{}{} {}", if step == 0 { "M" } else { "L" }, point(x), point(y))
    };
    places.enumerate().map(step).collect()
}

/// Each row a dot; series stand side by side, in the order of measuring.
pub(super) fn dots(plot: &Plot, series: &[Series], sheet: Sheet) -> Drawn {
    let (up, bands) = (upward(plot, series, sheet), Bands::of(series, sheet));
    let lane = bands.step / (series.len() + 1) as f64;
    let unit = plot.unit(&plot.y);
    let (mut shapes, mut zones) = (Vec::new(), Vec::new());
    for (index, one) in series.iter().enumerate() {
        for name in &bands.names {
            let here = one.rows.iter().filter(|row| row.band == *name);
            let values: Vec<(f64, &str)> =
                here.filter_map(|row| Some((row.y?, row.text.as_str()))).collect();
            if values.is_empty() {
                continue;
            }
            let x = bands.middle(name) - bands.step / 2.0 + lane * (index + 1) as f64;
            let mean = values.iter().map(|(y, _)| y).sum::<f64>() / values.len() as f64;
            let step = 2.0 * SPREAD / values.len().max(2) as f64;
            let dash = point(up.place(mean));
            shapes.push(html! {
                line class=(format!("series {}", one.color)) x1=(point(x - 1.8 * SPREAD)) x2=(point(x + 1.8 * SPREAD)) y1=(dash) y2=(dash) {}
                @for (nth, (y, _)) in values.iter().enumerate() {
                    circle class=(format!("series {}", one.color)) cx=(point(x - SPREAD + step * (nth as f64 + 0.5))) cy=(point(up.place(*y))) r="3" {}
                }
            });
            let mean = unit.text(&mean.into(), None);
            let each: Vec<&str> = values.iter().map(|(_, text)| *text).collect();
            let text = format!("{}: mean {mean}\n{}", one.name, each.join(", "));
            zones.push(Zone {
                x: (x - lane / 2.0, x + lane / 2.0),
                y: (sheet.top, sheet.bottom),
                text,
            });
        }
    }
    Drawn {
        axes: axes(plot, &up, &bands, sheet),
        shapes: html! { @for s in shapes { (s) } },
        zones,
    }
}

/// A bar for each row, and a line where its goal is.
pub(super) fn bars(series: &[Series], sheet: Sheet) -> Drawn {
    let right = sheet.right - BEHIND;
    let goals = most(series, |row| row.goal.as_ref().map(|(goal, _)| *goal));
    let longest = most(series, |row| row.y).max(goals);
    let longest = if longest > 0.0 { longest } else { 1.0 };
    let across = Axis::linear(0.0..=round_up(longest), (sheet.left, right));
    let (mut shapes, mut zones) = (Vec::new(), Vec::new());
    let rows = series.iter().flat_map(|one| one.rows.iter().map(move |row| (one, row)));
    for (index, (one, row)) in rows.enumerate() {
        let top = sheet.top + STEP * index as f64;
        let width = across.place(row.y.unwrap_or(0.0)) - sheet.left;
        let missed = row.goal.as_ref().is_some_and(|(goal, _)| row.y.is_none_or(|y| y > *goal));
        let class = if missed { "over" } else { &one.color };
        let beside = row.goal.as_ref().map(|(_, goal)| format!(" of at most {goal}"));
        let text = format!("{}{}", row.text, beside.unwrap_or_default());
        let behind = row.goal.as_ref().map_or(0.0, |(goal, _)| across.place(*goal) - sheet.left);
        let middle = point(top + STEP / 2.0);
        shapes.push(html! {
            rect class=(class) x=(point(sheet.left)) y=(point(top + (STEP - THICK) / 2.0)) width=(point(width)) height=(point(THICK)) {}
            @if let Some((goal, _)) = &row.goal {
                @let at = point(across.place(*goal));
                line.goal x1=(at) x2=(at) y1=(point(top + 2.0)) y2=(point(top + STEP - 2.0)) {}
            }
            text.legend text-anchor="end" x=(point(sheet.left - 10.0)) y=(middle) dy="0.35em" { (row.band) }
            text.label x=(point(sheet.left + width.max(behind) + 8.0)) y=(middle) dy="0.35em" { (text) }
        });
        let text = format!("{}: {text}", row.band);
        zones.push(Zone { x: (0.0, sheet.right), y: (top, top + STEP), text });
    }
    let axes = across.grid(true, (sheet.bottom, sheet.top), 6.0, number);
    Drawn { axes, shapes: html! { @for shape in shapes { (shape) } }, zones }
}
