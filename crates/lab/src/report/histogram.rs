//! A histogram of latencies: logarithmic both ways, since what matters is far
//! out and rare.

use super::axis::{Axis, LEFT, RIGHT, WIDTH, point, round_down, round_up};
use crate::observe::{Distribution, time};
use crate::quantity::{count, duration};
use maud::{Markup, html};
use std::fmt::Write;

const HEIGHT: f64 = 340.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = HEIGHT - 46.0;
/// Bins for each factor of ten, at least: a narrow range has more, so that its
/// shape shows.
const BINS_PER_DECADE: f64 = 24.0;
/// Bins, about, when the range is narrow.
const BINS: f64 = 64.0;

/// The first of the colours used: those before it stand for VMs elsewhere on
/// the page.
const FIRST_COLOR: usize = 2;

/// One distribution to draw.
#[derive(Clone, Copy, Debug)]
pub struct Series<'a> {
    /// What it is.
    pub name: &'a str,
    /// Its values, ticks.
    pub values: &'a Distribution,
}

/// Draws `series` (two at most have colours that stand apart), in ticks of a
/// counter that runs at `counter_hz`.
#[must_use]
pub fn histogram(series: &[Series], counter_hz: u64) -> Markup {
    let Some((low, high)) = range(series) else {
        return html! { p { "Nothing was measured." } };
    };
    let us = |ticks: u32| time(u64::from(ticks.max(1)), counter_hz).as_secs_f64() * 1e6;
    let edges = edges(low, high);
    let binned: Vec<_> = series.iter().map(|s| bins(s.values, &edges)).collect();
    let most = binned.iter().flatten().copied().max().unwrap_or(1);
    let x = Axis::logarithmic(round_down(us(low))..=round_up(us(high)).max(1e-3), (LEFT, RIGHT));
    #[allow(clippy::cast_precision_loss)] // a height on paper
    let y = Axis::logarithmic(0.5..=round_up(most as f64), (BOTTOM, TOP));
    let place = |ticks: u32| x.place(us(ticks));
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label="latency histogram" {
            (x.grid(true, (BOTTOM, TOP), 10.0, axis_label))
            (y.grid(false, (LEFT, RIGHT), 6.0, |tick| if tick < 1.0 { "0".into() } else { decade(tick) }))
            @for (index, bins) in binned.iter().enumerate() {
                path class=(format!("series s{}", index + FIRST_COLOR)) d=(outline(bins, &edges, place, &y)) {}
            }
            @for (index, one) in series.iter().enumerate() { (marks(index, one, counter_hz, place)) }
            @for (bin, pair) in edges.windows(2).enumerate() {
                (hover(series, &binned, bin, (place(pair[0]), place(pair[1])), pair, counter_hz))
            }
            text.label text-anchor="end" x=(point(RIGHT)) y=(point(HEIGHT - 8.0)) { "latency, logarithmic" }
            text.label x="4" y=(point(TOP - 28.0)) { "activations" }
            (legend(series))
        }
    }
}

fn range(series: &[Series]) -> Option<(u32, u32)> {
    let low = series.iter().filter_map(|s| s.values.min()).min()?;
    let high = series.iter().filter_map(|s| s.values.max()).max()?;
    Some((low.max(1), high.max(1)))
}

/// Edges of the bins, in whole ticks: none is narrower than one, or the
/// counter's coarseness would show as a comb.
fn edges(low: u32, high: u32) -> Vec<u32> {
    let decades = (f64::from(high) / f64::from(low)).log10();
    let factor = 10_f64.powf(1.0 / (BINS / decades.max(0.1)).max(BINS_PER_DECADE));
    let mut edges = vec![low];
    let mut edge = f64::from(low);
    let mut last = low;
    while last <= high {
        edge = (edge * factor).max(f64::from(last) + 1.0);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates
        let next = edge.ceil() as u32;
        last = next.max(last.saturating_add(1));
        edges.push(last);
        if last == u32::MAX {
            break;
        }
    }
    edges
}

fn bins(values: &Distribution, edges: &[u32]) -> Vec<u64> {
    let mut bins = vec![0; edges.len() - 1];
    for (value, count) in values.iter() {
        let bin = edges.partition_point(|&edge| edge <= value).saturating_sub(1);
        bins[bin.min(edges.len() - 2)] += count;
    }
    bins
}

/// The bins as one closed stepped line.
fn outline(bins: &[u64], edges: &[u32], place: impl Fn(u32) -> f64, y: &Axis) -> String {
    let mut path = format!("M{} {}", point(place(edges[0])), point(BOTTOM));
    for (bin, pair) in bins.iter().zip(edges.windows(2)) {
        #[allow(clippy::cast_precision_loss)] // a height on paper
        let height = point(y.place(*bin as f64));
        // Writing to a String cannot fail.
        let _ = write!(path, "V{height}H{}", point(place(pair[1])));
    }
    let _ = write!(path, "V{}Z", point(BOTTOM));
    path
}

/// Median, 99th percentile and maximum, dashed.
fn marks(index: usize, series: &Series, counter_hz: u64, place: impl Fn(u32) -> f64) -> Markup {
    let values = series.values;
    let marks =
        [("p50", values.percentile(500)), ("p99", values.percentile(990)), ("max", values.max())];
    html! { @for (name, value) in marks { @if let Some(value) = value {
        @let at = point(place(value));
        line class=(format!("mark s{}", index + FIRST_COLOR)) x1=(at) x2=(at) y1=(point(BOTTOM)) y2=(point(TOP)) {
            title { (series.name) " " (name) ": " (duration(time(u64::from(value), counter_hz))) }
        }
    } } }
}

fn hover(
    series: &[Series],
    binned: &[Vec<u64>],
    bin: usize,
    (left, right): (f64, f64),
    edges: &[u32],
    counter_hz: u64,
) -> Markup {
    let at = |ticks: u32| duration(time(u64::from(ticks), counter_hz));
    html! { @if binned.iter().any(|bins| bins[bin] > 0) {
        rect.hover x=(point(left)) y=(point(TOP)) width=(point((right - left).max(0.5))) height=(point(BOTTOM - TOP)) {
            title {
                (at(edges[0])) " to " (at(edges[1]))
                @for (one, bins) in series.iter().zip(binned) { "\n" (one.name) ": " (count(bins[bin])) }
            }
        }
    } }
}

fn legend(series: &[Series]) -> Markup {
    html! { @for (index, one) in series.iter().enumerate() {
        @let x = LEFT + 120.0 + 250.0 * index as f64;
        rect class=(format!("swatch s{}", index + FIRST_COLOR)) x=(point(x)) y="6" width="14" height="14" rx="3" {}
        text.legend x=(point(x + 21.0)) y="18" { (one.name) }
    } }
}

fn axis_label(us: f64) -> String {
    match us {
        ..0.9995 => format!("{:.0} ns", us * 1e3),
        ..999.5 => format!("{us:.0} µs"),
        ..999_500.0 => format!("{:.0} ms", us / 1e3),
        _ => format!("{:.0} s", us / 1e6),
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // ticks are whole and positive
fn decade(tick: f64) -> String {
    count(tick.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_value_is_in_the_bin_that_covers_it(values in proptest::collection::vec(1_u32..2_000_000, 1..200)) {
            let mut distribution = Distribution::default();
            distribution.extend(values.iter().copied());
            let edges = edges(distribution.min().unwrap(), distribution.max().unwrap());
            prop_assert!(edges.windows(2).all(|pair| pair[0] < pair[1]));
            for (bin, pair) in bins(&distribution, &edges).iter().zip(edges.windows(2)) {
                let inside = values.iter().filter(|v| (pair[0]..pair[1]).contains(v)).count();
                prop_assert_eq!(*bin, inside as u64);
            }
        }
    }

    #[test]
    fn extreme_values_are_drawn_too() {
        let mut distribution = Distribution::default();
        distribution.extend([0, 1, u32::MAX]);
        let drawing = histogram(&[Series { name: "x", values: &distribution }], 1_000_000_000);
        assert!(drawing.into_string().contains("<path"));
    }
}
