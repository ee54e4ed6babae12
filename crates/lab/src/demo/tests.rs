use super::*;
use crate::results::Outcome;
use crate::testing::{observer, report as area, status};

fn demo(activations: u64, missed: u64, said: &[&str]) -> Demo {
    let mut linux = LinuxProgress::default();
    said.iter().for_each(|line| linux.hear(line));
    Demo {
        observer: observer(&status(), &area(activations, missed)),
        linux,
        work: LinuxWork::All,
        end: End::Reached,
        elapsed: Duration::from_secs(2),
        instrument: None,
    }
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
    let outcome = outcome(&demo);
    assert_eq!(failing(&outcome), [""; 0]);
    assert_eq!(outcome.exit_code(false), 0);
    assert_eq!(outcome.figures["hackbench_s"], serde_json::json!([0.4]));
    let summary = summary(&demo, &outcome);
    for part in ["RTOS activations", "1,990", "hackbench run 1", "p99.9", "linux.1", "FAILS"] {
        assert_eq!(summary.contains(part), part != "FAILS", "{part} in\n{summary}");
    }
    let page = report(&demo).render(&outcome);
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
        let outcome = outcome(&demo);
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
    let demo = Demo { observer: observer(&status(), &bytes), ..demo(1_990, 0, &GOOD) };
    assert_eq!(failing(&outcome(&demo)), ["RTOS activations against elapsed counter time"]);
}

#[test]
fn a_machine_that_never_came_up_fails_every_check() {
    let nothing = observer(&zerocopy::FromZeros::new_zeroed(), &[]);
    let demo = Demo { observer: nothing, end: End::TimeOver, ..demo(0, 0, &[]) };
    let outcome = outcome(&demo);
    assert!(outcome.checks().iter().all(|check| !check.holds()));
    assert_eq!(outcome.figures["ended"], "the time was over");
    assert!(report(&demo).render(&outcome).contains("Checks"));
}

#[test]
fn a_busy_host_is_named_when_the_rtos_was_late() {
    for (missed, wait_ms, named) in [(1, 500, true), (1, 5, false), (0, 500, false)] {
        let mut demo = demo(1_990, missed, &GOOD);
        demo.observer.note_host_wait(Some(Duration::from_millis(wait_ms)));
        let summary = summary(&demo, &outcome(&demo));
        assert_eq!(summary.contains("in the host's time"), named, "{summary}");
    }
}
