use super::*;
use crate::testing::{observer, report, status};
use serde_json::json;

#[test]
fn figures_name_their_units_and_agree_with_memory() {
    let figures = figures(&observer(&status(), &report(1_990, 3)));
    let rtos = &figures["rtos"];
    assert_eq!((&rtos["activations"], &rtos["missed"]), (&json!(1990), &json!(3)));
    assert_eq!((&rtos["due"], &rtos["period_us"]), (&json!(1990), &json!(1000.0)));
    let dispatch = json!({
        "min": 10.0, "mean": 59.27386934673367, "p50": 59.0, "p99": 108.0, "p99.9": 109.0,
        "max": 109.0, "samples": 1990
    });
    assert_eq!(rtos["dispatch_us"], dispatch);
    assert_eq!(figures["time_s"], json!(2.0));
    let vcpu = &figures["vcpus"][1];
    assert_eq!((&vcpu["vcpu"], &vcpu["run_s"]), (&json!("linux.1"), &json!(1.5)));
    assert_eq!((&vcpu["share"], &vcpu["longest_el2_us"]), (&json!(0.75), &json!(7.0)));
    assert_eq!(vcpu["exits"]["system_register"], json!(40));
    assert_eq!(figures["pcpus"][0]["idle_s"], json!(1.0));
    assert_eq!(figures["vms"][1], json!({"vm": "rtos", "state": "running", "starts": 1}));
}

#[test]
fn tables_have_a_cell_for_every_head() {
    let tables = tables(&observer(&status(), &report(100, 0)));
    let titles: Vec<_> = tables.iter().map(|table| table.title.as_str()).collect();
    assert_eq!(titles, ["Latencies", "vCPUs", "Exits to EL2 by cause", "pCPUs"]);
    for table in &tables {
        assert!(table.rows.iter().all(|row| row.len() == table.head.len()), "{table}");
    }
    let dispatch = &tables[0].rows[1];
    assert_eq!(dispatch[..3], ["rtos dispatch latency", "100", "10.0 µs"]);
    assert_eq!(dispatch[4..], ["59.0 µs", "108 µs", "109 µs", "109 µs"]);
}

#[test]
fn a_machine_that_never_came_up_has_no_figures() {
    let nothing = observer(&zerocopy::FromZeros::new_zeroed(), &[]);
    assert!(figures(&nothing).is_empty());
    assert!(tables(&nothing).is_empty());
}
