//! What a guest says of itself in its report area, gathered.

use super::distribution::Distribution;
use super::ring::RingFollower;
use crate::machine::Memory;
use abi::report::{Header, Sample};
use miette::Result;

/// All that one VM reported.
#[derive(Clone, Debug)]
pub struct Reports {
    ring: RingFollower,
    header: Option<Header>,
    span: Option<(u64, u64)>,
    response: Distribution,
    dispatch: Distribution,
    fresh: Vec<Sample>,
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
            fresh: Vec::new(),
        }
    }

    pub(super) fn poll(&mut self, memory: &Memory) -> Result<()> {
        self.fresh.clear();
        if let Some(header) = self.ring.poll(memory, &mut self.fresh)? {
            self.header = Some(header);
        }
        for sample in &self.fresh {
            let (first, last) = self.span.unwrap_or((sample.raised, sample.raised));
            self.span = Some((first.min(sample.raised), last.max(sample.raised)));
            self.response.record(sample.response);
            self.dispatch.record(sample.dispatch);
        }
        Ok(())
    }

    /// The area's header as last seen; `None` before the guest has set it up.
    #[must_use]
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// Interrupt response times, ticks.
    #[must_use]
    pub fn response(&self) -> &Distribution {
        &self.response
    }

    /// Dispatch latencies, ticks.
    #[must_use]
    pub fn dispatch(&self) -> &Distribution {
        &self.dispatch
    }

    /// When the last activation was due, counter.
    #[must_use]
    pub fn last_raised(&self) -> Option<u64> {
        self.span.map(|(_, last)| last)
    }

    /// Activations that the counter says were due from the first to the last
    /// one seen, both included.
    #[must_use]
    pub fn due(&self) -> Option<u64> {
        let (first, last) = self.span?;
        let period = self.header?.period;
        (last - first).checked_div(period).map(|periods| periods + 1)
    }

    /// Samples overwritten before they were read.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.ring.lost
    }

    /// Times the guest began its report anew.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.ring.restarts
    }

    /// The samples the last look brought.
    #[must_use]
    pub fn fresh(&self) -> &[Sample] {
        &self.fresh
    }
}
