//! What the instrument of virtual time counted.

use crate::quantity::{count, duration, percent};
use crate::table::Table;
use serde_json::{Value, json};
use std::time::Duration;
use vtime::stats::{Statistics, VcpuStatistics};

/// For programs: the cost of a virtual second, and instructions by core.
/// `at_el2` are those in the hypervisor's memory.
#[must_use]
pub fn virtual_time(counts: &Statistics) -> Value {
    let pcpus = counts.vcpus.iter().map(|pcpu| {
        json!({
            "instructions": pcpu.instructions,
            "idle_s": Duration::from_nanos(pcpu.idle_ns).as_secs_f64(),
            "at_el2": pcpu.range.as_ref().map(|range| json!({
                "instructions": range.instructions,
                "visits": range.visits,
                "longest": longest(pcpu),
            })),
        })
    });
    json!({
        "virtual_s": Duration::from_nanos(counts.virtual_ns).as_secs_f64(),
        "real_s": Duration::from_nanos(counts.real_ns).as_secs_f64(),
        "slowdown": counts.slowdown,
        "quantum_ns": counts.quantum_ns,
        "complete": counts.finished,
        "pcpus": pcpus.collect::<Vec<_>>(),
    })
}

/// For people: instructions by core.
#[must_use]
pub fn instructions(counts: &Statistics) -> Table {
    let head = ["pCPU", "instructions", "asleep", "at EL2", "share", "visits to EL2", "mean"];
    let mut table = Table::new("Instructions executed", head);
    for (pcpu, counts) in counts.vcpus.iter().enumerate() {
        let Some(el2) = &counts.range else { continue };
        table.row([
            pcpu.to_string(),
            count(counts.instructions),
            duration(Duration::from_nanos(counts.idle_ns)),
            count(el2.instructions),
            percent(ratio(el2.instructions, counts.instructions)),
            count(el2.visits),
            format!("{:.0}", ratio(el2.instructions, el2.visits)),
        ]);
    }
    table
}

/// Instructions of the longest visit to EL2.
fn longest(pcpu: &VcpuStatistics) -> Option<u64> {
    pcpu.range.as_ref()?.by_entry.values().map(|entry| entry.longest).max()
}

#[allow(clippy::cast_precision_loss)] // a share, a mean
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> Statistics {
        let pcpu = json!({
            "instructions": 4_000, "idle_ns": 1_500_000_000,
            "forced_leaves": { "stall": 0, "main_loop": 0, "timeout": 0 },
            "range": { "instructions": 1_000, "visits": 8, "by_entry": {
                "0x40200480": { "visits": 7, "instructions": 700, "longest": 100, "histogram": [[100, 7]] },
                "0x40200400": { "visits": 1, "instructions": 300, "longest": 300, "histogram": [[300, 1]] },
            } },
        });
        let counts = json!({
            "finished": true, "quantum_ns": 2_000, "mhz": 1_000, "virtual_ns": 2_000_000_000,
            "real_ns": 9_000_000_000_u64, "slowdown": 4.5, "quanta": 1, "early_ends": 0,
            "deadlines": 0, "jumps": 0, "settlings": 0, "vcpus": [pcpu],
        });
        serde_json::from_value(counts).unwrap()
    }

    #[test]
    fn a_core_is_told_with_its_share_at_el2() {
        let table = instructions(&counts()).to_string();
        for part in ["4,000", "1.50 s", "25.0 %", "125"] {
            assert!(table.contains(part), "{part} in\n{table}");
        }
    }

    #[test]
    fn programs_get_the_same() {
        let figures = virtual_time(&counts());
        assert_eq!((&figures["virtual_s"], &figures["slowdown"]), (&json!(2.0), &json!(4.5)));
        assert_eq!(figures["pcpus"][0]["at_el2"]["longest"], 300);
    }
}
