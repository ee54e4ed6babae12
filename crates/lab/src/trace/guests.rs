//! What guests' own events mean: which task had which vCPU when, as its guest sees it, and what was
//! marked.
//!
//! Times are in nanoseconds since EL2 began. A guest may have written anything: an event whose time
//! cannot be is refused, and counted.

use super::file::{Events, Trace};
use super::history::History;
use super::subject::Subject;
use abi::report::events::{Event, Kind};
use abi::trace;

/// By how much an event may be later than all that EL2 recorded, ns: a guest that has its core
/// alone need not come to EL2 before.
const LATER: u64 = 1_000_000_000;

/// A task had a vCPU, whether or not that had a core all the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskTurn {
    /// Index of the vCPU in the system.
    pub vcpu: usize,
    /// The guest's number of the task.
    pub task: u32,
    /// The name.
    pub name: String,
    /// Beginning, ns.
    pub from: u64,
    /// End, ns.
    pub to: u64,
}

/// A task marked a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Index of the vCPU in the system.
    pub vcpu: usize,
    /// The guest's number of the task.
    pub task: u32,
    /// What it wrote.
    pub text: String,
    /// When, ns.
    pub at: u64,
}

/// All that guests recorded of themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guests {
    /// By vCPU, then by time: one for each switch.
    pub turns: Vec<TaskTurn>,
    /// By vCPU, then by time.
    pub markers: Vec<Marker>,
    /// Events that are of no kind that is known, or whose time cannot be.
    pub refused: u64,
}

/// Reads the events of one vCPU.
struct Reader<'a> {
    guests: &'a mut Guests,
    subject: &'a Subject,
    vcpu: usize,
    /// When its VM ended, ns, in order.
    ends: Vec<u64>,
    /// Time of the latest event, ns.
    now: u64,
    latest: u64,
    open: Option<TaskTurn>,
}

impl Guests {
    /// Reads what guests recorded in a trace whose history is `history`.
    #[must_use]
    pub fn of(trace: &Trace, history: &History) -> Self {
        let mut guests = Self::default();
        let mut all: Vec<&Events> = trace.events.iter().collect();
        all.sort_by_key(|of| of.vcpu);
        for of in all {
            let vm = trace.subject.vcpus.get(of.vcpu).map(|vcpu| vcpu.vm as u32);
            let end = |mark: &&super::Mark| {
                mark.kind == trace::Kind::End && Some(mark.argument & 0xff) == vm
            };
            let reader = Reader {
                guests: &mut guests,
                subject: &trace.subject,
                vcpu: of.vcpu,
                ends: history.marks.iter().filter(end).map(|mark| mark.at).collect(),
                now: 0,
                latest: history.end.saturating_add(LATER),
                open: None,
            };
            reader.read(of, history.end);
        }
        guests
    }
}

impl Reader<'_> {
    fn read(mut self, of: &Events, end: u64) {
        let mut gaps = of.gaps.iter().peekable();
        for (number, event) in of.events.iter().enumerate() {
            // Which task had the vCPU among the events that were lost is not known.
            while gaps.next_if_eq(&&number).is_some() {
                self.close(self.now);
            }
            self.take(event);
        }
        self.close(end);
    }

    fn take(&mut self, event: &Event) {
        let at = self.subject.ns(event.time);
        let can_be = event.time >= self.subject.boot && (self.now..=self.latest).contains(&at);
        let Some(kind) = event.kind().filter(|_| can_be) else {
            self.guests.refused += 1;
            return;
        };
        self.now = at;
        let (vcpu, task, text) = (self.vcpu, event.task, text(event));
        match kind {
            Kind::Switch => {
                self.close(at);
                let name = if text.is_empty() { format!("task {task}") } else { text };
                self.open = Some(TaskTurn { vcpu, task, name, from: at, to: at });
            }
            Kind::Mark => self.guests.markers.push(Marker { vcpu, task, text, at }),
        }
    }

    /// Ends the turn that goes on, at `at` or where its VM ended before.
    fn close(&mut self, at: u64) {
        let Some(turn) = self.open.take() else { return };
        let before = self.ends.partition_point(|&end| end < turn.from);
        let end = self.ends.get(before).copied().unwrap_or(at);
        self.guests.turns.push(TaskTurn { to: end.min(at).max(turn.from), ..turn });
    }
}

/// Returns the text of an event, without what a terminal would obey.
pub(super) fn text(event: &Event) -> String {
    let text = String::from_utf8_lossy(event.text());
    text.chars().map(|c| if c.is_control() || is_invisible(c) { '·' } else { c }).collect()
}

/// Returns true if a character has no width, or changes the direction of those behind it.
fn is_invisible(c: char) -> bool {
    let ranges = ['\u{200b}'..='\u{200f}', '\u{202a}'..='\u{202e}', '\u{2060}'..='\u{206f}'];
    ranges.iter().any(|range| range.contains(&c)) || matches!(c, '\u{61c}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Mark;
    use crate::trace::subject::tests::vcpu;
    use abi::report::events::TEXT;

    fn event(time: u64, kind: u8, task: u32, words: &str) -> Event {
        let mut text = [0; TEXT];
        text[..words.len()].copy_from_slice(words.as_bytes());
        Event { time, kind, length: words.len() as u8, reserved: 0, task, text }
    }

    /// One vCPU whose counter ticks each nanosecond; EL2 recorded up to 1,000 ns.
    fn guests(events: Vec<Event>, gaps: Vec<usize>, marks: Vec<Mark>) -> Guests {
        let subject = Subject {
            vcpus: vec![vcpu(0, 0)],
            counter_hz: 1_000_000_000,
            boot: 100,
            ..Subject::default()
        };
        let events = vec![Events { vcpu: 0, events, gaps, lost: 0 }];
        let trace = Trace { subject, events, ..Trace::default() };
        Guests::of(&trace, &History { end: 1_000, marks, ..History::default() })
    }

    fn turns(guests: &Guests) -> Vec<(&str, u64, u64)> {
        guests.turns.iter().map(|turn| (turn.name.as_str(), turn.from, turn.to)).collect()
    }

    #[test]
    fn a_task_has_its_vcpu_until_the_next_one_does() {
        let events = vec![
            event(110, 0, 1, "idle"),
            event(150, 1, 1, "hello"),
            event(200, 0, 2, ""),
            event(300, 0, 1, "idle"),
        ];
        let guests = guests(events, vec![], vec![]);
        assert_eq!(turns(&guests), [("idle", 10, 100), ("task 2", 100, 200), ("idle", 200, 1_000)]);
        let marker = Marker { vcpu: 0, task: 1, text: "hello".into(), at: 50 };
        assert_eq!((guests.markers, guests.refused), (vec![marker], 0));
    }

    #[test]
    fn nothing_is_said_of_what_was_lost_or_of_a_vm_that_is_off() {
        let events = || vec![event(110, 0, 1, "a"), event(150, 1, 1, ""), event(200, 0, 2, "b")];
        let lossy = guests(events(), vec![2], vec![]);
        assert_eq!(turns(&lossy), [("a", 10, 50), ("b", 100, 1_000)]);
        let end = Mark { pcpu: 0, at: 60, kind: trace::Kind::End, vcpu: 0, argument: 0 };
        let ended = guests(events(), vec![], vec![end]);
        assert_eq!(turns(&ended), [("a", 10, 60), ("b", 100, 1_000)]);
        let other = Mark { argument: 1, ..end };
        assert_eq!(turns(&guests(events(), vec![], vec![other]))[0], ("a", 10, 100));
    }

    #[test]
    fn what_cannot_be_is_refused_and_counted() {
        let events = vec![
            event(99, 0, 1, "before EL2"),
            event(500, 0, 1, "sound"),
            event(499, 1, 1, "back in time"),
            event(u64::MAX, 0, 1, "never"),
            event(600, 7, 1, "of no kind"),
            event(600, 1, 1, "\u{1b}[2J\n\u{202e}"),
        ];
        let guests = guests(events, vec![], vec![]);
        assert_eq!(turns(&guests), [("sound", 400, 1_000)]);
        assert_eq!(guests.markers[0].text, "·[2J··");
        assert_eq!(guests.refused, 4);
    }
}
