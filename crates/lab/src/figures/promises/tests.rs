//! What a run shows of a system whose bounds are known.

use super::*;
use crate::machine::Memory;
use crate::observe::{Observer, Served};
use crate::promises::Promises;
use crate::session::End;
use crate::testing::{self, BASE, REPORT};
use abi::report::tasks::{self, Header, MAGIC, Section as Seen, Task};
use abi::service::hash;
use abi::status::VcpuStatus;
use analysis::model::System;
use analysis::overheads::Overheads;
use std::time::Duration;
use zerocopy::IntoBytes;

/// Times in ns; the counter of the tests counts microseconds.
const SYSTEM: &str = r#"{"server": "deferrable", "overrun": false,
  "vcpus": [{"id": "rtos.0", "pcpu": 1, "budget": 600000, "period": 1000000, "priority": 1}],
  "tasks": [{"id": "rtos/high", "vcpu": "rtos.0", "period": 9000000, "priority": 2,
             "segments": [{"wcet": 100000}, {"wcet": 10000, "gcs": "R"}]},
            {"id": "rtos/low", "vcpu": "rtos.0", "period": 9000000, "priority": 1,
             "segments": [{"wcet": 200000}, {"wcet": 10000, "gcs": "R"}]}]}"#;

fn promises(text: &str) -> Promises {
    let system = System::from_json(text).unwrap();
    let vms = vec![1; system.tasks.len()];
    Promises::computed(system, Overheads::NONE, vec![2], vms)
}

fn task(name: &str, longest: u64) -> Task {
    Task { name: hash(name.as_bytes()), jobs: 10, longest, sum: 1_000, ..Task::default() }
}

/// A run in virtual time in which these tasks reported, each one section, and the vCPU ran for
/// so many microseconds of a millisecond.
fn run(promises: Promises, reported: &[(Task, Seen)], ran: u64) -> Run {
    run_in(1_000_000, promises, reported, ran)
}

/// Like [`run`], with another period of the server, ns.
fn run_in(period_ns: u64, promises: Promises, reported: &[(Task, Seen)], ran: u64) -> Run {
    let memory = Memory::create(BASE, 1 << 20).unwrap();
    let mut layout = testing::layout();
    layout.vcpus[2].server =
        Some(Served { budget_ns: 600_000, overrun_ns: 0, period_ns, offset_ns: 0 });
    let mut observer = Observer::new(layout);
    let count = reported.len() as u64;
    let header = Header { magic: MAGIC, counter_hz: testing::HZ, tasks: count, capacity: 4 };
    memory.write_bytes(REPORT, header.as_bytes()).unwrap();
    for (number, (task, section)) in (0..).zip(reported) {
        memory.write_bytes(REPORT + tasks::task(number), task.as_bytes()).unwrap();
        let at = REPORT + tasks::section(number, 0, count, 4);
        memory.write_bytes(at, section.as_bytes()).unwrap();
    }
    let mut status = testing::status();
    (status.vcpus[2].throttled, status.vcpus[2].replenished) = (3, 4);
    for (at, run) in [(2_000, 500), (3_000, 1_100), (4_000, 1_100 + ran)] {
        status.vcpus[2].run = run;
        status.pcpus.iter_mut().for_each(|pcpu| pcpu.since = at - 10);
        memory.write_bytes(BASE, status.as_bytes()).unwrap();
        observer.poll_held(&memory, Duration::from_micros(at)).unwrap();
    }
    let mut run = testing::run(observer, "", End::TimeOver);
    run.instrument = Some(testing::statistics([(1_000, ())]));
    run.promises = promises;
    run
}

const NONE: Seen = Seen { mutex: 0, asked: 0, queued: 0, had: 0, gives: 0, gave: 0 };

fn broken(run: &Run) -> Vec<String> {
    check(&mut Outcome::new("x"), run)
}

#[test]
fn what_stays_below_its_bound_is_told() {
    let seen = run(promises(SYSTEM), &[(task("low", 900), NONE), (task("high", 300), NONE)], 600);
    assert_eq!(broken(&seen), [""; 0]);
    let mut answer = Answer::new("x", "x", "");
    tell(&mut answer, &seen);
    let responses = &answer.outcome.figures["responses"];
    assert_eq!(
        (&responses[0]["task"], &responses[0]["longest_ns"]),
        (&"rtos/high".into(), &300_000.into())
    );
    assert_eq!((&responses[1]["jobs"], &responses[1]["mean_ns"]), (&10.into(), &100_000.into()));
    assert!(responses[1]["bound_ns"].as_u64().unwrap() > 900_000);
    assert_eq!(answer.outcome.figures["budgets"][0]["most_ns"], 600_000);
    assert_eq!(answer.outcome.figures["budgets"][0]["throttled"], 3);
    let names: Vec<_> = answer.outcome.checks().iter().map(|check| &check.name[..]).collect();
    let expected = [
        "longest response of rtos/high",
        "longest response of rtos/low",
        "the most that rtos.0 had in a period",
    ];
    assert_eq!(names, expected);
    assert!(answer.page().contains("rtos/low") && answer.findings().contains("rtos/low"));
    assert!(!answer.summary().contains("No response was seen"));
}

#[test]
fn a_task_that_has_done_nothing_keeps_to_no_bound() {
    let idle = Task { jobs: 0, sum: 0, ..task("low", 0) };
    let mut answer = Answer::new("x", "x", "");
    tell(&mut answer, &run(promises(SYSTEM), &[(idle, NONE), (task("high", 300), NONE)], 600));
    let names: Vec<_> = answer.outcome.checks().iter().map(|check| &check.name[..]).collect();
    assert_eq!(names, ["longest response of rtos/high", "the most that rtos.0 had in a period"]);
    assert!(answer.summary().contains("nothing was compared: rtos/low."));
}

/// The answer of a run in which EL2 counted this of the vCPU.
fn answer_of(counts: impl FnOnce(&mut VcpuStatus)) -> Answer {
    let mut seen = run(promises(SYSTEM), &[(task("high", 300), NONE)], 600);
    let memory = Memory::create(BASE, 1 << 20).unwrap();
    let mut status = testing::status();
    counts(&mut status.vcpus[2]);
    status.pcpus.iter_mut().for_each(|pcpu| pcpu.since = 5_000);
    memory.write_bytes(BASE, status.as_bytes()).unwrap();
    seen.observer.poll_held(&memory, Duration::from_micros(5_000)).unwrap();
    let mut answer = Answer::new("x", "x", "");
    tell(&mut answer, &seen);
    answer
}

#[test]
fn each_count_of_a_budget_is_told() {
    let all: [fn(&mut VcpuStatus) -> &mut u64; 7] = [
        |vcpu| &mut vcpu.throttled,
        |vcpu| &mut vcpu.replenished,
        |vcpu| &mut vcpu.overruns,
        |vcpu| &mut vcpu.overrun_stops,
        |vcpu| &mut vcpu.raised,
        |vcpu| &mut vcpu.lowered,
        |vcpu| &mut vcpu.misuses,
    ];
    let counted = answer_of(|vcpu| {
        (41..).zip(all).for_each(|(count, of)| *of(vcpu) = count);
    });
    let row = &counted.outcome.figures["budgets"][0];
    for (count, (key, head, _)) in (41_u64..).zip(COUNTED) {
        assert_eq!(row[key], count, "{key}");
        assert!(counted.findings().contains(head), "{head} in\n{}", counted.findings());
    }
    // People are spared the columns of what did not happen, programs are not.
    let calm = answer_of(|vcpu| vcpu.throttled = 1);
    assert_eq!(calm.outcome.figures["budgets"][0]["misuses"], 0);
    assert!(!calm.findings().contains("misuses"), "{}", calm.findings());
}

#[test]
fn a_vcpu_that_was_lowered_is_named() {
    let said = |lowered| answer_of(|vcpu| vcpu.lowered = lowered).summary();
    let (none, once, often) = (said(0), said(1), said(7));
    assert!(!none.contains("lowered"), "{none}");
    assert!(
        once.contains("rtos.0 stayed in global critical sections") && once.contains("it once.")
    );
    assert!(often.contains("so EL2 lowered it 7 times."), "{often}");
}

#[test]
fn a_run_that_exceeds_a_bound_fails() {
    let late = run(promises(SYSTEM), &[(task("high", 300), NONE), (task("low", 5_000), NONE)], 600);
    let said = broken(&late);
    assert!(
        said.len() == 1 && said[0].contains("longest response of rtos/low: 5000 us"),
        "{said:?}"
    );
    let mut answer = Answer::new("x", "x", "");
    tell(&mut answer, &late);
    assert_eq!(answer.outcome.exit_code(false), 1);
    // A job that is not complete takes at least until now.
    let open = Task { unfinished: 100, ..task("high", 300) };
    let said = broken(&run(promises(SYSTEM), &[(open, NONE)], 600));
    assert!(said.len() == 1 && said[0].contains("rtos/high: 3900 us"), "{said:?}");
    let said = broken(&run(promises(SYSTEM), &[(task("high", 300), NONE)], 700));
    assert!(said.len() == 1 && said[0].contains("the most that rtos.0 had"), "{said:?}");
}

#[test]
fn only_a_budget_has_no_bound_in_the_checked_build() {
    let seen = run(promises(SYSTEM), &[(task("high", 300), NONE), (task("low", 5_000), NONE)], 700);
    assert_eq!(broken(&seen).len(), 2);
    let said = check_unbounded(&mut Outcome::new("x"), &seen);
    assert!(said.len() == 1 && said[0].contains("longest response of rtos/low"), "{said:?}");
}

#[test]
fn what_was_not_seen_is_not_told_and_not_checked() {
    let sparse = run_in(400_000, promises(SYSTEM), &[], 600);
    let mut answer = Answer::new("x", "x", "");
    tell(&mut answer, &sparse);
    let budget = &answer.outcome.figures["budgets"][0];
    assert!(budget["most_ns"].is_null() && answer.findings().contains("not seen"), "{budget}");
    assert_eq!(
        (&budget["most_at_least_ns"], &budget["most_at_most_ns"]),
        (&200_000.into(), &400_000.into())
    );
    assert!(answer.outcome.checks().iter().all(|check| !check.name.contains("had in a period")));
}

#[test]
fn looks_decide_what_is_seen() {
    let seen = |longest: Option<[u64; 2]>| {
        let us = Duration::from_micros;
        let longest = longest.map(|[least, most]| Between { least: us(least), most: us(most) });
        let (budget, overrun) = (us(600), us(0));
        let seen = SeenBudget {
            vcpu: "rtos.0".into(),
            budget,
            overrun,
            longest,
            limit: us(600),
            counts: Counts::default(),
        };
        (seen.most().map(|most| most.as_micros()), most_text(&&seen))
    };
    assert_eq!(seen(None), (None, "not seen".into()));
    assert_eq!(seen(Some([0, 0])), (Some(0), "0 ns".into()));
    assert_eq!(seen(Some([450, 600])), (Some(450), "450 µs to 600 µs".into()));
    assert_eq!(seen(Some([449, 600])), (None, "not seen".into()));
    assert_eq!(seen(Some([601, 900])).0, Some(601), "that is certain");
}

#[test]
fn a_mutex_out_of_order_fails() {
    let section = |asked, had, gives| Seen {
        mutex: hash(b"R"),
        asked,
        queued: 0,
        had,
        gives,
        gave: gives + 1,
    };
    let with = |seen: Task| Task { sections: 1, ..seen };
    let both = [
        (with(task("high", 300)), section(10, 12, 30)),
        (with(task("low", 300)), section(10, 20, 40)),
    ];
    let said = broken(&run(promises(SYSTEM), &both, 600));
    assert!(said[0].starts_with("R: rtos/low had it at 20"), "{said:?}");
    assert!(said[1].contains("R went out of order: 1 times"), "{said:?}");
}

#[test]
fn where_nothing_is_certain_nothing_is_demanded() {
    let reported = [(task("low", 8_000), NONE)];
    let text = SYSTEM.replacen("\"wcet\": 100000", "\"wcet\": 8000000", 1);
    assert!(!promises(&text).schedulable());
    let seen = run(promises(&text), &reported, 600);
    assert_eq!(broken(&seen), [""; 0]);
    let mut answer = Answer::new("x", "x", "");
    tell(&mut answer, &seen);
    assert!(answer.summary().contains("no bound is certain"));
    assert!(answer.summary().contains("nothing was compared: rtos/high."), "{}", answer.summary());
    let hosts = Run { instrument: None, ..run(promises(SYSTEM), &reported, 900) };
    assert_eq!(broken(&hosts), [""; 0], "the host's time is not the board's");
    assert_eq!(broken(&run(Promises::default(), &reported, 900)), [""; 0]);
}

#[test]
fn the_only_task_of_a_guest_that_reports_activations_is_compared() {
    let text = r#"{"server": "deferrable", "overrun": false,
      "vcpus": [{"id": "rtos.0", "pcpu": 1, "budget": 600000, "period": 1000000, "priority": 1}],
      "tasks": [{"id": "rtos/only", "vcpu": "rtos.0", "period": 9000000, "priority": 2,
                 "segments": [{"wcet": 100000}]}]}"#;
    let observer = testing::observer(&testing::status(), &testing::report(500, 0));
    let mut run = testing::run(observer, "", End::TimeOver);
    run.promises = promises(text);
    let seen = run.promises.responses(&run.observer);
    assert_eq!((seen[0].jobs, seen[0].longest), (500, Duration::from_micros(109)));
    run.promises = promises(SYSTEM);
    assert!(run.promises.responses(&run.observer).is_empty(), "it has two tasks");
}
