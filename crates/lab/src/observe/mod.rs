//! Watches a system through its machine's memory, without disturbing it.

mod clock;
mod distribution;
mod layout;
mod reports;
mod ring;
mod status;
mod timeline;

pub use clock::Pace;
pub use distribution::Distribution;
pub use layout::{Layout, VcpuName, VmLayout};
pub use reports::Reports;
pub use ring::RingFollower;
pub use status::{
    PcpuSnapshot, Snapshot, VcpuSnapshot, VmSnapshot, vcpu_state_name, vm_state_name,
};
pub use timeline::{Span, Timeline};

use crate::machine::{Memory, MemoryError};
use clock::Clock;
use std::time::{Duration, Instant};

/// Everything seen of one running system.
#[derive(Debug)]
pub struct Observer {
    layout: Layout,
    clock: Clock,
    latest: Option<Snapshot>,
    timeline: Timeline,
    reports: Vec<Option<Reports>>,
    host_wait: Option<Duration>,
}

impl Observer {
    /// Will watch the system that `layout` describes, whose time passes as
    /// `pace` says.
    #[must_use]
    pub fn new(layout: Layout, pace: Pace) -> Self {
        let reports = layout.vms.iter().map(|vm| vm.report.map(Reports::new)).collect();
        let clock = Clock::new(pace, Instant::now());
        Self {
            layout,
            clock,
            latest: None,
            timeline: Timeline::default(),
            reports,
            host_wait: None,
        }
    }

    /// Looks. A report ring must be looked at before the guest has gone round
    /// it once, or samples are lost (and counted as such).
    ///
    /// # Errors
    /// When memory cannot be read.
    pub fn poll(&mut self, memory: &Memory) -> Result<(), MemoryError> {
        self.poll_at(memory, Instant::now())
    }

    fn poll_at(&mut self, memory: &Memory, at: Instant) -> Result<(), MemoryError> {
        for reports in self.reports.iter_mut().flatten() {
            reports.poll(memory)?;
        }
        if let Some(status) = status::read(memory, &self.layout)? {
            let raised = self.reports.iter().flatten().filter_map(Reports::last_raised);
            let timestamp = raised.fold(status::latest(&status), u64::max);
            let counter = self.clock.now(timestamp, status.counter_hz, at);
            let snapshot = Snapshot::of(&status, counter, &self.layout, self.latest.as_ref());
            self.timeline.push(&snapshot);
            self.latest = Some(snapshot);
        }
        Ok(())
    }

    /// Notes how long the host has let the machine wait so far
    /// ([`crate::machine::Machine::host_wait`]); the longest counts, since
    /// threads that end take their share along.
    pub fn note_host_wait(&mut self, wait: Option<Duration>) {
        self.host_wait = self.host_wait.max(wait);
    }

    /// How long the host has let the machine's threads wait, all together.
    #[must_use]
    pub fn host_wait(&self) -> Option<Duration> {
        self.host_wait
    }

    /// What is watched.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The latest sight of the status area; `None` before EL2 has set it up.
    #[must_use]
    pub fn latest(&self) -> Option<&Snapshot> {
        self.latest.as_ref()
    }

    /// How it developed.
    #[must_use]
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// What VM `vm` reported, if it has a report area.
    #[must_use]
    pub fn reports(&self, vm: usize) -> Option<&Reports> {
        self.reports.get(vm)?.as_ref()
    }
}

/// `ticks` of a counter that runs at `counter_hz` (greater than 0), as time.
#[must_use]
pub fn time(ticks: u64, counter_hz: u64) -> Duration {
    let ns = u128::from(ticks) * 1_000_000_000 / u128::from(counter_hz);
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
