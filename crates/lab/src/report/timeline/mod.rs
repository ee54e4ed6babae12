//! A schedule as a drawing that stands for itself: an SVG file.
//!
//! Core by core, and in each the vCPUs by priority: one line for the core, one
//! for what is left of each budget, one for each task. Colours tell vCPUs apart;
//! the same shape means the same everywhere.
//!
//! | module | story |
//! | --- | --- |
//! | `rows` | which line stands where |
//! | `budget` | what is left of a budget, from what ran when |
//! | `marks` | executions, waits, arrivals and completions |
//! | `lanes` | what guests say of themselves, and what happened to budgets |

mod budget;
mod lanes;
mod marks;
mod rows;
#[cfg(test)]
mod tests;

use super::axis::{Axis, point};
use super::furniture::{Entry, LEGEND_ROW, Legend, Sample, hover};
use super::theme;
pub use lanes::{Lane, Moment, Span};
use maud::{Markup, html};
use rows::{Kind, Row, rows};
use sched::server::Server;
use sim::System;
use sim::timeline::Timeline;

/// Left edge of the plot, at least: room for names.
const LEFT: f64 = 150.0;
/// Where names of vCPUs begin, and those of tasks.
const NAMES: (f64, f64) = (36.0, 52.0);
/// No letter of a name is wider on average, bold ones included.
const LETTER: f64 = 8.0;
/// Longer names are cut off, this many letters.
const LONGEST_NAME: usize = 48;
/// Width of the whole drawing.
const WIDTH: f64 = 1240.0;
/// Right edge of the plot.
const RIGHT: f64 = WIDTH - 20.0;
/// Top of the first row: room for the title and the legend.
const TOP: f64 = 84.0;

/// A stretch of a schedule.
#[derive(Clone, Copy, Debug)]
pub struct Schedule<'a> {
    /// What it shows.
    pub title: &'a str,
    /// What was simulated.
    pub system: &'a System,
    /// The numbers by which cores are called.
    pub pcpus: &'a [u32],
    /// Names of the resources.
    pub resources: &'a [String],
    /// What ran when.
    pub timeline: &'a Timeline,
    /// More rows of vCPUs.
    pub lanes: &'a [Lane],
    /// Up to here, ns; more than 0.
    pub end: u64,
}

impl Schedule<'_> {
    /// Draws it as a file of its own.
    #[must_use]
    pub fn svg(&self) -> String {
        theme::file(&self.draw()).unwrap_or_default()
    }

    /// Draws it for a page.
    #[must_use]
    pub fn draw(&self) -> Markup {
        let rows = rows(self.system, self.lanes);
        let bottom = rows.last().map_or(TOP, |row| row.top + row.height) + 8.0;
        let unit = UNITS.iter().find(|(span, ..)| self.end < *span).unwrap_or(&UNITS[3]);
        let left = self.left();
        let axis = Axis::linear(0.0..=self.end as f64 / unit.1, (left, RIGHT));
        let time = Axis::linear(0.0..=self.end as f64, (left, RIGHT));
        html! {
            svg viewBox=(format!("0 0 {WIDTH} {}", point(bottom + 44.0))) width=(WIDTH) height=(point(bottom + 44.0)) role="img" {
                title { (self.title) }
                defs {
                    pattern id="lcs" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                        rect.stripe width="2" height="6" {}
                    }
                }
                text.title x="20" y="30" { (self.title) }
                (legend(!self.lanes.is_empty()).draw())
                (axis.grid(true, (bottom, TOP - 6.0), 16.0, crate::quantity::number))
                text.label x=(point(RIGHT)) y=(point(bottom + 36.0)) text-anchor="end" { "time, " (unit.2) }
                @for row in &rows { (self.row(row, &time)) }
            }
        }
    }

    /// Left edge of the plot: beyond every name, and what stands beside it.
    fn left(&self) -> f64 {
        let width = |text: &str| text.chars().count() as f64 * LETTER;
        let vcpus = self.system.vcpus.iter().map(|vcpu| {
            let server = vcpu.server.map_or(0.0, |server| LETTER + width(&budget(server)));
            NAMES.0 + width(&cut(&vcpu.name)) + server
        });
        let tasks = self.system.tasks.iter().map(|task| NAMES.1 + width(&cut(&task.name)));
        let lanes = self.lanes.iter().map(|lane| NAMES.1 + width(&cut(&lane.name)));
        vcpus.chain(tasks).chain(lanes).map(|right| right + LETTER).fold(LEFT, f64::max)
    }

    fn row(&self, row: &Row, time: &Axis) -> Markup {
        html! {
            @match row.kind {
                Kind::Core(core) => {
                    line.frame x1="20" x2=(point(RIGHT)) y1=(point(row.top - 5.0)) y2=(point(row.top - 5.0)) {}
                    text.core x="20" y=(point(row.middle())) dy="0.35em" { "core " (self.pcpus.get(core).map_or(core as u64, |&pcpu| u64::from(pcpu))) }
                    (self.occupation(row, core, time))
                }
                Kind::Vcpu(vcpu) => {
                    text.name x=(NAMES.0) y=(point(row.middle())) dy="0.35em" { (cut(&self.system.vcpus[vcpu].name)) }
                    @if let Some(server) = self.system.vcpus[vcpu].server {
                        text.label x=(point(time.place(0.0) - LETTER)) y=(point(row.middle())) dy="0.35em" text-anchor="end" { (budget(server)) }
                    }
                    (self.budget(row, vcpu, time))
                }
                Kind::Task(task) => {
                    text.label x=(NAMES.1) y=(point(row.middle())) dy="0.35em" { (cut(&self.system.tasks[task].name)) }
                    (self.task(row, task, time))
                }
                Kind::Lane(lane) => {
                    @let lane = &self.lanes[lane];
                    text.label x=(NAMES.1) y=(point(row.middle())) dy="0.35em" { (cut(&lane.name)) }
                    (self.lane(row, lane, time))
                }
            }
        }
    }
}

/// A name that leaves room for the plot.
fn cut(name: &str) -> String {
    if name.chars().count() <= LONGEST_NAME {
        return name.to_owned();
    }
    name.chars().take(LONGEST_NAME - 1).chain(['…']).collect()
}

/// What a server gives in each period.
fn budget(server: Server) -> String {
    format!("{} / {}", short(server.budget.0), short(server.period.0))
}

/// Units of time: spans shorter than so many ns are read in it, its ns, its name.
const UNITS: [(u64, f64, &str); 4] =
    [(5_000, 1.0, "ns"), (5_000_000, 1e3, "µs"), (5_000_000_000, 1e6, "ms"), (u64::MAX, 1e9, "s")];

/// Returns a time in the largest unit that leaves no more than three decimals.
fn short(ns: u64) -> String {
    let (_, one, name) = UNITS.iter().rfind(|(_, one, _)| ns as f64 >= *one).unwrap_or(&UNITS[0]);
    format!("{} {name}", crate::quantity::number(ns as f64 / one))
}

fn legend(has_lanes: bool) -> Legend<'static> {
    let square = |class: &str| Sample::Swatch(format!("{class} s0"));
    let striped = html! { rect.run.s0 width="12" height="12" {} rect width="12" height="12" fill="url(#lcs)" {} };
    let budget = html! { rect.left.s0 width="6" height="12" {} rect.overrun x="6" y="6" width="6" height="6" {} };
    let entries = [
        ("executes", square("run")),
        ("has a global mutex", square("gcs")),
        ("has a local mutex", Sample::Drawn(striped)),
        ("waits for a mutex", Sample::Drawn(html! { line.wait x2="12" y1="6" y2="6" {} })),
        ("arrival", Sample::Drawn(html! { path.arrival d="M6 13V1M3 5 6 0 9 5" {} })),
        ("completion", Sample::Drawn(html! { path.completion d="M0 2h12M6 2v10" {} })),
        ("budget, overrun", Sample::Drawn(budget)),
    ];
    let mut entries: Vec<_> = entries.map(|(name, sample)| Entry { name, sample }).into();
    if has_lanes {
        entries.extend(lanes::entries());
    }
    let legend = Legend { entries, right: RIGHT, room: RIGHT - 20.0, top: 56.0 };
    // The rows end above the plot, however many there are.
    let more = (legend.rows() - 1) as f64;
    Legend { top: legend.top - more * LEGEND_ROW / 2.0, ..legend }
}
