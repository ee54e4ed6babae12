//! Visits to EL2, told apart.
//!
//! The instrument counts instructions visit by visit, by the address at which
//! the hypervisor's memory is entered: that tells exceptions by kind. What is
//! left mixed up (a bench also boots and writes to its console) is told apart
//! by running twice, with N and with 2 N of the event: what the second run has
//! more than the first are N of the event, and nothing else.

use crate::looks::Exception;
use crate::observe::Distribution;
use std::collections::BTreeMap;
use vtime::stats::{Statistics, VcpuStatistics};

/// Lengths in instructions, and how often each occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visits {
    lengths: BTreeMap<u64, u64>,
}

impl Visits {
    /// The visits by `exception`, on all cores.
    pub fn by(exception: Exception, counts: &Statistics) -> Self {
        Self::of(exception, &counts.vcpus)
    }

    /// The visits by `exception` on one core.
    pub fn on(pcpu: usize, exception: Exception, counts: &Statistics) -> Self {
        Self::of(exception, &counts.vcpus[pcpu..=pcpu])
    }

    fn of(exception: Exception, pcpus: &[VcpuStatistics]) -> Self {
        let mut lengths = BTreeMap::new();
        for tally in pcpus.iter().flat_map(|pcpu| exception.tallies(pcpu)) {
            for (&length, &visits) in &tally.histogram {
                *lengths.entry(length).or_default() += visits;
            }
        }
        Self { lengths }
    }

    /// What is here and not in `other`.
    pub fn beyond(&self, other: &Self) -> Distribution {
        let mut more = Distribution::default();
        for (&length, &visits) in &self.lengths {
            let known = other.lengths.get(&length).copied().unwrap_or(0);
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            more.record_many(length, visits.saturating_sub(known));
        }
        more
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn counts(calls: u64) -> Statistics {
        let tally = |histogram: &[(u64, u64)]| {
            let visits: u64 = histogram.iter().map(|(_, n)| n).sum();
            json!({ "visits": visits, "instructions": 0, "longest": 0, "histogram": histogram })
        };
        let range = json!({ "instructions": 0, "visits": 0, "by_entry": {
            "0x40200000": tally(&[(90_000, 1)]),
            "0x40200c00": tally(&[(86, calls), (300, 40)]),
            "0x40200c80": tally(&[(160, 3)]),
        } });
        crate::testing::statistics([(0, range)])
    }

    #[test]
    fn the_boot_and_the_console_cancel_out() {
        let of = |exception, calls| Visits::by(exception, &counts(calls));
        let calls = of(Exception::Synchronous, 200).beyond(&of(Exception::Synchronous, 100));
        assert_eq!(calls.iter().collect::<Vec<_>>(), [(86, 100)]);
        assert_eq!(of(Exception::Irq, 200).beyond(&of(Exception::Irq, 100)).count(), 0);
    }
}
