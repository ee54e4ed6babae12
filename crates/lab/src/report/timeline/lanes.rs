//! What is known of a vCPU besides what ran when: tasks as its guest sees them, what the guest
//! marked, what EL2 did to the budget.

use super::rows::Row;
use super::{Axis, LETTER, Schedule, hover, point, short};
use crate::report::furniture::{Entry, Sample, Zone, color};
use maud::{Markup, html};

/// A row below a vCPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    /// Index of the vCPU.
    pub vcpu: usize,
    /// What stands at its left.
    pub name: String,
    /// What lasted. No two overlap.
    pub spans: Vec<Span>,
    /// What did not.
    pub moments: Vec<Moment>,
}

/// Something that lasted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// What it is called.
    pub name: String,
    /// Beginning, ns.
    pub from: u64,
    /// End, ns.
    pub to: u64,
}

/// Something that happened at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// What it is called.
    pub text: String,
    /// When, ns.
    pub at: u64,
}

impl Schedule<'_> {
    pub(super) fn lane(&self, row: &Row, lane: &Lane, time: &Axis) -> Markup {
        let x = |at: u64| time.place(at.min(self.end) as f64);
        let y = (row.top, row.bottom());
        let spans = || lane.spans.iter().filter(|span| span.from < self.end);
        let moments = || lane.moments.iter().filter(|moment| moment.at <= self.end);
        let of_span = |span: &Span| {
            let text = format!("{}\n{} to {}", span.name, short(span.from), short(span.to));
            Zone { x: (x(span.from), x(span.to)), y, text }
        };
        // Behind those of spans, so that a moment within one is found.
        let of_moment = |moment: &Moment| {
            let x = x(moment.at);
            Zone {
                x: (x - 3.0, x + 3.0),
                y,
                text: format!("{}\n{}", moment.text, short(moment.at)),
            }
        };
        let zones: Vec<Zone> = spans().map(of_span).chain(moments().map(of_moment)).collect();
        html! {
            line.zero x1=(point(time.place(0.0))) x2=(point(super::RIGHT)) y1=(point(row.bottom())) y2=(point(row.bottom())) {}
            @for span in spans() {
                @let (from, to) = (x(span.from), x(span.to));
                rect class=(format!("span {}", color(lane.vcpu))) x=(point(from)) width=(point(to - from)) y=(point(row.top)) height=(point(row.height)) {}
                @if to - from >= (span.name.chars().count() + 1) as f64 * LETTER {
                    text.said x=(point((from + to) / 2.0)) y=(point(row.middle())) dy="0.35em" text-anchor="middle" { (span.name) }
                }
            }
            @for moment in moments() {
                path.moment d=(format!("M{} {}l4 -6h-8z", point(x(moment.at)), point(row.bottom()))) {}
            }
            (hover(&zones))
        }
    }
}

/// Returns what the legend says of lanes.
pub(super) fn entries() -> [Entry<'static>; 2] {
    let moment = html! { path.moment d="M6 10l4 -6h-8z" {} };
    [
        Entry { name: "as told beside it", sample: Sample::Swatch("span s0".into()) },
        Entry { name: "event, marker", sample: Sample::Drawn(moment) },
    ]
}
