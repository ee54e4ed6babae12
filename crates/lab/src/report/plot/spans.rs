//! Marks on an axis of numbers: areas and curves over time, bins of a histogram.

use super::super::axis::{Axis, point, round_down, round_up};
use super::super::furniture::Zone;
use super::series::Series;
use super::{Drawn, Plot, Sheet, most};
use crate::dataset::Cell;
use crate::observe::{is_told, nearest_rank};
use crate::quantity::{count, number};
use maud::html;
use std::fmt::Write;

/// More spans than this have no hover text: it would outweigh the page.
const HOVERED: usize = 300;
/// Bins for each factor of ten, at least: a narrow range has more, so that its shape shows.
const BINS_PER_DECADE: f64 = 24.0;
/// Bins, about, when the range is narrow.
const BINS: f64 = 64.0;

/// Series upon each other. Rows of different series that begin at once belong together.
pub(super) fn areas(plot: &Plot, series: &[Series], sheet: Sheet) -> Drawn {
    let mut spans: Vec<(f64, f64)> = Vec::new();
    for row in series.iter().flat_map(|one| &one.rows) {
        let span = row.x.unwrap_or(0.0);
        if spans.last().is_none_or(|(last, _)| *last < span) {
            spans.push((span, row.end.unwrap_or(span)));
        }
    }
    let (first, last) = (spans.first().map_or(0.0, |s| s.0), spans.last().map_or(1.0, |s| s.1));
    let x = Axis::linear(first..=last, (sheet.left, sheet.right));
    let y = Axis::linear(0.0..=1.0, (sheet.bottom, sheet.top));
    let height = |one: &Series, begin: f64| {
        let here = one.rows.partition_point(|row| row.x.is_some_and(|x| x < begin));
        let row = one.rows.get(here).filter(|row| row.x == Some(begin));
        row.and_then(|row| row.y).unwrap_or(0.0)
    };
    let floor = |below: &[Series], begin| below.iter().map(|one| height(one, begin)).sum::<f64>();
    let outline = |level: usize| {
        let mut path = String::new();
        for (begin, end) in &spans {
            let at = point(y.place(floor(&series[..=level], *begin)));
            let letter = if path.is_empty() { 'M' } else { 'L' };
            let _ =
                write!(path, "{letter}{} {at}H{}", point(x.place(*begin)), point(x.place(*end)));
        }
        for (begin, end) in spans.iter().rev() {
            let at = point(y.place(floor(&series[..level], *begin)));
            let _ = write!(path, "L{} {at}H{}", point(x.place(*end)), point(x.place(*begin)));
        }
        path + "Z"
    };
    let shapes = html! { @for (level, one) in series.iter().enumerate() {
        path class=(format!("area {}", one.color)) d=(outline(level)) {}
    } };
    let unit = plot.unit(&plot.y);
    let zone = |&(begin, end): &(f64, f64)| {
        let mut text = format!("{begin:.1} s to {end:.1} s");
        for one in series {
            let share = unit.text(&Cell::Real(height(one, begin)), None);
            let _ = write!(text, "\n{}: {share}", one.name);
        }
        Zone { x: (x.place(begin), x.place(end)), y: (sheet.top, sheet.bottom), text }
    };
    let hovered = spans.len() <= HOVERED;
    let zones = if hovered { spans.iter().map(zone).collect() } else { Vec::new() };
    let axes = html! {
        (y.grid(false, (sheet.left, sheet.right), 4.0, |tick| format!("{:.0} %", tick * 100.0)))
        (x.grid(true, (sheet.bottom, sheet.top), 10.0, |tick| format!("{} s", number(tick))))
    };
    Drawn { axes, shapes, zones }
}

/// A line for each series, from row to row.
pub(super) fn curves(plot: &Plot, series: &[Series], sheet: Sheet) -> Drawn {
    let places = series.iter().flat_map(|one| &one.rows).filter_map(|row| row.x);
    let ends = places.fold(None, |ends: Option<(f64, f64)>, x| {
        Some(ends.map_or((x, x), |(first, last)| (first.min(x), last.max(x))))
    });
    let (first, last) = ends.unwrap_or((0.0, 1.0));
    let top =
        round_up(plot.top.unwrap_or_else(|| most(series, |row| row.y)).max(f64::MIN_POSITIVE));
    let x = Axis::linear(first..=last, (sheet.left, sheet.right));
    let y = Axis::linear(0.0..=top, (sheet.bottom, sheet.top));
    let outline = |one: &Series| {
        let mut path = String::new();
        for (at, value) in one.rows.iter().filter_map(|row| row.x.zip(row.y)) {
            let letter = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{letter}{} {}", point(x.place(at)), point(y.place(value)));
        }
        path
    };
    let shapes = html! { @for one in series {
        path class=(format!("{} curve", one.color)) d=(outline(one)) {}
    } };
    let unit = plot.unit(&plot.x);
    let axes = html! {
        (y.grid(false, (sheet.left, sheet.right), 5.0, number))
        (x.grid(true, (sheet.bottom, sheet.top), 10.0, |tick| unit.text(&Cell::Real(tick), None)))
    };
    Drawn { axes, shapes, zones: Vec::new() }
}

/// Values of one series, ascending, with how often each occurred.
type Counts = Vec<(f64, u64)>;

/// How often which value occurred, as stepped areas.
pub(super) fn histogram(plot: &Plot, series: &[Series], sheet: Sheet) -> Drawn {
    let all: Vec<Counts> = series.iter().map(counts).collect();
    let edges = edges(&all);
    let binned: Vec<Vec<u64>> = all.iter().map(|counts| bins(counts, &edges)).collect();
    let (low, high) =
        (edges[0], all.iter().filter_map(|c| c.last()).map(|c| c.0).fold(0.0, f64::max));
    let most = binned.iter().flatten().copied().max().unwrap_or(1);
    let x = Axis::logarithmic(round_down(low)..=round_up(high), (sheet.left, sheet.right));
    let y = Axis::logarithmic(0.5..=round_up(most as f64), (sheet.bottom, sheet.top));
    let unit = plot.unit(&plot.x);
    let outline = |bins: &[u64]| {
        let mut path = format!("M{} {}", point(x.place(edges[0])), point(sheet.bottom));
        for (bin, pair) in bins.iter().zip(edges.windows(2)) {
            let _ = write!(path, "V{}H{}", point(y.place(*bin as f64)), point(x.place(pair[1])));
        }
        path + &format!("V{}Z", point(sheet.bottom))
    };
    let text = |value: f64| unit.text(&Cell::Real(value), None);
    let shapes = html! { @for ((one, counts), bins) in series.iter().zip(&all).zip(&binned) {
        path class=(format!("series {}", one.color)) d=(outline(bins)) {}
        @for (name, permille) in [("p50", 500), ("p99", 990), ("max", 1_000)] {
            @let all = counts.iter().map(|(_, count)| count).sum();
            @let told = permille == 1_000 || is_told(all, permille);
            @if let Some(value) = nearest_rank(counts.iter().copied(), all, permille).filter(|_| told) {
                @let at = point(x.place(value));
                line class=(format!("mark {}", one.color)) x1=(at) x2=(at) y1=(point(sheet.bottom)) y2=(point(sheet.top)) {
                    title { (one.name) " " (name) ": " (text(value)) }
                }
            }
        }
    } };
    let zone = |bin: usize| {
        let mut said = format!("{} to {}", text(edges[bin]), text(edges[bin + 1]));
        for (one, bins) in series.iter().zip(&binned) {
            let _ = write!(said, "\n{}: {}", one.name, count(bins[bin]));
        }
        let place = |edge: usize| x.place(edges[edge]);
        Zone { x: (place(bin), place(bin + 1)), y: (sheet.top, sheet.bottom), text: said }
    };
    let filled = (0..edges.len() - 1).filter(|&bin| binned.iter().any(|bins| bins[bin] > 0));
    let label = |tick: f64| if tick < 1.0 { "0".into() } else { count(tick.round() as u64) };
    let axes = html! {
        (x.grid(true, (sheet.bottom, sheet.top), 10.0, |tick| short(tick, unit.seconds())))
        (y.grid(false, (sheet.left, sheet.right), 6.0, label))
    };
    Drawn { axes, shapes, zones: filled.map(zone).collect() }
}

fn counts(series: &Series) -> Counts {
    let some = series.rows.iter().filter_map(|row| Some((row.x?.max(1e-3), row.y? as u64)));
    let mut counts: Counts = some.collect();
    counts.sort_by(|a, b| a.0.total_cmp(&b.0));
    counts
}

/// Returns the edges of the bins, whole steps of the clock apart: or its coarseness would
/// show as a comb.
fn edges(all: &[Counts]) -> Vec<f64> {
    let mut values: Vec<f64> = all.iter().flatten().map(|(value, _)| *value).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let (low, high) =
        (values.first().copied().unwrap_or(1.0), values.last().copied().unwrap_or(1.0));
    let gaps = values.windows(2).map(|pair| pair[1] - pair[0]);
    let step = gaps.fold(f64::INFINITY, f64::min).min(low);
    let decades = (high / low).log10();
    let factor = 10_f64.powf(1.0 / (BINS / decades.max(0.1)).max(BINS_PER_DECADE));
    let mut edges = vec![low];
    let mut last = low;
    while last <= high {
        let steps = ((last * factor - low) / step - 1e-6).ceil();
        last = (low + steps * step).max(last + step);
        edges.push(last);
    }
    edges
}

fn bins(counts: &[(f64, u64)], edges: &[f64]) -> Vec<u64> {
    let mut bins = vec![0; edges.len() - 1];
    for &(value, count) in counts {
        let bin = edges.partition_point(|&edge| edge <= value * (1.0 + 1e-9)).saturating_sub(1);
        bins[bin.min(edges.len() - 2)] += count;
    }
    bins
}

/// Returns a round time in the unit that fits; the plain number of what is no time.
fn short(tick: f64, seconds: Option<f64>) -> String {
    let Some(seconds) = seconds else { return number(tick) };
    match tick * seconds * 1e6 {
        us @ ..0.9995 => format!("{:.0} ns", us * 1e3),
        us @ ..999.5 => format!("{us:.0} µs"),
        us @ ..999_500.0 => format!("{:.0} ms", us / 1e3),
        us => format!("{:.0} s", us / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn every_value_is_in_the_bin_that_covers_it(values in proptest::collection::vec(1_u32..2_000_000, 1..200)) {
            let mut occurred: BTreeMap<u32, u64> = BTreeMap::new();
            values.iter().for_each(|value| *occurred.entry(*value).or_default() += 1);
            let counts: Counts = occurred.iter().map(|(&v, &n)| (f64::from(v), n)).collect();
            let edges = edges(std::slice::from_ref(&counts));
            prop_assert!(edges.windows(2).all(|pair| pair[0] < pair[1]) && edges.len() < 2_000);
            for (bin, pair) in bins(&counts, &edges).iter().zip(edges.windows(2)) {
                let covers = |v: f64| pair[0] <= v * (1.0 + 1e-9) && v * (1.0 + 1e-9) < pair[1];
                let inside = values.iter().filter(|v| covers(f64::from(**v))).count();
                prop_assert_eq!(*bin, inside as u64);
            }
        }
    }
}
