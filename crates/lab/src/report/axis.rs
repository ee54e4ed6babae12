//! From values to places on paper.

use maud::{Markup, html};
use std::ops::RangeInclusive;

/// Width of every drawing, user units.
pub(super) const WIDTH: f64 = 860.0;
/// Left edge of the plot: room for the labels of the vertical axis.
pub(super) const LEFT: f64 = 62.0;
/// Right edge of the plot: room for half a label.
pub(super) const RIGHT: f64 = WIDTH - 26.0;

/// Maps a range of values to a range of places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    values: (f64, f64),
    places: (f64, f64),
    logarithmic: bool,
}

impl Axis {
    /// Equal steps for equal differences.
    pub(super) fn linear(values: RangeInclusive<f64>, places: (f64, f64)) -> Self {
        Self { values: (*values.start(), *values.end()), places, logarithmic: false }
    }

    /// Equal steps for equal ratios; the values are positive.
    pub(super) fn logarithmic(values: RangeInclusive<f64>, places: (f64, f64)) -> Self {
        Self { values: (*values.start(), *values.end()), places, logarithmic: true }
    }

    /// Where `value` stands; outside the range, at its nearer end.
    pub(super) fn place(&self, value: f64) -> f64 {
        let scale = |v: f64| if self.logarithmic { v.max(f64::MIN_POSITIVE).ln() } else { v };
        let (low, high) = (scale(self.values.0), scale(self.values.1));
        let part = if high > low { (scale(value) - low) / (high - low) } else { 0.0 };
        let (from, to) = self.places;
        from + part.clamp(0.0, 1.0) * (to - from)
    }

    /// Round values in the range, about `wanted` of them.
    pub(super) fn ticks(&self, wanted: f64) -> Vec<f64> {
        let (low, high) = self.values;
        if self.logarithmic { log_ticks(low, high) } else { linear_ticks(low, high, wanted) }
    }

    /// Both axes as lines across the plot with labels: vertical ones for a
    /// horizontal axis that spans `others` of the other direction.
    pub(super) fn grid(
        &self,
        horizontal: bool,
        others: (f64, f64),
        wanted: f64,
        label: impl Fn(f64) -> String,
    ) -> Markup {
        let (from, to) = others;
        html! { @for tick in self.ticks(wanted) {
            @let at = point(self.place(tick));
            @if horizontal {
                line.grid x1=(at) x2=(at) y1=(point(from)) y2=(point(to)) {}
                text.label text-anchor="middle" x=(at) y=(point(from + 18.0)) { (label(tick)) }
            } @else {
                line.grid y1=(at) y2=(at) x1=(point(from)) x2=(point(to)) {}
                text.label text-anchor="end" x=(point(from - 8.0)) y=(at) dy="0.35em" { (label(tick)) }
            }
        } }
    }
}

/// A coordinate with as many digits as the eye has use for.
pub(super) fn point(place: f64) -> String {
    format!("{place:.1}")
}

/// The greatest 1, 2 or 5 times a power of ten that is not above `value`.
pub(super) fn round_down(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let step = [5.0, 2.0].into_iter().find(|step| value >= step * power * (1.0 - 1e-9));
    step.unwrap_or(1.0) * power
}

/// The smallest 1, 2 or 5 times a power of ten that is not below `value`.
pub(super) fn round_up(value: f64) -> f64 {
    let below = round_down(value);
    if value <= below * (1.0 + 1e-9) {
        return below;
    }
    // 2 comes after 1, 5 after 2, and 10 after 5.
    let lead = below / 10_f64.powf(below.log10().floor());
    if (1.5..3.0).contains(&lead) { below * 2.5 } else { below * 2.0 }
}

fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let decades = (high / low).log10();
    let leads: &[f64] = if decades > 4.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let exponents = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let all = exponents.flat_map(|e| leads.iter().map(move |lead| lead * 10_f64.powi(e)));
    all.filter(|tick| (low * 0.999..=high * 1.001).contains(tick)).collect()
}

fn linear_ticks(low: f64, high: f64, wanted: f64) -> Vec<f64> {
    if high <= low {
        return vec![low];
    }
    let step = round_up((high - low) / wanted);
    let first = (low / step).ceil();
    (0..)
        .map(|n| (first + f64::from(n)) * step)
        .take_while(|tick| *tick <= high + step * 1e-6)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs().max(1.0)
    }

    #[test]
    fn rounds_to_one_two_and_five() {
        for (value, down, up) in [
            (1.0, 1.0, 1.0),
            (1.3, 1.0, 2.0),
            (37.0, 20.0, 50.0),
            (0.06, 0.05, 0.1),
            (5e3, 5e3, 5e3),
        ] {
            assert!(near(round_down(value), down), "{value} down");
            assert!(near(round_up(value), up), "{value} up");
        }
    }

    #[test]
    fn ticks_are_round_and_inside() {
        let linear = Axis::linear(0.0..=37.0, (0.0, 1.0)).ticks(8.0);
        assert_eq!(linear, [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0]);
        let log = Axis::logarithmic(0.5..=20.0, (0.0, 1.0)).ticks(8.0);
        assert!(
            log.iter().zip([0.5, 1.0, 2.0, 5.0, 10.0, 20.0]).all(|(a, b)| near(*a, b)),
            "{log:?}"
        );
    }

    #[test]
    fn places_follow_the_scale_and_stay_on_the_paper() {
        let log = Axis::logarithmic(1.0..=100.0, (0.0, 200.0));
        assert!(near(log.place(10.0), 100.0) && near(log.place(0.0), 0.0));
        let down = Axis::linear(0.0..=10.0, (100.0, 0.0));
        assert!(near(down.place(2.5), 75.0) && near(down.place(11.0), 0.0));
    }
}
