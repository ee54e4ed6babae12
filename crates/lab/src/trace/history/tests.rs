//! Histories of a few records.

use super::super::subject::tests::vcpu;
use super::*;

const A: u8 = 0;
const B: u8 = 1;

fn trace(records: [&[(u64, Kind, u8, u32)]; 2]) -> Trace {
    let (vms, vcpus) = (vec!["vm".into()], vec![vcpu(0, 0), vcpu(0, 1)]);
    let mutexes = vec!["m".into()];
    let subject = Subject { pcpus: 2, vms, vcpus, mutexes, counter_hz: 1_000_000_000, boot: 100 };
    let record = |&(time, kind, vcpu, argument): &(u64, Kind, u8, u32)| {
        Record::new(100 + time, kind, vcpu, argument)
    };
    let records = records.map(|all| all.iter().map(record).collect()).into();
    Trace { subject, records, lost: vec![0; 2], ..Trace::default() }
}

fn phases(history: &History, vcpu: usize) -> Vec<(State, u64, u64)> {
    let own = history.phases.iter().filter(|phase| phase.vcpu == vcpu);
    own.map(|phase| (phase.state, phase.from, phase.to)).collect()
}

#[test]
fn a_core_goes_from_one_to_the_other() {
    use Kind::{Run, Sleep, Stop, Throttle, Wake};
    let history = History::of(&trace([
        &[
            (10, Wake, A, 0),
            (15, Run, A, 0),
            (20, Wake, B, 0),
            (20, Stop, A, 1),
            (20, Run, B, 0),
            (30, Sleep, B, 3),
            (32, Stop, B, 0),
            (32, Run, A, 0),
            (40, Throttle, A, 0),
            (41, Stop, A, 0),
            (50, Run, A, 1),
            (60, Stop, A, 0),
        ],
        &[],
    ]));
    let turns: Vec<_> = history.turns.iter().map(|t| (t.vcpu, t.idles, t.from, t.to)).collect();
    assert_eq!(
        turns,
        [(0, false, 15, 20), (1, false, 20, 32), (0, false, 32, 41), (0, true, 50, 60)]
    );
    assert_eq!((history.ran(0), history.ran(1)), (24, 12));
    use State::{Idling, Off, Ready, Running, Sleeping, Throttled};
    assert_eq!(
        phases(&history, 0),
        [
            (Off, 0, 10),
            (Ready, 10, 15),
            (Running, 15, 20),
            (Ready, 20, 32),
            (Running, 32, 41),
            (Throttled, 41, 50),
            (Idling, 50, 60),
            (Sleeping, 60, 60)
        ]
    );
    assert_eq!(phases(&history, 1), [(Off, 0, 20), (Running, 20, 32), (Sleeping, 32, 60)]);
}

#[test]
fn a_mutex_goes_from_its_holder_to_the_one_that_waits() {
    let claim = |rank, outcome| Claim { mutex: 0, rank, outcome }.argument();
    let history = History::of(&trace([
        &[
            (10, Kind::Lock, A, claim(0, Outcome::Done)),
            (11, Kind::Raise, A, 0),
            (30, Kind::Unlock, A, claim(0, Outcome::Done)),
            (31, Kind::Grant, B, claim(1, Outcome::Done)),
            (32, Kind::Lower, A, 0),
        ],
        &[
            (20, Kind::Lock, B, claim(1, Outcome::Waits)),
            (25, Kind::Lock, B, claim(2, Outcome::Busy)),
            (40, Kind::Granted, B, claim(1, Outcome::Done)),
            (50, Kind::Unlock, B, claim(1, Outcome::OwnerDied)),
        ],
    ]));
    let hold = |vcpu, from, to| Hold { mutex: 0, vcpu, from, to };
    assert_eq!(history.holds, [hold(0, 10, 30), hold(1, 31, 50)]);
    assert_eq!(history.waits, [hold(1, 20, 31)]);
    assert_eq!(history.raised, [hold(0, 11, 32)]);
    let flow = Flow { vcpu: 1, mutex: Some(0), from: (0, 31), to: Some((1, 40)) };
    assert_eq!(history.flows, [flow]);
}

#[test]
fn an_overrun_ends_when_it_is_stopped_or_its_section_or_period_ends() {
    use Kind::{Lower, Lowered, Overrun, OverrunStop, Raise, Replenish};
    let history = History::of(&trace([
        &[
            (10, Raise, A, 0),
            (15, Overrun, A, 1),
            (20, OverrunStop, A, 1),
            (30, Replenish, A, 1),
            (31, Overrun, A, 1),
            (32, Raise, A, 0),
            (33, Lower, A, 0),
            (40, Lower, A, 0),
            // EL2 lowers it, and the section goes on for a while.
            (50, Raise, A, 0),
            (55, Overrun, A, 1),
            (60, Lowered, A, 1),
            (70, Lower, A, 0),
            (80, Raise, A, 0),
            (81, Overrun, A, 1),
            (85, Replenish, A, 1),
            (90, Overrun, A, 1),
        ],
        &[(95, Raise, B, 0)],
    ]));
    let hold = |vcpu, from, to| Hold { mutex: 0, vcpu, from, to };
    assert_eq!(
        history.overruns,
        [(15, 20), (31, 40), (55, 60), (81, 85), (90, 95)].map(|(from, to)| hold(0, from, to))
    );
    assert_eq!(
        history.raised,
        [hold(0, 10, 40), hold(0, 50, 60), hold(0, 80, 95), hold(1, 95, 95)]
    );
}

#[test]
fn a_vcpu_goes_from_core_to_core() {
    let records: [&[_]; 2] = [&[(10, Kind::Migrate, A, 1)], &[(12, Kind::Arrive, A, 0)]];
    let history = History::of(&trace(records));
    let flow = Flow { vcpu: 0, mutex: None, from: (0, 10), to: Some((1, 12)) };
    assert_eq!((history.flows, history.end), (vec![flow], 12));
}

#[test]
fn what_seems_to_come_first_because_a_core_is_ahead_is_put_right() {
    let claim = |outcome| Claim { mutex: 0, rank: 1, outcome }.argument();
    let history = History::of(&trace([
        &[
            (10, Kind::Arrive, A, 0),
            (12, Kind::Granted, B, claim(Outcome::Done)),
            (500, Kind::Lock, B, claim(Outcome::Waits)),
        ],
        &[(15, Kind::Migrate, A, 0), (400, Kind::Grant, B, claim(Outcome::Done))],
    ]));
    let flow = |vcpu, mutex, at| Flow { vcpu, mutex, from: (1, at), to: Some((0, at)) };
    assert_eq!(history.flows, [flow(0, None, 15), flow(1, Some(0), 400)]);
    assert_eq!(history.waits, [Hold { mutex: 0, vcpu: 1, from: 500, to: 500 }]);
}
