use super::*;
use crate::session::End;
use crate::testing::{observer, report, run, status};
use serde_json::json;

#[test]
fn figures_name_their_units_and_agree_with_memory() {
    let figures = figures(&observer(&status(), &report(1_990, 3)));
    let rtos = &figures["rtos"];
    assert_eq!((&rtos["activations"], &rtos["missed"]), (&json!(1990), &json!(3)));
    assert_eq!((&rtos["due"], &rtos["period_us"]), (&json!(1990), &json!(1000.0)));
    let dispatch = json!({
        "samples": 1990, "min": 10.0, "mean": 59.27386934673367, "p50": 59.0, "p99": 108.0, "p99.9": 109.0,
        "max": 109.0
    });
    assert_eq!(rtos["dispatch_us"], dispatch);
    assert_eq!(figures["time_s"], json!(2.0));
    let vcpu = &figures["vcpus"][1];
    assert_eq!((&vcpu["vcpu"], &vcpu["run_s"]), (&json!("linux.1"), &json!(1.5)));
    assert_eq!((&vcpu["share"], &vcpu["longest_el2_us"]), (&json!(0.75), &json!(7.0)));
    assert_eq!(figures["exits"][1]["system_register"], json!(40));
    assert_eq!(figures["pcpus"][0]["idle_s"], json!(1.0));
    assert_eq!(figures["vms"][1], json!({"vm": "rtos", "state": "running", "starts": 1}));
}

#[test]
fn what_was_seen_is_said_in_every_form() {
    let mut answer = Answer::new("x", "", "");
    tell(&mut answer, &run(observer(&status(), &report(100, 0)), "", End::TimeOver));
    let summary = answer.summary();
    for part in ["Latencies\n", "vCPUs\n", "Exits to EL2 by cause\n", "pCPUs\n"] {
        assert!(summary.contains(part), "{part} in\n{summary}");
    }
    let dispatch = summary.lines().find(|line| line.contains("rtos dispatch latency")).unwrap();
    let cells: Vec<_> =
        dispatch.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert_eq!(cells[..3], ["rtos dispatch latency", "100", "10.0 µs"]);
    assert_eq!(cells[4..], ["59.0 µs", "108 µs", "-", "109 µs"]);
    assert!(answer.page().contains("How late was rtos?"));
    assert!(answer.outcome.figures.contains_key("vcpus"));
}

#[test]
fn a_machine_that_never_came_up_has_no_figures() {
    let nothing = observer(&zerocopy::FromZeros::new_zeroed(), &[]);
    assert!(figures(&nothing).is_empty());
    let mut answer = Answer::new("x", "", "");
    tell(&mut answer, &run(nothing, "", End::TimeOver));
    assert!(answer.findings().is_empty());
}
