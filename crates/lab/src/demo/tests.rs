use super::*;
use crate::machine::HostUse;
use crate::results::Outcome;
use crate::session::End;
use crate::testing::{self, observer, report as area, status};
use std::time::Duration;

fn demo(activations: u64, missed: u64, said: &[&str]) -> Demo {
    let observer = testing::observer(&testing::status(), &area(activations, missed));
    let text: String = said.iter().map(|line| format!("\x1f1{line}\n")).collect();
    Demo { run: testing::run(observer, &text, End::Reached), work: LinuxWork::All }
}

const GOOD: [&str; 3] = [
    "cassata: linux ready uptime=1.5 cpus=2 kernel=6.1.0",
    "cassata: hackbench run=1 seconds=0.4",
    "cassata: linux done",
];

fn failing(outcome: &Outcome) -> Vec<&str> {
    let failing = outcome.checks().iter().filter(|check| !check.holds());
    failing.map(|check| check.name.as_str()).collect()
}

#[test]
fn a_good_run_holds() {
    let demo = demo(1_990, 0, &GOOD);
    let outcome = demo.answer().outcome;
    assert_eq!(failing(&outcome), [""; 0]);
    assert_eq!(outcome.exit_code(false), 0);
    assert_eq!(outcome.figures["hackbench_s"], serde_json::json!([0.4]));
    let summary = demo.answer().summary();
    for part in ["RTOS activations", "1,990", "hackbench run 1", "p99.9", "linux.1", "FAILS"] {
        assert_eq!(summary.contains(part), part != "FAILS", "{part} in\n{summary}");
    }
    let page = demo.answer().page();
    assert_eq!(page.matches("<svg").count(), 1, "one look makes no line over time");
}

#[test]
fn every_shortcoming_has_its_check() {
    let cases: [(Demo, &[&str]); 4] = [
        (demo(1_990, 1, &GOOD), &["RTOS activations missed"]),
        (demo(1_990, 0, &GOOD[..2]), &["Linux did its work"]),
        (demo(1_990, 0, &GOOD[..1]), &["hackbench runs finished", "Linux did its work"]),
        (demo(900, 0, &GOOD), &["RTOS activations", "since the last activation at the end"]),
    ];
    for (demo, expected) in cases {
        let outcome = demo.answer().outcome;
        assert_eq!(failing(&outcome), expected);
        assert_eq!(outcome.exit_code(false), 1);
    }
}

#[test]
fn an_rtos_that_skips_ticks_is_found_out_by_the_counter() {
    let mut bytes = area(1_990, 0);
    // The last activation stands where the 1994th should: four never came.
    let last = bytes.len() - 16;
    bytes[last..last + 8].copy_from_slice(&1_994_000_u64.to_le_bytes());
    let mut demo = demo(1_990, 0, &GOOD);
    demo.run.observer = observer(&status(), &bytes);
    assert_eq!(failing(&demo.answer().outcome), ["RTOS activations against elapsed counter time"]);
}

#[test]
fn a_machine_that_never_came_up_fails_every_check() {
    let nothing = observer(&zerocopy::FromZeros::new_zeroed(), &[]);
    let mut demo = demo(0, 0, &[]);
    (demo.run.observer, demo.run.end) = (nothing, End::TimeOver);
    let outcome = demo.answer().outcome;
    assert!(outcome.checks().iter().all(|check| !check.holds()));
    assert_eq!(outcome.figures["ended"], "the time was over");
    assert!(demo.answer().page().contains("Checks"));
}

#[test]
fn a_busy_host_is_named_when_the_rtos_was_late() {
    for (missed, wait_ms, named) in [(1, 500, true), (1, 5, false), (0, 500, false)] {
        let mut demo = demo(1_990, missed, &GOOD);
        let waited = Duration::from_millis(wait_ms);
        demo.run.host = Some(HostUse { waited, ..HostUse::default() });
        let summary = demo.answer().summary();
        assert_eq!(summary.contains("in the host's time"), named, "{summary}");
    }
}
