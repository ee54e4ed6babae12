//! vCPUs that may not run for a while, whatever they have to do.

use super::*;
use crate::server::{Account, Server, ServerKind};

fn deferrable(budget: u64, period: u64) -> Account {
    let [budget, period] = [budget, period].map(Duration);
    let server = Server { kind: ServerKind::Deferrable, budget, period, overrun: Duration(0) };
    Account::open(server, Instant(0)).unwrap()
}

/// Coscheduling: a sibling of Linux's was displaced on another core.
#[test]
fn a_sibling_that_stops_keeps_its_turn_and_its_quantum() {
    let mut core = core(&[(LINUX, 1, 100), (OTHER, 1, 100)]);
    run(&mut core, 0);
    core.hold_back(LINUX);
    assert_eq!(run(&mut core, 60), Some(OTHER.0));
    assert_eq!(core.state(LINUX), Some(State::Suspended));
    assert!(core.is_held_back(LINUX) && !core.is_ready(LINUX));
    assert!(core.release(LINUX));
    assert_eq!(core.decide(Instant(80)).until, Some(Instant(120)), "40 ticks are left");
    assert_eq!(core.decide(Instant(80)).run, Some(LINUX), "it is still its turn");
    assert_eq!(core.special, 0, "the core pays for nothing any more");
}

#[test]
fn waking_and_sleeping_are_recorded_meanwhile() {
    let mut core = core(&[(LINUX, 1, 100)]);
    core.sleep(LINUX);
    core.hold_back(LINUX);
    assert_eq!(core.state(LINUX), Some(State::Sleeping));
    assert_eq!(core.wake(LINUX), Woken::Decide);
    assert_eq!(core.wake(LINUX), Woken::Nothing, "it is awake already");
    assert_eq!(run(&mut core, 0), None);
    assert!(core.release(LINUX));
    assert_eq!(run(&mut core, 1), Some(LINUX.0));
    core.hold_back(LINUX);
    core.sleep(LINUX);
    assert!(!core.release(LINUX), "it has nothing to do");
    assert_eq!(run(&mut core, 2), None);
}

/// What removing and adding it again would give: a budget for the asking.
#[test]
fn to_be_held_back_fills_no_budget() {
    let mut core = core(&[(LINUX, 1, 100)]);
    core.set_server(LINUX, &deferrable(10, 100), Instant(0));
    assert_eq!(core.decide(Instant(0)).until, Some(Instant(10)));
    core.hold_back(LINUX);
    assert_eq!(run(&mut core, 4), None);
    core.release(LINUX);
    assert_eq!(core.decide(Instant(50)).until, Some(Instant(56)), "6 of 10 ticks are left");
    assert_eq!(
        core.decide(Instant(56)),
        Decision { run: None, idles: None, until: Some(Instant(100)) }
    );
    core.hold_back(LINUX);
    assert_eq!(core.decide(Instant(57)).until, None, "a replenishment would change nothing");
}

#[test]
fn one_that_is_held_back_while_it_is_away_stays_held_back() {
    let mut core = core(&[(LINUX, 1, 100), (OTHER, 1, 100)]);
    core.set_away(LINUX);
    core.hold_back(LINUX);
    core.come_back(LINUX, true);
    assert_eq!(run(&mut core, 0), Some(OTHER.0));
    assert!(core.release(LINUX));
    core.hold_back(LINUX);
    assert!(core.set_away(LINUX), "it has work");
    assert!(!core.release(LINUX), "it is not here");
    assert_eq!(run(&mut core, 1), Some(OTHER.0));
    core.come_back(LINUX, true);
    assert!(core.is_ready(LINUX));
}

#[test]
fn the_core_does_not_yield_to_it() {
    let mut core = core(&[(LINUX, 1, 100), (OTHER, 1, 100)]);
    run(&mut core, 0);
    assert!(core.yield_to(OTHER));
    core.hold_back(OTHER);
    assert_eq!(run(&mut core, 10), Some(LINUX.0));
    assert!(!core.yield_to(OTHER));
}
