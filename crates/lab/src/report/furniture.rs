//! What every drawing has: a legend, hover texts, colours by number.

use super::axis::point;
use maud::{Markup, html};

/// How many colours there are.
const COLORS: usize = 8;
/// Radius of the mark at a point.
const MARK: f64 = 3.2;
/// Room that a letter of the legend takes, and what stands before a name.
const LETTER: f64 = 7.5;
const BEFORE: f64 = 28.0;
/// Side of the square before a name.
const SAMPLE: f64 = 12.0;
/// From one row of the legend to the next.
pub(super) const LEGEND_ROW: f64 = 18.0;

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

/// Returns the style class of colour `number`: `s0` to `s7`, and again.
pub(super) fn color(number: usize) -> String {
    format!("s{}", number % COLORS)
}

/// Returns a mark: there are shapes too, for readers that see no colours.
pub(super) fn mark(shape: usize, class: &str, x: f64, y: f64) -> Markup {
    let r = MARK;
    html! {
        @match shape % 4 {
            0 => circle class=(class) cx=(point(x)) cy=(point(y)) r=(r) {},
            1 => rect class=(class) x=(point(x - r)) y=(point(y - r)) width=(2.0 * r) height=(2.0 * r) {},
            2 => path class=(class) d=(format!("M{:.1} {:.1}l{:.1} {:.1}h{:.1}Z", x, y - r, r, 2.0 * r, -2.0 * r)) {},
            _ => path class=(class) d=(format!("M{:.1} {:.1}l{r:.1} {r:.1} {:.1} {r:.1} {:.1} {:.1}Z", x, y - r, -r, -r, -r)) {},
        }
    }
}

/// A name in a legend, and what it looks like.
pub(super) struct Entry<'a> {
    pub name: &'a str,
    pub sample: Sample,
}

/// What stands before a name.
pub(super) enum Sample {
    /// A square of this class.
    Swatch(String),
    /// A mark of this shape and class.
    Mark(usize, String),
    /// What is drawn in a square of 12 user units, from its upper left corner.
    Drawn(Markup),
}

impl Sample {
    /// Draws it; `y` is its middle.
    fn at(&self, x: f64, y: f64) -> Markup {
        let top = y - SAMPLE / 2.0;
        html! { @match self {
            Self::Mark(shape, class) => (mark(*shape, class, x + 7.0, y)),
            Self::Swatch(class) => rect class=(format!("swatch {class}")) x=(point(x)) y=(point(top)) width=(SAMPLE) height=(SAMPLE) rx="3" {},
            Self::Drawn(drawn) => g transform=(format!("translate({} {})", point(x), point(top))) { (drawn) },
        } }
    }
}

/// A legend: names in rows above a drawing, from its right edge to the left.
pub(super) struct Legend<'a> {
    pub entries: Vec<Entry<'a>>,
    /// Where it ends.
    pub right: f64,
    /// How much room there is left of that.
    pub room: f64,
    /// The middle of its first row.
    pub top: f64,
}

impl Legend<'_> {
    /// Returns how many rows it takes.
    pub(super) fn rows(&self) -> usize {
        self.entries.len().div_ceil(self.per_row()).max(1)
    }

    pub(super) fn draw(&self) -> Markup {
        let width = self.width();
        html! { @for (row, some) in self.entries.chunks(self.per_row()).enumerate() {
            @for (column, one) in some.iter().enumerate() {
                @let x = self.right - width * (some.len() - column) as f64;
                @let y = self.top + LEGEND_ROW * row as f64;
                (one.sample.at(x, y))
                text.legend x=(point(x + 18.0)) y=(point(y)) dy="0.35em" { (one.name) }
            }
        } }
    }

    /// Returns the room that each name has.
    fn width(&self) -> f64 {
        let longest = self.entries.iter().map(|one| one.name.chars().count()).max().unwrap_or(0);
        longest as f64 * LETTER + BEFORE
    }

    fn per_row(&self) -> usize {
        (self.room / self.width()).max(1.0) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legend_has_rows_as_wide_as_there_is_room() {
        let entry = |name| Entry { name, sample: Sample::Swatch(color(9)) };
        let entries = ["a", "four", "bc"].map(entry).into();
        let mut legend = Legend { entries, right: 200.0, room: 120.0, top: 14.0 };
        // Each has 58: two stand in the first row, and the third below the second.
        assert_eq!(legend.rows(), 2);
        let drawn = legend.draw().into_string();
        for place in ["x=\"84.0\" y=\"8.0\"", "x=\"142.0\" y=\"8.0\"", "x=\"142.0\" y=\"26.0\""] {
            assert!(drawn.contains(&format!("<rect class=\"swatch s1\" {place}")), "{drawn}");
        }
        legend.room = 3.0 * 58.0;
        assert_eq!(legend.rows(), 1);
    }
}
