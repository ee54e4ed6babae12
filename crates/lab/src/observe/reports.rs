//! What a guest says of itself in its report area, gathered.

use super::distribution::Distribution;
use super::ring::RingFollower;
use super::rises::Rises;
use super::status::Snapshot;
use crate::machine::Memory;
use abi::report::{Header, Sample};
use miette::Result;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// How many samples are kept whole.
const LATEST: usize = 4_096;

/// All that one VM reported.
#[derive(Clone, Debug)]
pub struct Reports {
    pub(super) ring: RingFollower,
    /// The area's header as last seen; `None` before the guest has set it up.
    pub header: Option<Header>,
    span: Option<(u64, u64)>,
    /// Interrupt response times, ticks.
    pub response: Distribution,
    /// Dispatch latencies, ticks.
    pub dispatch: Distribution,
    /// When the largest of them rose.
    pub dispatch_rises: Rises,
    /// The latest samples.
    latest: VecDeque<Sample>,
}

/// How late a real-time guest was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// Activations that it reported.
    pub activations: u64,
    /// Activations that came after their period was over.
    pub missed: u64,
    /// Interrupt response times, ticks; in virtual time a tick is a nanosecond.
    pub response: Distribution,
    /// Dispatch latencies, ticks.
    pub dispatch: Distribution,
}

impl Lateness {
    /// Returns the worst dispatch latency of a machine in virtual time, ns.
    #[must_use]
    pub fn worst_dispatch_ns(&self) -> Option<u64> {
        self.dispatch.max().map(u64::from)
    }
}

impl Reports {
    /// Follows the report area at (physical address, size in bytes).
    pub(super) fn new((pa, size): (u64, u64)) -> Self {
        Self {
            ring: RingFollower::new(pa, size),
            header: None,
            span: None,
            response: Distribution::default(),
            dispatch: Distribution::default(),
            dispatch_rises: Rises::default(),
            latest: VecDeque::new(),
        }
    }

    pub(super) fn poll(&mut self, memory: &Memory) -> Result<()> {
        let mut fresh = Vec::new();
        if let Some(header) = self.ring.poll(memory, &mut fresh)? {
            self.header = Some(header);
        }
        for sample in fresh {
            let (first, last) = self.span.unwrap_or((sample.raised, sample.raised));
            self.span = Some((first.min(sample.raised), last.max(sample.raised)));
            self.response.record(sample.response);
            self.dispatch.record(sample.dispatch);
            self.dispatch_rises.record(sample.dispatch.into());
            if self.latest.len() == LATEST {
                self.latest.pop_front();
            }
            self.latest.push_back(sample);
        }
        Ok(())
    }

    /// Returns how late the guest was; `None` before it has set the area up.
    #[must_use]
    pub fn lateness(&self) -> Option<Lateness> {
        let header = self.header?;
        let (response, dispatch) = (self.response.clone(), self.dispatch.clone());
        let (activations, missed) = (header.written, header.missed);
        Some(Lateness { activations, missed, response, dispatch })
    }

    /// Returns the latest samples, in the order in which they were written: 4096 at most.
    pub fn latest(&self) -> impl Iterator<Item = Sample> + '_ {
        self.latest.iter().copied()
    }

    /// When the last activation was due, counter.
    #[must_use]
    pub fn last_raised(&self) -> Option<u64> {
        self.span.map(|(_, last)| last)
    }

    /// Activations that were due by `now` and of which nothing is seen; the next one after the last may be under
    /// way. `None` before the guest has set the area up.
    #[must_use]
    pub fn overdue(&self, now: &Snapshot) -> Option<u64> {
        let since = self.last_raised().map_or(now.now, |last| now.since(last));
        Some((since / self.header?.period.max(1)).saturating_sub(1))
    }

    /// Activations that the counter says were due from the first to the last
    /// one seen, both included.
    #[must_use]
    pub fn due(&self) -> Option<u64> {
        let (first, last) = self.span?;
        let period = self.header?.period;
        (last - first).checked_div(period).map(|periods| periods.saturating_add(1))
    }

    /// Samples overwritten before they were read.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.ring.lost
    }
}
