//! The latest turns of each core, while the machine runs, and the latest task of each vCPU.

use super::guests::text;
use abi::report::events::{Event, Kind};
use abi::trace::{self, Record};
use std::collections::{BTreeMap, VecDeque};

/// How many turns of a core are kept.
const KEPT: usize = 8;

/// What has each core, and what had it before.
#[derive(Clone, Debug, Default)]
pub struct Latest {
    pcpus: Vec<VecDeque<LatestTurn>>,
    tasks: BTreeMap<usize, String>,
}

/// A vCPU has or had a core. Times are what the counter showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatestTurn {
    /// Index of the vCPU.
    pub vcpu: usize,
    /// It had no work, and idled its budget away.
    pub idles: bool,
    /// Beginning.
    pub from: u64,
    /// End; none: it goes on, as far as is known.
    pub to: Option<u64>,
}

impl Latest {
    /// Knows nothing yet of so many pCPUs.
    #[must_use]
    pub fn of(pcpus: usize) -> Self {
        Self { pcpus: vec![VecDeque::new(); pcpus], tasks: BTreeMap::new() }
    }

    /// Takes what a pCPU has recorded since.
    pub fn take(&mut self, pcpu: usize, records: &[Record]) {
        let Some(turns) = self.pcpus.get_mut(pcpu) else { return };
        for record in records {
            let (vcpu, time) = (record.vcpu(), record.time);
            match record.kind() {
                Some(trace::Kind::Run) => {
                    end(turns, time);
                    if turns.len() == KEPT {
                        turns.pop_front();
                    }
                    let idles = record.argument() == 1;
                    turns.push_back(LatestTurn { vcpu, idles, from: time, to: None });
                }
                Some(trace::Kind::Stop) => end(turns, time),
                _ => {}
            }
        }
    }

    /// Takes what a guest has recorded since on a vCPU.
    pub fn hear(&mut self, vcpu: usize, events: &[Event]) {
        let switch = events.iter().rfind(|event| event.kind() == Some(Kind::Switch));
        if let Some(event) = switch {
            self.tasks.insert(vcpu, text(event));
        }
    }

    /// Returns the latest turns of a pCPU, the latest first.
    pub fn turns(&self, pcpu: usize) -> impl Iterator<Item = &LatestTurn> {
        self.pcpus.get(pcpu).into_iter().flatten().rev()
    }

    /// Returns the name of the task that a vCPU's guest has switched to last; none if that
    /// records no switches.
    #[must_use]
    pub fn task(&self, vcpu: usize) -> Option<&str> {
        self.tasks.get(&vcpu).map(String::as_str).filter(|name| !name.is_empty())
    }
}

/// Ends the turn that goes on, if one does.
fn end(turns: &mut VecDeque<LatestTurn>, time: u64) {
    if let Some(turn) = turns.back_mut() {
        turn.to.get_or_insert(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    #[test]
    fn the_latest_turns_are_kept_and_no_more() {
        let mut latest = Latest::of(1);
        let run = |time| Record::new(time, trace::Kind::Run, time as u8, 0);
        let stop = Record::new(35, trace::Kind::Stop, 3, 0);
        latest.take(0, &[run(10), run(20), run(30), stop]);
        latest.take(1, &[run(1)]);
        let turns: Vec<_> = latest.turns(0).map(|turn| (turn.vcpu, turn.from, turn.to)).collect();
        assert_eq!(turns, [(30, 30, Some(35)), (20, 20, Some(30)), (10, 10, Some(20))]);
        (40..60).for_each(|time| latest.take(0, &[run(time)]));
        assert_eq!(latest.turns(0).count(), KEPT);
        assert_eq!(latest.turns(0).next().map(|turn| (turn.from, turn.to)), Some((59, None)));
        assert_eq!(latest.turns(1).count(), 0);
    }

    #[test]
    fn the_latest_task_is_the_one_switched_to_last() {
        let event = |kind, name: u8| {
            let mut event = Event { kind, length: 1, ..Event::new_zeroed() };
            event.text[0] = name;
            event
        };
        let mut latest = Latest::of(1);
        assert_eq!(latest.task(0), None);
        latest.hear(0, &[event(0, b'a'), event(0, b'b'), event(1, b'c')]);
        latest.hear(0, &[event(1, b'd')]);
        assert_eq!((latest.task(0), latest.task(1)), (Some("b"), None));
    }
}
