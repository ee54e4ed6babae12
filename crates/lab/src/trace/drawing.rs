//! A history as the timeline that the simulator's schedules are drawn with.
//!
//! A vCPU that migrates has a row on each core where it was. What it did has a row below it, as
//! if it had one task: when it held a mutex, and waited for one.

use super::file::Trace;
use super::history::{History, Hold, Turn};
use super::subject::Subject;
use crate::report::timeline::Schedule;
use maud::Markup;
use sim::observer::{Doing, Observer};
use sim::system::{Costs, Execution, Need, Protocol, System, Task, Vcpu};
use sim::timeline::Timeline;
use std::collections::BTreeSet;

/// Turns in the drawing of a beginning.
const SHOWN: usize = 1_000;

impl Trace {
    /// Draws the stretch from `from` to `to`, ns since EL2 began. It is shorter if more happened
    /// in it than a drawing can show.
    #[must_use]
    pub fn draw(&self, history: &History, title: &str, from: u64, to: u64) -> Markup {
        let from = from.min(u64::MAX - 1);
        let to = to.max(from + 1);
        let rows = rows(&self.subject, history);
        let mut timeline = Timeline::until(to - from);
        let mut told: Vec<(u64, Turn)> = history
            .turns
            .iter()
            .filter(|turn| turn.to > from && turn.from < to)
            .map(|turn| (turn.to, *turn))
            .collect();
        told.sort_by_key(|(end, turn)| (*end, turn.pcpu));
        for (_, turn) in told {
            let Some(row) = rows.iter().position(|row| *row == (turn.vcpu, turn.pcpu)) else {
                continue;
            };
            tell(&mut timeline, &history.holds, turn, row, from);
        }
        for wait in history.waits.iter().filter(|wait| wait.to > from && wait.from < to) {
            if let Some(row) = rows.iter().position(|&(vcpu, _)| vcpu == wait.vcpu) {
                timeline.requested(row, wait.mutex, false, wait.from.saturating_sub(from));
                timeline.returned(row, wait.mutex, Some(row), wait.to - from);
            }
        }
        let pcpus: Vec<u32> = (0..self.subject.pcpus as u32).collect();
        let schedule = Schedule {
            title,
            system: &system(&self.subject, &rows, from),
            pcpus: &pcpus,
            resources: &self.subject.mutexes,
            end: timeline.end().max(1),
            timeline: &timeline,
        };
        schedule.draw()
    }

    /// Draws the beginning of a history: as many turns as a page can show.
    #[must_use]
    pub fn draw_beginning(&self, history: &History, title: &str) -> Markup {
        let mut ends: Vec<u64> = history.turns.iter().map(|turn| turn.to).collect();
        ends.sort_unstable();
        let end = ends.get(SHOWN).copied().unwrap_or(history.end);
        self.draw(history, title, history.begin(), end)
    }
}

/// Tells the pieces of a turn: those in which its vCPU held a mutex, and the rest.
fn tell(timeline: &mut Timeline, holds: &[Hold], turn: Turn, row: usize, origin: u64) {
    let own: Vec<&Hold> = holds
        .iter()
        .filter(|hold| hold.vcpu == turn.vcpu && hold.from < turn.to && hold.to > turn.from)
        .collect();
    let mut cuts: BTreeSet<u64> = [turn.from.max(origin), turn.to].into();
    let inside = turn.from.max(origin)..turn.to;
    let ends = own.iter().flat_map(|hold| [hold.from, hold.to]);
    cuts.extend(ends.filter(|at| inside.contains(at)));
    let cuts: Vec<u64> = cuts.into_iter().collect();
    for pair in cuts.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let held = own.iter().find(|hold| hold.from <= from && hold.to >= to);
        let need = held.map_or(Need::Nothing, |hold| Need::Global(hold.mutex));
        let doing = if turn.idles { Doing::Idling } else { Doing::Task { task: row, need } };
        timeline.ran(row, doing, from - origin, to - origin);
    }
}

/// A vCPU and a pCPU for each row: its base first, and where else it was.
fn rows(subject: &Subject, history: &History) -> Vec<(usize, usize)> {
    let bases = subject.vcpus.iter().enumerate().map(|(id, vcpu)| (id, vcpu.pcpu));
    let bases: Vec<_> = bases.collect();
    let seen: BTreeSet<_> = history.turns.iter().map(|turn| (turn.vcpu, turn.pcpu)).collect();
    let away: Vec<_> = seen.into_iter().filter(|place| !bases.contains(place)).collect();
    [bases, away].concat()
}

/// The rows as the simulator would have them.
fn system(subject: &Subject, rows: &[(usize, usize)], origin: u64) -> System {
    let vcpu = |(row, &(id, pcpu)): (usize, &(usize, usize))| {
        let described = &subject.vcpus[id];
        let is_base = row < subject.vcpus.len();
        let visits = if is_base { "" } else { ", away" };
        Vcpu {
            name: format!("{}{visits}", subject.label(id)),
            core: pcpu,
            priority: described.priority,
            server: described.server().filter(|_| is_base),
            offset: next_period(described, origin),
        }
    };
    let task = |row| Task {
        name: "runs".into(),
        vcpu: row,
        priority: 0,
        handler: false,
        period: u64::MAX,
        offset: u64::MAX,
        jitter: 0,
        segments: Vec::new(),
    };
    System {
        protocol: Protocol::Vmpcp,
        execution: Execution::Worst,
        costs: Costs::default(),
        displacements: Vec::new(),
        seed: 0,
        vcpus: rows.iter().enumerate().map(vcpu).collect(),
        tasks: (0..rows.len()).map(task).collect(),
    }
}

/// Returns when a vCPU's first period begins that begins at `origin` or later, ns after it.
fn next_period(vcpu: &super::Vcpu, origin: u64) -> u64 {
    match vcpu.period_ns {
        0 => 0,
        _ if origin <= vcpu.offset_ns => vcpu.offset_ns - origin,
        // Later than the clock goes, there is none.
        period => (origin - vcpu.offset_ns)
            .checked_next_multiple_of(period)
            .map_or(u64::MAX, |at| at.saturating_add(vcpu.offset_ns) - origin),
    }
}
