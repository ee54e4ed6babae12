//! Executions, waits, arrivals and completions.

use super::rows::Row;
use super::{Axis, Schedule, hover, point, short};
use crate::report::furniture::{Zone, color};
use maud::{Markup, html};
use sim::observer::Doing;
use sim::system::Need;
use sim::timeline::Slice;

/// A box narrower than this has no room for a letter.
const ROOM: f64 = 16.0;

impl Schedule<'_> {
    /// What has a core.
    pub(super) fn occupation(&self, row: &Row, core: usize, time: &Axis) -> Markup {
        let own = |slice: &&Slice| self.system.vcpus[slice.vcpu].core == core;
        let zone = |slice: &Slice| {
            let (x, width) = self.extent(slice.from, slice.to, time);
            let (name, from, to) =
                (&self.system.vcpus[slice.vcpu].name, short(slice.from), short(slice.to));
            let text = format!("{name}\n{from} to {to}");
            Zone { x: (x, x + width), y: (row.top, row.bottom()), text }
        };
        let zones: Vec<Zone> = self.visible().filter(own).map(zone).collect();
        html! {
            @for slice in self.visible().filter(own) {
                @let (x, width) = self.extent(slice.from, slice.to, time);
                @let does = if slice.doing == Doing::Idling { "idling" } else { "has" };
                rect class=(format!("{does} {}", color(slice.vcpu))) x=(point(x)) width=(point(width)) y=(point(row.top)) height=(point(row.height)) {}
            }
            (hover(&zones))
        }
    }

    /// A task: when it executed and what it held, when it waited, when its jobs
    /// arrived and were complete.
    pub(super) fn task(&self, row: &Row, task: usize, time: &Axis) -> Markup {
        html! {
            line.zero x1=(point(time.place(0.0))) x2=(point(super::RIGHT)) y1=(point(row.bottom())) y2=(point(row.bottom())) {}
            @for wait in self.timeline.waits.iter().filter(|w| w.task == task && w.from < self.end) {
                @let (x, width) = self.extent(wait.from, wait.to.unwrap_or(self.end), time);
                line.wait x1=(point(x)) x2=(point(x + width)) y1=(point(row.middle() + 3.0)) y2=(point(row.middle() + 3.0)) {}
            }
            @for slice in self.visible() {
                @if let Doing::Task { task: runs, need } = slice.doing { @if runs == task {
                    (self.execution(row, slice, need, time))
                } }
            }
            @for arrival in self.arrivals(task) {
                @let (x, _) = self.extent(arrival, arrival, time);
                path.arrival d=(format!("M{} {}v-22m-3 5 3-5 3 5", point(x), point(row.bottom()))) {}
            }
            @for job in self.timeline.jobs.iter().filter(|job| job.task == task && job.completion <= self.end) {
                @let (x, _) = self.extent(job.completion, job.completion, time);
                path.completion d=(format!("M{} {}h10m-5 0v20", point(x - 5.0), point(row.top - 1.0))) {}
            }
        }
    }

    fn execution(&self, row: &Row, slice: &Slice, need: Need, time: &Axis) -> Markup {
        let (x, width) = self.extent(slice.from, slice.to, time);
        let (top, height) = (row.top + 4.0, row.height - 4.0);
        let color = color(slice.vcpu);
        let (class, held) = match need {
            Need::Nothing => ("run", None),
            Need::Local(resource) => ("run", Some(resource)),
            Need::Global(resource) => ("gcs", Some(resource)),
        };
        let name = held.and_then(|resource| self.resources.get(resource));
        html! {
            rect class=(format!("{class} {color}")) x=(point(x)) width=(point(width)) y=(point(top)) height=(point(height)) {}
            @if matches!(need, Need::Local(_)) {
                rect fill="url(#lcs)" x=(point(x)) width=(point(width)) y=(point(top)) height=(point(height)) {}
            }
            @if let Some(name) = name.filter(|_| width >= ROOM) {
                text.held x=(point(x + width / 2.0)) y=(point(top + height / 2.0)) dy="0.35em" text-anchor="middle" { (name) }
            }
        }
    }

    fn visible(&self) -> impl Iterator<Item = &Slice> {
        self.timeline.slices.iter().filter(|slice| slice.from < self.end)
    }

    fn arrivals(&self, task: usize) -> impl Iterator<Item = u64> {
        let spec = &self.system.tasks[task];
        let (offset, period, end) = (spec.offset, spec.period, self.end);
        let next = move |at: &u64| at.checked_add(period);
        std::iter::successors(Some(offset), next).take_while(move |&at| at < end)
    }

    fn extent(&self, from: u64, to: u64, time: &Axis) -> (f64, f64) {
        let x = time.place(from as f64);
        (x, time.place(to.min(self.end) as f64) - x)
    }
}
