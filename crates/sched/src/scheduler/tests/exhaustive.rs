//! Every small system, in every history up to a depth, beside the [model](super::model).
//!
//! What random histories miss by chance, such as the one order of four events that matters, is
//! among these; what needs more vCPUs or more events is not.

use super::model::BOOSTED;
use super::properties::{Both, Event};
use super::*;
use crate::server::{Server, ServerKind};
use std::collections::BTreeSet;
use std::println;

/// Priorities of two and three vCPUs in every order that differs, the first being any.
const PRIORITIES: [[u16; 3]; 13] = [
    [0, 0, 0],
    [0, 0, 1],
    [0, 1, 0],
    [1, 0, 0],
    [0, 1, 1],
    [1, 0, 1],
    [1, 1, 0],
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
];

/// Quanta, of which the first vCPU has the first and the others the second.
const QUANTA: [[u64; 2]; 3] = [[1, 1], [2, 1], [1, 3]];

/// What can happen to a vCPU on a core that uses no extra.
const PLAIN: [Event; 9] = [
    Event::Wake,
    Event::Sleep,
    Event::SetAway { charged: false },
    Event::SetAway { charged: true },
    Event::ComeBack { ready: false },
    Event::ComeBack { ready: true },
    Event::YieldTo,
    Event::YieldTurn { others: u8::MAX },
    Event::Remove,
];

/// What else can happen.
const MORE: [Event; 4] = [Event::HoldBack, Event::Release, Event::EnterGcs, Event::ExitGcs];

/// What happens to a vCPU that may be boosted.
const BOOSTS: [Event; 3] =
    [Event::Boost { interrupt: false }, Event::Boost { interrupt: true }, Event::EndBoost];

/// A system and what may happen in it.
struct Space<'a> {
    priorities: &'a [u16],
    quanta: [u64; 2],
    /// Which of them have work from the beginning, a bit for each.
    ready: u8,
    events: &'a [Event],
    /// Time that passes before an event.
    pauses: &'a [u64],
    /// Of the first vCPU.
    server: Option<Server>,
    /// Likewise.
    boost: Option<Boost>,
    /// Some of the events are extras.
    has_extras: bool,
}

impl Space<'_> {
    fn begin(&self) -> Both {
        let mut both = Both::default();
        for (id, &priority) in self.priorities.iter().enumerate() {
            let quantum = self.quanta[usize::from(id > 0)];
            let server = self.server.filter(|_| id == 0);
            both.arrive(id as u8, params(priority, quantum), self.ready >> id & 1 == 1, server);
        }
        if let Some(boost) = self.boost {
            both.set_boost(0, boost);
        }
        both.model.vcpus.iter_mut().for_each(|vcpu| vcpu.begin_tick(0));
        both
    }

    /// How many histories there are of so many events.
    fn size(&self, depth: u32) -> u64 {
        ((self.priorities.len() * self.events.len() * self.pauses.len()) as u64).pow(depth)
    }

    /// Runs history `number` of this depth: its digits say what happens.
    fn run(&self, mut number: u64, depth: u32) {
        let (mut both, mut now) = (self.begin(), 0);
        let mut digit = |of: usize| {
            let digit = number % of as u64;
            number /= of as u64;
            digit as usize
        };
        self.decide(&mut both, now);
        for _ in 0..depth {
            let pause = self.pauses[digit(self.pauses.len())];
            let id = digit(self.priorities.len()) as u8;
            let event = &self.events[digit(self.events.len())];
            for _ in 0..pause {
                now = self.tick(&mut both, now);
            }
            both.apply(id, event, now);
            self.decide(&mut both, now);
        }
        // What was decided last holds for as long as it says.
        for _ in 0..4 {
            now = self.tick(&mut both, now);
            self.decide(&mut both, now);
        }
    }

    /// A tick passes.
    fn tick(&self, both: &mut Both, now: u64) -> u64 {
        if self.server.is_some() || self.boost.is_some() {
            if let Some(vcpu) = both.model.running.and_then(|id| both.model.get(id)) {
                vcpu.run_for_one_tick();
            }
            both.model.vcpus.iter_mut().for_each(|vcpu| vcpu.begin_tick(now + 1));
            both.model.drop_yield_to_blocked();
            self.decide(both, now + 1);
        }
        now + 1
    }

    fn decide(&self, both: &mut Both, now: u64) {
        let decision = both.core.decide(Instant(now));
        let (run, until) = both.model.decide(now);
        let ran = run.map(|id| id & !BOOSTED);
        assert_eq!(decision.owner().map(|id| id.0), ran, "at {now}");
        if !self.has_extras {
            assert_eq!(decision.until.map(|at| at.0), until, "at {now}");
        }
        both.check_answers();
    }
}

/// Returns true if no priority between two is left out: all other sets of priorities are in the order
/// of one of these.
fn is_dense(priorities: &[u16]) -> bool {
    priorities.iter().all(|&priority| priority == 0 || priorities.contains(&(priority - 1)))
}

/// Runs every history of every system; returns how many.
fn every(vcpus: usize, depth: u32, events: &[Event], servers: &[Option<Server>]) -> u64 {
    let orders: BTreeSet<_> = PRIORITIES.iter().map(|all| &all[..vcpus]).collect();
    let mut count = 0;
    for priorities in orders.into_iter().filter(|priorities| is_dense(priorities)) {
        for quanta in QUANTA {
            for ready in [0, 1, (1 << vcpus) - 1] {
                for &server in servers {
                    let pauses = &[0, 1];
                    let has_extras = events.len() > PLAIN.len();
                    let boost = None;
                    let space = Space {
                        priorities,
                        quanta,
                        ready,
                        events,
                        pauses,
                        server,
                        boost,
                        has_extras,
                    };
                    (0..space.size(depth)).for_each(|number| space.run(number, depth));
                    count += space.size(depth);
                }
            }
        }
    }
    println!("{count} histories of {depth} events in systems of {vcpus} vCPUs");
    count
}

/// Runs every history of so many events of the first vCPU, which may be boosted, and of an equal,
/// beside one that its boost leaves below, at its height, or above; returns how many.
fn every_with_boosts(depth: u32) -> u64 {
    let events: Vec<_> = PLAIN[..PLAIN.len() - 1].iter().chain(&BOOSTS).cloned().collect();
    let windows = [None, Some(Duration(1)), Some(Duration(2))];
    let mut count = 0;
    for (quanta, ready) in QUANTA.into_iter().flat_map(|quanta| [(quanta, 0b111), (quanta, 0)]) {
        for priority in [2, 3, 4].map(Priority) {
            for (budget, window) in [Duration(2), Duration::MAX]
                .into_iter()
                .flat_map(|budget| windows.map(|window| (budget, window)))
            {
                let boost = Some(Boost { priority, budget, period: Duration(3), window });
                let (events, server, has_extras) = (&events[..], None, true);
                let (priorities, pauses) = (&[1, 1, 3][..], &[0, 1][..]);
                let space =
                    Space { priorities, quanta, ready, events, pauses, server, boost, has_extras };
                (0..space.size(depth)).for_each(|number| space.run(number, depth));
                count += space.size(depth);
            }
        }
    }
    println!("{count} histories of {depth} events in systems with a boost");
    count
}

fn all_events() -> Vec<Event> {
    PLAIN.iter().chain(&MORE).cloned().collect()
}

fn servers() -> [Option<Server>; 3] {
    let kinds = [ServerKind::Deferrable, ServerKind::Periodic];
    let [deferrable, periodic] = kinds.map(|kind| Some(budgets::server(kind, 1, 3, 1)));
    [None, deferrable, periodic]
}

/// 13 orders of priorities, 3 of quanta, 3 of what is ready; 3 vCPUs, 9 events, 2 pauses.
#[test]
fn every_history_of_two_events_without_extras() {
    assert_eq!(every(3, 2, &PLAIN, &[None]), 13 * 3 * 3 * (3 * 9 * 2_u64).pow(2));
}

/// 3 orders of priorities, and the first vCPU with either server or none; 13 events.
#[test]
fn every_history_of_two_events_with_all_extras() {
    let count = every(2, 2, &all_events(), &servers());
    assert_eq!(count, 3 * 3 * 3 * 3 * (2 * 13 * 2_u64).pow(2));
}

/// 3 quanta, 2 of what is ready, 3 heights, 6 limits; 3 vCPUs, 11 events, 2 pauses.
#[test]
fn every_history_of_two_events_with_a_boost() {
    assert_eq!(every_with_boosts(2), 3 * 2 * 3 * 6 * (3 * 11 * 2_u64).pow(2));
}

#[test]
#[ignore = "it takes minutes"]
fn every_history_of_three_events_with_a_boost() {
    assert_eq!(every_with_boosts(3), 3 * 2 * 3 * 6 * (3 * 11 * 2_u64).pow(3));
}

#[test]
#[ignore = "it takes minutes"]
fn every_history_of_three_events_without_extras() {
    assert_eq!(every(3, 3, &PLAIN, &[None]), 13 * 3 * 3 * (3 * 9 * 2_u64).pow(3));
}

#[test]
#[ignore = "it takes minutes"]
fn every_history_of_three_events_with_all_extras() {
    let count = every(2, 3, &all_events(), &servers());
    assert_eq!(count, 3 * 3 * 3 * 3 * (2 * 13 * 2_u64).pow(3));
}

#[test]
#[ignore = "it takes minutes"]
fn every_history_of_two_events_of_three_vcpus_with_all_extras() {
    let count = every(3, 2, &all_events(), &servers());
    assert_eq!(count, 13 * 3 * 3 * 3 * (3 * 13 * 2_u64).pow(2));
}
