//! Curves over a few points that stand equally far apart.

use super::axis::{Axis, LEFT, RIGHT, WIDTH, point};
use crate::quantity::number;
use maud::{Markup, PreEscaped, html};

const HEIGHT: f64 = 360.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = HEIGHT - 56.0;
/// Radius of the mark at a point.
const MARK: f64 = 3.2;

/// What a drawing without a page needs to have colours.
const ALONE: &str = "svg{background:#fff;font:12px system-ui,sans-serif}\
.grid{stroke:#e3e1dc}.label{fill:#68707a}.legend{fill:#22262b;font-size:13px}\
.hover{fill:transparent}.s0{fill:#2f7ebc;stroke:#2f7ebc}.s1{fill:#d0603a;stroke:#d0603a}\
.s2{fill:#4f9d55;stroke:#4f9d55}.s3{fill:#8a63b5;stroke:#8a63b5}\
.curve{fill:none;stroke-width:2;stroke-linejoin:round}";

/// Percentages over what varies.
#[derive(Clone, Debug)]
pub struct Chart<'a> {
    /// What varies, with its unit.
    pub across: &'a str,
    /// What is drawn, in percent.
    pub up: &'a str,
    /// The points.
    pub values: Vec<f64>,
    /// A name and a percentage for each point. Four have colours of their own.
    pub curves: Vec<(&'a str, Vec<f64>)>,
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
        let drawing = html! {
            svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) {
                style { (PreEscaped(ALONE)) }
                (self.content())
            }
        };
        drawing.into_string()
    }

    fn content(&self) -> Markup {
        let up = Axis::linear(0.0..=100.0, (BOTTOM, TOP));
        let place = |index: usize| self.place(index);
        html! {
            (up.grid(false, (LEFT, RIGHT), 5.0, |tick| format!("{tick:.0} %")))
            @for (index, &value) in self.values.iter().enumerate() {
                text.label text-anchor="middle" x=(point(place(index))) y=(point(BOTTOM + 20.0)) { (number(value)) }
            }
            text.label text-anchor="middle" x=(point((LEFT + RIGHT) / 2.0)) y=(point(HEIGHT - 10.0)) { (self.across) }
            text.label x="4" y=(point(TOP - 28.0)) { (self.up) }
            @for (number, (_, percents)) in self.curves.iter().enumerate() {
                path class=(format!("s{number} curve")) d=(path(percents, &up, place)) {}
                @for (index, &percent) in percents.iter().enumerate() {
                    (mark(number, place(index), up.place(percent)))
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
        html! { @for (number, (name, _)) in self.curves.iter().enumerate() {
            @let at = RIGHT - 84.0 * f64::from(u32::try_from(self.curves.len() - number).unwrap_or(0));
            (mark(number, at, TOP - 18.0))
            text.legend x=(point(at + 9.0)) y=(point(TOP - 18.0)) dy="0.35em" { (name) }
        } }
    }

    /// Says the figures of one point where the mouse stands.
    fn hover(&self, index: usize) -> Markup {
        let half = (RIGHT - LEFT) / 2.0 / (self.values.len().max(1) as f64);
        html! {
            rect.hover x=(point(self.place(index) - half)) y=(point(TOP)) width=(point(2.0 * half)) height=(point(BOTTOM - TOP)) {
                title {
                    (number(self.values[index])) " " (self.across)
                    @for (name, percents) in &self.curves { "\n" (name) " " (format!("{:.1} %", percents[index])) }
                }
            }
        }
    }
}

/// Each curve has marks of its own shape, for those who see no colours.
fn mark(number: usize, x: f64, y: f64) -> Markup {
    let (class, r) = (format!("s{number}"), MARK);
    html! {
        @match number % 4 {
            0 => circle class=(class) cx=(point(x)) cy=(point(y)) r=(r) {},
            1 => rect class=(class) x=(point(x - r)) y=(point(y - r)) width=(2.0 * r) height=(2.0 * r) {},
            2 => path class=(class) d=(format!("M{:.1} {:.1}l{:.1} {:.1}h{:.1}Z", x, y - r, r, 2.0 * r, -2.0 * r)) {},
            _ => path class=(class) d=(format!("M{:.1} {:.1}l{r:.1} {r:.1} {:.1} {r:.1} {:.1} {:.1}Z", x, y - r, -r, -r, -r)) {},
        }
    }
}

fn path(percents: &[f64], up: &Axis, place: impl Fn(usize) -> f64) -> String {
    let step = |(index, &percent): (usize, &f64)| {
        let letter = if index == 0 { "M" } else { "L" };
        format!("{letter}{} {}", point(place(index)), point(up.place(percent)))
    };
    percents.iter().enumerate().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_curve_and_point_is_drawn() {
        let chart = Chart {
            across: "period (ms)",
            up: "schedulable",
            values: vec![5.0, 10.0, 40.0],
            curves: vec![("DSwO", vec![100.0, 50.0, 0.0]), ("PSwO", vec![100.0, 0.0, 0.0])],
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
        assert!(file.contains("xmlns") && !chart.draw().into_string().contains("xmlns"));
    }
}
