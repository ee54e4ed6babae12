//! Who had which core when: stacked shares over time, one drawing per pCPU.

use super::axis::{Axis, LEFT, RIGHT, WIDTH, point};
use crate::observe::{Layout, Span};
use crate::quantity::percent;
use maud::{Markup, html};
use std::fmt::Write;

const HEIGHT: f64 = 190.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = HEIGHT - 30.0;
/// More spans than this have no hover text: it would outweigh the page.
const HOVERED: usize = 300;

/// Draws the shares of the vCPUs on `pcpu`.
#[must_use]
pub fn shares(spans: &[Span], layout: &Layout, pcpu: usize) -> Markup {
    let (Some(first), Some(last)) = (spans.first(), spans.last()) else {
        return html! { p { "The run was too short to draw." } };
    };
    let x = Axis::linear(first.begin_s..=last.end_s, (LEFT, RIGHT));
    let y = Axis::linear(0.0..=1.0, (BOTTOM, TOP));
    let here: Vec<usize> = (0..layout.vcpus.len()).filter(|&v| visits(spans, v, pcpu)).collect();
    let label = format!("shares of pCPU {pcpu} over time");
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(label) {
            (y.grid(false, (LEFT, RIGHT), 4.0, |tick| format!("{:.0} %", tick * 100.0)))
            (x.grid(true, (BOTTOM, TOP), 10.0, |tick| format!("{} s", crate::quantity::number(tick))))
            @for (level, &vcpu) in here.iter().enumerate() {
                path class=(format!("area s{}", layout.vcpus[vcpu].vm % 8))
                    d=(area(spans, pcpu, &here[..level], vcpu, &x, &y)) {}
            }
            @if spans.len() <= HOVERED { @for span in spans { (hover(span, layout, &here, pcpu, &x)) } }
            text.legend x=(point(LEFT)) y="18" { "pCPU " (pcpu) }
            (legend(layout, &here))
        }
    }
}

fn visits(spans: &[Span], vcpu: usize, pcpu: usize) -> bool {
    spans.iter().any(|span| span.shares[vcpu].0 == pcpu)
}

/// The share of `vcpu` on `pcpu` in `span`.
fn share(span: &Span, vcpu: usize, pcpu: usize) -> f64 {
    let (owner, share) = span.shares[vcpu];
    if owner == pcpu { share } else { 0.0 }
}

/// The band of `vcpu` on top of those `below` it: there along the upper edge,
/// back along the lower.
fn area(spans: &[Span], pcpu: usize, below: &[usize], vcpu: usize, x: &Axis, y: &Axis) -> String {
    let floor = |span: &Span| below.iter().map(|&v| share(span, v, pcpu)).sum::<f64>();
    let mut path = String::new();
    for span in spans {
        let height = point(y.place(floor(span) + share(span, vcpu, pcpu)));
        let begin = if path.is_empty() { 'M' } else { 'L' };
        let (left, right) = (point(x.place(span.begin_s)), point(x.place(span.end_s)));
        // Writing to a String cannot fail.
        let _ = write!(path, "{begin}{left} {height}H{right}");
    }
    for span in spans.iter().rev() {
        let height = point(y.place(floor(span)));
        let (left, right) = (point(x.place(span.begin_s)), point(x.place(span.end_s)));
        let _ = write!(path, "L{right} {height}H{left}");
    }
    path + "Z"
}

fn hover(span: &Span, layout: &Layout, here: &[usize], pcpu: usize, x: &Axis) -> Markup {
    let (left, right) = (x.place(span.begin_s), x.place(span.end_s));
    html! {
        rect.hover x=(point(left)) y=(point(TOP)) width=(point(right - left)) height=(point(BOTTOM - TOP)) {
            title {
                (format!("{:.1} s to {:.1} s", span.begin_s, span.end_s))
                @for &vcpu in here { "\n" (layout.vcpu_label(vcpu)) ": " (percent(share(span, vcpu, pcpu))) }
            }
        }
    }
}

fn legend(layout: &Layout, here: &[usize]) -> Markup {
    html! { @for (place, &vcpu) in here.iter().enumerate() {
        @let x = LEFT + 120.0 + 150.0 * place as f64;
        rect class=(format!("swatch s{}", layout.vcpus[vcpu].vm % 8)) x=(point(x)) y="6" width="14" height="14" rx="3" {}
        text.legend x=(point(x + 21.0)) y="18" { (layout.vcpu_label(vcpu)) }
    } }
}
