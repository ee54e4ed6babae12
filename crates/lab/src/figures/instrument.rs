//! What the instrument of virtual time counted.

use crate::dataset::{Dataset, Unit};
use crate::looks::{self, Exception};
use crate::quantity::real;
use serde_json::{Value, json};
use std::time::Duration;
use vtime::stats::{RangeStatistics, Statistics, VcpuStatistics};

/// Returns virtual time, and instructions by core, for programs.
#[must_use]
pub fn virtual_time(counts: &Statistics) -> Value {
    let seconds = |ns| Duration::from_nanos(ns).as_secs_f64();
    json!({
        "virtual_s": seconds(counts.virtual_ns),
        "quantum_ns": counts.quantum_ns,
        "complete": counts.finished,
        "pcpus": data(counts).json(),
    })
}

/// Returns instructions by core; those "at EL2" are in the hypervisor's memory.
pub(super) fn data(counts: &Statistics) -> Dataset {
    let at_el2 =
        |pcpu: &VcpuStatistics, of: fn(&RangeStatistics) -> u64| pcpu.range.as_ref().map(of);
    let ratio = |part: Option<u64>, whole: Option<u64>| {
        part.zip(whole).map(|(part, whole)| real(part) / real(whole.max(1)))
    };
    Dataset::of("instructions", "Instructions executed", counts.vcpus.iter().enumerate())
        .name("pcpu", |(index, _)| *index)
        .head("pCPU")
        .name("instructions", |(_, pcpu)| pcpu.instructions)
        .column("idle", Unit::Seconds, |(_, pcpu)| Duration::from_nanos(pcpu.idle_ns).as_secs_f64())
        .head("asleep")
        .column("at_el2", Unit::Instructions, |(_, pcpu)| at_el2(pcpu, |el2| el2.instructions))
        .head("at EL2")
        .column("share", Unit::Share, |(_, pcpu)| {
            ratio(at_el2(pcpu, |el2| el2.instructions), Some(pcpu.instructions))
        })
        .for_people()
        .name("visits_to_el2", |(_, pcpu)| at_el2(pcpu, |el2| el2.visits))
        .head("visits to EL2")
        .column("mean", Unit::Instructions, |(_, pcpu)| {
            ratio(at_el2(pcpu, |el2| el2.instructions), at_el2(pcpu, |el2| el2.visits))
        })
        .digits(0)
        .for_people()
        .column("longest", Unit::Instructions, |(_, pcpu)| longest(pcpu))
        .for_programs()
        .column("without_a_look", Unit::Instructions, |(_, pcpu)| without_a_look(pcpu))
        .for_programs()
        .done()
}

/// Returns the instructions of the longest visit to EL2.
fn longest(pcpu: &VcpuStatistics) -> Option<u64> {
    pcpu.range.as_ref()?.by_entry.values().map(|entry| entry.longest).max()
}

/// Returns the instructions of the longest stretch of a guest's visit in which EL2 did not look
/// whether an interrupt is pending.
fn without_a_look(pcpu: &VcpuStatistics) -> Option<u64> {
    Exception::ALL.iter().filter_map(|&exception| looks::longest(exception, pcpu)).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> Statistics {
        let range = json!({ "instructions": 1_000, "visits": 8, "by_entry": {
            "0x40200480": { "visits": 7, "instructions": 700, "longest": 100, "histogram": [[100, 7]] },
            "0x40200400": { "visits": 1, "instructions": 300, "longest": 300, "histogram": [[300, 1]] },
        } });
        crate::testing::statistics([(4_000, range)])
    }

    #[test]
    fn a_core_is_told_with_its_share_at_el2() {
        let table = data(&counts()).table().to_string();
        for part in ["4,000", "1.50 s", "25.0 %", "125"] {
            assert!(table.contains(part), "{part} in\n{table}");
        }
    }

    #[test]
    fn programs_get_the_same() {
        let figures = virtual_time(&counts());
        assert_eq!((&figures["virtual_s"], figures.get("slowdown")), (&json!(2.0), None));
        assert_eq!(figures["pcpus"][0]["longest_instructions"], 300);
    }
}
