//! The checker objects: each rule is broken once, by a story that only says so.

mod common;

use common::{server, system, task, vcpu};
use sched::server::ServerKind::Deferrable;
use sim::checker::Checker;
use sim::observer::{Doing, Observer};
use sim::system::Need::{Global, Local, Nothing};
use sim::system::Protocol::{Mpcp, Vmpcp};
use sim::system::{Need, Protocol};

/// Two vCPUs with 3 + 2 in 10 on one core, of which v1 is higher; t0 is on v0, t1
/// and t2 are on v1, and all of them use everything.
fn checker(protocol: Protocol) -> Checker {
    let segments = |local| [(5, Nothing), (5, Global(0)), (5, Local(local))];
    let tasks = vec![task(0, 0, &segments(0)), task(1, 0, &segments(1)), task(1, 0, &segments(1))];
    let vcpus = vec![vcpu(0, server(Deferrable, 3, 10, 2)), vcpu(0, server(Deferrable, 3, 10, 2))];
    let mut checker = Checker::new(&system(protocol, vcpus, tasks));
    (0..3).for_each(|task| checker.released(task, 0));
    checker
}

fn runs(checker: &mut Checker, task: usize, need: Need, from: u64, to: u64) {
    checker.ran(task.min(1), Doing::Task { task, need }, from, to);
}

fn objects(protocol: Protocol, to: &str, what: impl Fn(&mut Checker)) {
    let mut checker = checker(protocol);
    what(&mut checker);
    let said = checker.objection().unwrap_or("nothing").to_owned();
    assert!(said.contains(to), "{to}: {said}");
}

#[test]
fn to_budgets_that_are_exceeded() {
    objects(Vmpcp, "v0 has had 4 of 3", |c| runs(c, 0, Nothing, 0, 4));
    objects(Vmpcp, "v0 has had 4 of 3", |c| {
        runs(c, 0, Nothing, 9, 11); // one in each period
        runs(c, 0, Nothing, 11, 14);
    });
    objects(Vmpcp, "v0 has had 6 of 5", |c| {
        c.requested(0, 0, true, 0);
        runs(c, 0, Global(0), 0, 6);
    });
    objects(Vmpcp, "v0 has had 5 of 3", |c| {
        c.requested(0, 0, true, 0);
        runs(c, 0, Global(0), 0, 4); // with overrun
        c.returned(0, 0, None, 4);
        runs(c, 0, Nothing, 4, 5);
    });
    objects(Mpcp, "v0 has had 4 of 3", |c| {
        c.requested(0, 0, true, 0);
        runs(c, 0, Global(0), 0, 4);
    });
    objects(Vmpcp, "two vCPUs run on core 0", |c| {
        runs(c, 2, Nothing, 0, 2);
        runs(c, 0, Nothing, 1, 2);
    });
}

#[test]
fn to_resources_with_two_holders_and_queues_out_of_order() {
    objects(Vmpcp, "t1: granted true, free false", |c| {
        c.requested(0, 0, true, 0);
        c.requested(1, 0, true, 0);
    });
    objects(Vmpcp, "t1: granted false, free true", |c| c.requested(1, 0, false, 0));
    objects(Vmpcp, "t1 returns what it does not hold", |c| {
        c.requested(0, 0, true, 0);
        c.returned(1, 0, None, 1);
    });
    objects(Vmpcp, "t0 runs without the resource", |c| runs(c, 0, Global(0), 0, 1));
    // t1 and t2 wait, and t2 has the higher priority.
    objects(Vmpcp, "Some(1) is next, not Some(2)", |c| {
        c.requested(0, 0, true, 0);
        c.requested(1, 0, false, 0);
        c.requested(2, 0, false, 0);
        c.returned(0, 0, Some(1), 1);
    });
    objects(Vmpcp, "None is next, not Some(0)", |c| {
        c.requested(2, 0, true, 0);
        c.requested(0, 0, false, 0);
        c.returned(2, 0, None, 1);
    });
}

#[test]
fn to_tasks_that_are_not_due_and_to_local_resources_below_a_ceiling() {
    objects(Vmpcp, "t1 runs, but is not due", |c| runs(c, 1, Nothing, 0, 1));
    objects(Vmpcp, "t2 runs, but is not due", |c| {
        c.completed(2, 0, 0);
        runs(c, 2, Nothing, 0, 1);
    });
    // The raised one goes first, whatever its priority.
    objects(Vmpcp, "t2 runs, but is not due", |c| {
        c.requested(1, 0, true, 0);
        runs(c, 2, Nothing, 0, 1);
    });
    objects(Vmpcp, "t2 takes a local resource below a ceiling", |c| {
        c.took_local(1, 1, 0);
        c.took_local(2, 1, 0);
    });
    objects(Vmpcp, "t2 is blocked by a task without resource", |c| c.blocked_local(2, 1, 0));
}
