//! Bars of several parts each, one after the other.

use super::axis::{Axis, RIGHT, WIDTH, point, round_up};
use super::furniture::{Entry, LEGEND_ROW, Legend, Sample, Zone, color, hover};
use crate::quantity::number;
use maud::{Markup, html};

/// From one bar to the next, and its height.
const STEP: f64 = 26.0;
const THICK: f64 = 15.0;
/// Room for names before the bars, and for a figure behind them.
const BEFORE: f64 = 250.0;
const BEHIND: f64 = 90.0;
/// Room for one row of the legend, and for labels below.
const TOP: f64 = 44.0;
const FOOT: f64 = 52.0;

/// Draws a bar for each of `rows`, of a name and as many values as there are `parts`, in this unit; what is
/// behind a bar is the sum.
#[must_use]
pub fn stacks(parts: &[&str], rows: &[(String, Vec<f64>)], unit: &str) -> Markup {
    let sum = |row: &(String, Vec<f64>)| row.1.iter().sum::<f64>();
    let longest = rows.iter().map(sum).fold(0.0, f64::max);
    if longest <= 0.0 {
        return html! { p { "Nothing was measured." } };
    }
    let entry = |(part, name)| Entry { name, sample: Sample::Swatch(color(part)) };
    let entries = parts.iter().copied().enumerate().map(entry).collect();
    let legend = Legend { entries, right: RIGHT, room: RIGHT, top: TOP - 30.0 };
    let top = TOP + LEGEND_ROW * (legend.rows() - 1) as f64;
    let bottom = top + STEP * rows.len() as f64;
    let across = Axis::linear(0.0..=round_up(longest), (BEFORE, RIGHT - BEHIND));
    let (mut shapes, mut zones) = (Vec::new(), Vec::new());
    for (index, row) in rows.iter().enumerate() {
        let y = top + STEP * index as f64;
        let (mut begin, mut told) = (0.0, row.0.clone());
        for (part, value) in row.1.iter().enumerate() {
            let (from, to) = (across.place(begin), across.place(begin + value));
            shapes.push(html! {
                rect class=(color(part)) x=(point(from)) y=(point(y + (STEP - THICK) / 2.0)) width=(point(to - from)) height=(point(THICK)) {}
            });
            begin += value;
            told += &format!("\n{} {} {unit}", parts.get(part).unwrap_or(&""), number(*value));
        }
        let (middle, behind) = (point(y + STEP / 2.0), point(across.place(begin) + 8.0));
        shapes.push(html! {
            text.legend text-anchor="end" x=(point(BEFORE - 10.0)) y=(middle) dy="0.35em" { (row.0) }
            text.label x=(behind) y=(middle) dy="0.35em" { (format!("{begin:.0} {unit}")) }
        });
        zones.push(Zone { x: (0.0, RIGHT), y: (y, y + STEP), text: told });
    }
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {}", bottom + FOOT)) role="img" aria-label=(unit) {
            (across.grid(true, (bottom, top), 6.0, number))
            text.label text-anchor="middle" x=(point((BEFORE + RIGHT) / 2.0)) y=(point(bottom + 42.0)) { (unit) }
            @for shape in &shapes { (shape) }
            (legend.draw())
            (hover(&zones))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_one_behind_the_other() {
        let rows = [("one".into(), vec![1.0, 3.0]), ("two".into(), vec![2.0, 0.0])];
        let drawn = stacks(&["a", "b"], &rows, "ns").into_string();
        // The bars have 494 user units for 5 ns.
        let width = (RIGHT - BEHIND - BEFORE) / 5.0;
        for (class, from, ns) in [("s0", 0.0, 1.0), ("s1", 1.0, 3.0), ("s0", 0.0, 2.0)] {
            let x = point(BEFORE + from * width);
            assert!(drawn.contains(&format!("<rect class=\"{class}\" x=\"{x}\"")), "{drawn}");
            assert!(drawn.contains(&format!("width=\"{}\"", point(ns * width))), "{drawn}");
        }
        assert!(drawn.contains("4 ns") && drawn.contains("one"));
        assert!(stacks(&["a"], &[], "ns").into_string().contains("Nothing"));
    }
}
