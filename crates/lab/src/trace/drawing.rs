//! A history as the timeline that the simulator's schedules are drawn with.
//!
//! A vCPU that migrates has a row on each core where it was. What it did has a row below it, as
//! if it had one task: when it held a mutex, and waited for one. Below that stand, where there is
//! any of it, when it overran its budget, and what its guest recorded of itself.

use super::file::Trace;
use super::guests::Guests;
use super::history::{History, Hold, Turn};
use super::subject::Subject;
use crate::report::timeline::{Lane, Moment, Schedule, Span};
use abi::trace::Kind;
use maud::Markup;
use sim::observer::{Doing, Observer};
use sim::system::{Costs, Execution, Need, Protocol, System, Task, Vcpu};
use sim::timeline::Timeline;
use std::collections::BTreeSet;

/// Turns in the drawing of a beginning.
const SHOWN: usize = 1_000;
/// Most that a drawing has of what guests recorded of themselves.
const MOST_OF_GUESTS: usize = 4_000;

impl Trace {
    /// Draws the stretch from `from` to `to`, ns since EL2 began. It is shorter if more happened
    /// in it than a drawing can show.
    #[must_use]
    pub fn draw(&self, history: &History, title: &str, from: u64, to: u64) -> Markup {
        let from = from.min(u64::MAX - 1);
        let guests = Guests::of(self, history);
        let to = end_of_guests(&guests, from, to).max(from + 1);
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
        let lanes = lanes(self.subject.vcpus.len(), history, &guests, from, to);
        let schedule = Schedule {
            title,
            system: &system(&self.subject, &rows, from),
            pcpus: &pcpus,
            resources: &self.subject.mutexes,
            end: timeline.end().max(1),
            timeline: &timeline,
            lanes: &lanes,
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

/// Returns up to when a drawing from `from` to `to` can show all that guests recorded.
fn end_of_guests(guests: &Guests, from: u64, to: u64) -> u64 {
    let turns = guests.turns.iter().filter(|turn| turn.to > from).map(|turn| turn.from);
    let markers = guests.markers.iter().filter(|mark| mark.at >= from).map(|mark| mark.at);
    let mut all: Vec<u64> = turns.chain(markers).filter(|&at| at < to).collect();
    all.sort_unstable();
    all.get(MOST_OF_GUESTS).map_or(to, |&at| at.min(to))
}

/// The rows below so many vCPUs that have something of the stretch from `from` to `to` on them.
fn lanes(vcpus: usize, history: &History, guests: &Guests, from: u64, to: u64) -> Vec<Lane> {
    let span = |name: &str, begin: u64, end: u64| {
        let is_seen = end > from && begin < to;
        let (begin, end) = (begin.saturating_sub(from), end.min(to) - from.min(end));
        is_seen.then(|| Span { name: name.to_owned(), from: begin, to: end })
    };
    let moment = |text: &str, at: u64| {
        let is_seen = (from..to).contains(&at);
        is_seen.then(|| Moment { text: text.to_owned(), at: at - from })
    };
    let of = |vcpu: usize| {
        let overruns = history.overruns.iter().filter(|one| one.vcpu == vcpu);
        let ends = history.marks.iter().filter(|mark| mark.vcpu == vcpu);
        let ends = ends.filter_map(|mark| match mark.kind {
            Kind::OverrunStop => {
                moment("stopped in its section: no budget and no overrun", mark.at)
            }
            Kind::Lowered => moment("lowered in its section: raised for too long", mark.at),
            _ => None,
        });
        let tasks = guests.turns.iter().filter(|turn| turn.vcpu == vcpu);
        let markers = guests.markers.iter().filter(|mark| mark.vcpu == vcpu);
        let lane = |name: &str, spans, moments| Lane { vcpu, name: name.into(), spans, moments };
        [
            lane(
                "overruns",
                overruns.filter_map(|one| span("overruns its budget", one.from, one.to)).collect(),
                ends.collect(),
            ),
            lane(
                "guest's tasks",
                tasks.filter_map(|turn| span(&turn.name, turn.from, turn.to)).collect(),
                markers.filter_map(|mark| moment(&mark.text, mark.at)).collect(),
            ),
        ]
    };
    let all = (0..vcpus).flat_map(of);
    all.filter(|lane| !(lane.spans.is_empty() && lane.moments.is_empty())).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Mark, Marker, TaskTurn};

    fn turn(name: &str, from: u64, to: u64) -> TaskTurn {
        TaskTurn { vcpu: 1, task: 0, name: name.into(), from, to }
    }

    fn marker(text: &str, at: u64) -> Marker {
        Marker { vcpu: 1, task: 0, text: text.into(), at }
    }

    #[test]
    fn lanes_have_what_is_within_the_stretch() {
        let hold = |from, to| Hold { mutex: 0, vcpu: 0, from, to };
        let mark = |kind, at| Mark { pcpu: 0, at, kind, vcpu: 0, argument: 1 };
        let history = History {
            overruns: vec![hold(5, 9), hold(15, 18), hold(40, 50)],
            marks: vec![mark(Kind::OverrunStop, 18), mark(Kind::Wake, 19), mark(Kind::Lowered, 45)],
            ..History::default()
        };
        let guests = Guests {
            turns: vec![turn("a", 0, 10), turn("b", 10, 25), turn("c", 25, 31), turn("d", 31, 33)],
            markers: vec![marker("early", 9), marker("now", 10), marker("late", 30)],
            refused: 0,
        };
        let span = |name: &str, from, to| Span { name: name.into(), from, to };
        let moment = |text: &str, at| Moment { text: text.into(), at };
        let found = lanes(3, &history, &guests, 10, 30);
        let expected = [
            Lane {
                vcpu: 0,
                name: "overruns".into(),
                spans: vec![span("overruns its budget", 5, 8)],
                moments: vec![moment("stopped in its section: no budget and no overrun", 8)],
            },
            Lane {
                vcpu: 1,
                name: "guest's tasks".into(),
                spans: vec![span("b", 0, 15), span("c", 15, 20)],
                moments: vec![moment("now", 0)],
            },
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_guest_that_records_much_shortens_the_drawing() {
        let turns = (0..2 * MOST_OF_GUESTS as u64).map(|at| turn("a", at, at + 1)).collect();
        let guests = Guests { turns, ..Guests::default() };
        assert_eq!(end_of_guests(&guests, 0, 100), 100);
        assert_eq!(end_of_guests(&guests, 100, u64::MAX), 100 + MOST_OF_GUESTS as u64);
    }
}
