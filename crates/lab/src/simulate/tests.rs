//! What is seen of a small system, and how it is told.

use super::*;
use analysis::model::System as Described;
use analysis::overheads::Overheads;

const SYSTEM: &str = r#"{"server": "deferrable", "overrun": true,
  "vcpus": [{"id": "a", "pcpu": 0, "budget": 30, "period": 200, "priority": 1},
            {"id": "b", "pcpu": 0, "budget": 30, "period": 200, "priority": 2}],
  "tasks": [{"id": "t", "vcpu": "a", "period": 1000, "priority": 1,
             "segments": [{"wcet": 25}, {"wcet": 10, "gcs": "R"}, {"wcet": 5}]},
            {"id": "u", "vcpu": "b", "period": 2000, "priority": 1,
             "segments": [{"wcet": 5}, {"wcet": 2, "gcs": "R"}]}]}"#;

fn options(protocol: Protocol, until: Option<u64>) -> Options {
    let (execution, bounds) = (Execution::Worst, Bounds::Published);
    Options { protocol, execution, seed: 0, until, bounds, overheads: Overheads::NONE }
}

fn seen(text: &str, protocol: Protocol, until: Option<u64>) -> Simulation {
    let system = Described::from_json(text).unwrap();
    simulate(&system, &options(protocol, until), &mut Progress::silent()).unwrap()
}

#[test]
fn responses_stand_beside_their_bounds() {
    // u: 0 to 7. t: 7 to 32, its gcs to 42, 5 of them beyond the budget; 200 to 205.
    let seen = seen(SYSTEM, Protocol::Vmpcp, None);
    assert_eq!(seen.end, 200_000);
    assert_eq!((seen.response(0), seen.response(1)), (Some(205), Some(7)));
    assert!(seen.bounded() && seen.bound(0) >= Some(205));
    assert_eq!((seen.late().count(), seen.beyond_bounds().count()), (0, 0));
    assert_eq!((seen.usage[0].most, seen.usage[0].overrun), (35, 5));
    assert_eq!(seen.opening(), 215);
    let tables = seen.tasks().table().to_string();
    assert!(tables.contains("Response times in 200 µs of vMPCP"), "{tables}");
    assert!(tables.contains("205 ns"), "{tables}");
    assert!(seen.remarks().is_empty());
    let json = seen.json();
    assert_eq!(json["tasks"][0]["longest_ns"], 205);
    assert_eq!(json["tasks"][0]["bound_ns"], seen.bound(0).unwrap());
    assert_eq!(json["vcpus"][0]["overrun_ns"], 5);
    assert_eq!(json["schedulable"], true);
}

#[test]
fn what_is_late_is_told() {
    let text = SYSTEM.replace("\"period\": 1000", "\"period\": 104");
    let seen = seen(&text, Protocol::Vmpcp, Some(104));
    assert_eq!(seen.late().count(), 0, "not yet");
    let seen = super::tests::seen(&text, Protocol::Vmpcp, Some(2000));
    assert_eq!(seen.late().collect::<Vec<_>>(), [0]);
    assert!(!seen.bounded());
    let remarks = seen.remarks().join("\n");
    assert!(remarks.contains("Late: jobs of `t`") && remarks.contains("not find"), "{remarks}");
    assert_eq!(seen.beyond_bounds().count(), 0, "no bound, nothing beyond it");
    assert_eq!(seen.json()["late"], serde_json::json!(["t"]));
}

#[test]
fn mpcp_has_no_bounds_and_no_overrun() {
    let seen = seen(SYSTEM, Protocol::Mpcp, None);
    assert_eq!((seen.bound(0), seen.usage[0].overrun), (None, 0));
    assert_eq!(seen.response(0), Some(210));
    assert!(seen.remarks()[0].contains("no bounds for MPCP"));
    assert_eq!(seen.json()["schedulable"], serde_json::Value::Null);
}

#[test]
fn what_cannot_be_simulated_is_refused_by_name() {
    let text = SYSTEM.replace("\"budget\": 30", "\"budget\": 195");
    let system = Described::from_json(&text).unwrap();
    let refused =
        simulate(&system, &options(Protocol::Vmpcp, None), &mut Progress::silent()).unwrap_err();
    let said = refused.to_string();
    assert_eq!(refused.chain().count(), 1, "said once");
    assert!(said.contains("a: budget and overrun are larger than the period"), "{said}");
}

#[test]
fn a_time_without_servers_is_no_reproach_to_bounds() {
    // t arrives at 0, its vCPU's first period begins at 700.
    let late = r#""period": 200, "priority": 1, "offset": 700}"#;
    let text = SYSTEM.replacen(r#""period": 200, "priority": 1}"#, late, 1);
    let seen = seen(&text, Protocol::Vmpcp, Some(1_000));
    assert!(seen.response(0) > seen.bound(0) && seen.late().count() == 0);
    assert_eq!(seen.beyond_bounds().count(), 0);
    assert!(seen.remarks()[0].contains("before the first period"), "{:?}", seen.remarks());
}

#[test]
fn a_published_bound_that_is_exceeded_points_to_the_corrected_one() {
    // Equation 7: `high` waits for the lock that it asks for itself.
    let text = r#"{"server": "deferrable", "overrun": false,
      "vcpus": [{"id": "v", "pcpu": 7, "budget": 100, "period": 100, "priority": 1}],
      "tasks": [{"id": "low", "vcpu": "v", "period": 100, "priority": 1,
                 "segments": [{"wcet": 10, "lcs": "L"}]},
                {"id": "high", "vcpu": "v", "period": 100, "priority": 2, "offset": 1,
                 "segments": [{"wcet": 1}, {"wcet": 1, "lcs": "L"}]}]}"#;
    let seen = seen(text, Protocol::Vmpcp, None);
    assert_eq!((seen.beyond_bounds().collect::<Vec<_>>(), seen.late().count()), (vec![1], 0));
    assert!(seen.remarks()[0].contains("--bounds corrected"), "{:?}", seen.remarks());
    assert_eq!(seen.pcpus, [7]);
}
