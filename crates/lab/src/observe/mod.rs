//! Watches a system through its machine's memory, without disturbing it.

mod clock;
mod distribution;
mod dma;
mod layout;
mod reports;
mod ring;
mod rises;
mod status;
mod supply;
mod tasks;
mod timeline;

pub use distribution::Distribution;
pub(crate) use distribution::{is_told, nearest_rank};
pub use dma::RefusedDma;
pub use layout::{Layout, Served, VcpuName, VmLayout};
pub use reports::{Lateness, Reports};
pub use ring::RingFollower;
pub use rises::Rises;
pub use status::{Snapshot, VmSnapshot, vcpu_state_name, vm_state_name};
pub use supply::{Between, Periods, Supply};
pub use tasks::{SeenTask, TaskReports};
pub use timeline::{Span, Timeline};

use crate::machine::Memory;
use abi::dma::Fault;
use clock::Clock;
use miette::Result;
use std::time::{Duration, Instant};

/// Everything seen of one running system.
#[derive(Debug)]
pub struct Observer {
    /// What is watched.
    pub layout: Layout,
    clock: Clock,
    start: Instant,
    latest: Option<Snapshot>,
    /// What the SMMU has noted, as of the latest look.
    dma: Vec<Fault>,
    /// How it developed.
    pub timeline: Timeline,
    reports: Vec<Option<Reports>>,
    tasks: Vec<Option<TaskReports>>,
    /// By vCPU.
    supplies: Vec<Supply>,
    /// The latest look did not count for some vCPU with a budget.
    missed: bool,
}

impl Observer {
    /// Will watch the system that `layout` describes.
    #[must_use]
    pub fn new(layout: Layout) -> Self {
        let areas: Vec<_> = match layout.vms.as_slice() {
            [] => vec![layout.plain_report],
            vms => vms.iter().map(|vm| vm.report).collect(),
        };
        let reports = areas.into_iter().map(|area| area.map(Reports::new)).collect();
        let tasks = layout.vms.iter().map(|vm| vm.report.map(TaskReports::new)).collect();
        let supplies = vec![Supply::default(); layout.vcpus.len()];
        let (clock, timeline) = (Clock::default(), Timeline::default());
        let start = Instant::now();
        let (latest, dma, missed) = (None, Vec::new(), false);
        Self { layout, clock, start, latest, dma, timeline, reports, tasks, supplies, missed }
    }

    /// Looks at a machine in real time. A report ring must be looked at before the guest has
    /// gone round it once, or samples are lost (and counted as such).
    ///
    /// # Errors
    /// When memory cannot be read.
    pub fn poll(&mut self, memory: &Memory) -> Result<()> {
        self.look(memory, self.start.elapsed(), None)
    }

    /// Looks at a machine that is held at `virtual_time`, which is what its
    /// counter shows then.
    ///
    /// # Errors
    /// When memory cannot be read.
    pub fn poll_held(&mut self, memory: &Memory, virtual_time: Duration) -> Result<()> {
        self.look(memory, Duration::ZERO, Some(virtual_time))
    }

    /// Returns how long to wait for a look that counts for vCPUs with budgets for which the latest
    /// did not, if there are any.
    #[must_use]
    pub fn look_again_in(&self) -> Option<Duration> {
        self.missed.then_some(status::BOOKED_AFTER)
    }

    /// Looks at what was there after `elapsed` of our own time, in which the counter runs too, or
    /// where the machine is `held`, in virtual time.
    fn look(&mut self, memory: &Memory, elapsed: Duration, held: Option<Duration>) -> Result<()> {
        self.missed = false;
        for reports in self.reports.iter_mut().flatten() {
            reports.poll(memory)?;
        }
        if self.layout.vms.is_empty() {
            return Ok(()); // There is no hypervisor.
        }
        for tasks in self.tasks.iter_mut().flatten() {
            tasks.poll(memory)?;
        }
        if let Some(status) = status::read(memory, &self.layout)? {
            self.dma = dma::read(memory, &status)?;
            let latest = status::latest(&status);
            let timestamp = match held {
                Some(at) => latest.max(clock::ticks(at, status.counter_hz)),
                // What guests say is believed where nothing else tells: theirs may be any time.
                None => {
                    let raised = self.reports.iter().flatten().filter_map(Reports::last_raised);
                    raised.fold(latest, u64::max)
                }
            };
            let counter = self.clock.now(timestamp, clock::ticks(elapsed, status.counter_hz));
            let snapshot = Snapshot::of(&status, counter, &self.layout, self.latest.as_ref());
            self.timeline.push(&snapshot);
            let supplies = self.layout.vcpus.iter().zip(&mut self.supplies).enumerate();
            for (vcpu, (name, supply)) in supplies {
                let Some(periods) = name.periods(snapshot.counter_hz) else { continue };
                if snapshot.is_booked(vcpu) {
                    supply.look(periods, snapshot.now, snapshot.vcpus[vcpu].run);
                } else {
                    self.missed = true;
                }
            }
            self.latest = Some(snapshot);
        }
        Ok(())
    }

    /// The latest sight of the status area; `None` before EL2 has set it up.
    #[must_use]
    pub fn latest(&self) -> Option<&Snapshot> {
        self.latest.as_ref()
    }

    /// Returns true if a VM, by its index, was last seen off or failed.
    #[must_use]
    pub fn is_over(&self, vm: usize) -> bool {
        self.latest().is_some_and(|seen| seen.vms[vm].is_over())
    }

    /// Returns how often the hypervisor met what cannot happen, and went on.
    #[must_use]
    pub fn bugs(&self) -> u64 {
        self.latest.as_ref().map_or(0, |now| now.bugs)
    }

    /// Returns what the SMMU has refused, for each VM with such a device, and last for streams that no VM has.
    #[must_use]
    pub fn refused_dma(&self) -> Vec<RefusedDma> {
        RefusedDma::of(&self.dma, &self.layout)
    }

    /// Returns the pCPUs that others found to take no interrupts, a bit each.
    #[must_use]
    pub fn hung(&self) -> u64 {
        self.latest.as_ref().map_or(0, |now| now.hung)
    }

    /// What VM `vm` reported of tasks, if it has a report area.
    #[must_use]
    pub fn tasks(&self, vm: usize) -> Option<&TaskReports> {
        self.tasks.get(vm)?.as_ref()
    }

    /// Returns what looks show of the most that a vCPU with a budget had in one period.
    #[must_use]
    pub fn most_in_a_period(&self, vcpu: usize) -> Option<Between<Duration>> {
        let (supply, now) = (self.supplies.get(vcpu)?, self.latest.as_ref()?);
        self.layout.vcpus[vcpu].server?;
        let Between { least, most } = supply.longest()?;
        Some(Between { least: now.time(least), most: now.time(most) })
    }

    /// What VM `vm` reported, if it has a report area; without a hypervisor the guest is VM 0.
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
