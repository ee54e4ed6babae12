//! What was seen of each task and each vCPU with a budget.

use super::Timing;
use super::order::Claim;
use crate::observe::{Between, Observer, SeenTask, time};
use abi::service::hash;
use abi::status::VcpuStatus;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What was seen of a task whose guest reports, beside its bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenResponse {
    /// The name: `vm/task`.
    pub task: String,
    /// The vCPU: `vm.0`.
    pub vcpu: String,
    /// Jobs that are complete.
    pub jobs: u64,
    /// Jobs that ended after their period.
    pub late: u64,
    /// The mean response, if any job is complete.
    pub mean: Option<Duration>,
    /// The longest response, of jobs that are complete or not. From the beginning of the job's
    /// period, to its end or until now.
    pub longest: Duration,
    /// What it must not exceed, where anything is computed for it.
    pub bound: Option<Duration>,
    /// The period.
    pub period: Duration,
}

impl SeenResponse {
    /// Returns true if a job was released.
    #[must_use]
    pub fn is_seen(&self) -> bool {
        self.jobs > 0 || self.longest > Duration::ZERO
    }
}

/// What was seen of a vCPU with a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenBudget {
    /// The name: `vm.0`.
    pub vcpu: String,
    /// What it may have in each period.
    pub budget: Duration,
    /// What critical sections may take beyond that.
    pub overrun: Duration,
    /// What is known of the most that it had in one.
    pub longest: Option<Between<Duration>>,
    /// What it must not exceed: budget, overrun, and what it takes to stop it.
    pub limit: Duration,
    /// What EL2 counted of it.
    pub counts: Counts,
}

/// What EL2 counts of a vCPU with a budget ([`VcpuStatus`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Times it had used its budget up, with work left.
    pub throttled: u64,
    /// Periods that have begun.
    pub replenished: u64,
    /// Periods in which it overran its budget.
    pub overruns: u64,
    /// Times it was stopped in a global critical section.
    pub overrun_stops: u64,
    /// Sections that raised it.
    pub raised: u64,
    /// Times it was lowered, because it was raised for too long.
    pub lowered: u64,
    /// Calls that EL2 refused.
    pub misuses: u64,
}

impl From<&VcpuStatus> for Counts {
    fn from(status: &VcpuStatus) -> Self {
        let &VcpuStatus { throttled, replenished, overruns, overrun_stops, raised, .. } = status;
        let &VcpuStatus { lowered, misuses, .. } = status;
        Self { throttled, replenished, overruns, overrun_stops, raised, lowered, misuses }
    }
}

/// What the vCPU had is known well enough if it is to a part of the limit that is one of so many.
const PARTS: u32 = 4;

/// Returns how far looks may be apart, so that what a vCPU with this budget has in a period is known well
/// enough: a period begins between two looks, and ends between two others. Some are a little later
/// ([`Observer::look_again_in`]).
pub(super) fn look_every(budget: Duration) -> Duration {
    budget / (2 * PARTS + 1)
}

impl SeenBudget {
    /// Returns the most that it certainly had in a period; none if looks were too far apart to
    /// tell: a quarter more than its limit might have gone by unseen. What is certain to be above
    /// the limit was seen in any case.
    #[must_use]
    pub fn most(&self) -> Option<Duration> {
        let Between { least, most } = self.longest?;
        (most - least <= self.limit / PARTS || least > self.limit).then_some(least)
    }
}

impl Timing {
    /// Returns what was seen of each task whose guest reports.
    pub(super) fn responses(&self, observer: &Observer) -> Vec<SeenResponse> {
        let tasks = 0..self.system.tasks.len();
        tasks.filter_map(|task| self.response(task, observer)).collect()
    }

    fn response(&self, task: usize, observer: &Observer) -> Option<SeenResponse> {
        let described = &self.system.tasks[task];
        let seen = SeenResponse {
            task: described.id.clone(),
            vcpu: self.system.vcpus[described.vcpu].id.clone(),
            jobs: 0,
            late: 0,
            mean: None,
            longest: Duration::ZERO,
            bound: self.bound_ns(task).map(Duration::from_nanos),
            period: Duration::from_nanos(described.period_ns),
        };
        if let Some((hz, reported)) = self.reported(task, observer) {
            let now = observer.latest()?;
            let record = &reported.record;
            let begun = Some(record.unfinished).filter(|&begun| begun > 0);
            let age = begun.map_or(0, |begun| now.since(begun));
            let mean = record.sum.checked_div(record.jobs).map(|mean| time(mean, hz));
            let longest = time(record.longest.max(age), hz);
            return Some(SeenResponse {
                jobs: record.jobs,
                late: record.late,
                mean,
                longest,
                ..seen
            });
        }
        self.dispatched(task, observer, seen)
    }

    /// What a guest with one task reports of its activations: from the beginning of its period to
    /// its first instruction, which is less than its response.
    fn dispatched(
        &self,
        task: usize,
        observer: &Observer,
        seen: SeenResponse,
    ) -> Option<SeenResponse> {
        let vm = self.vms[task];
        let is_only = self.vms.iter().filter(|&&other| other == vm).count() == 1;
        let reports = observer.reports(vm).filter(|_| is_only)?;
        let (header, longest) = (reports.header?, reports.dispatch.max()?);
        let mean = reports.dispatch.mean().map(|ticks| ticks as u64);
        Some(SeenResponse {
            jobs: header.written,
            late: header.missed,
            mean: mean.map(|mean| time(mean, header.counter_hz)),
            longest: time(longest.into(), header.counter_hz),
            ..seen
        })
    }

    /// Returns what a guest reported of a task, and the frequency of its counter.
    fn reported<'a>(&self, task: usize, observer: &'a Observer) -> Option<(u64, &'a SeenTask)> {
        let reports = observer.tasks(self.vms[task])?;
        let name = hash(self.own_name(task).as_bytes());
        let seen = reports.tasks.iter().find(|seen| seen.record.name == name)?;
        Some((reports.header?.counter_hz, seen))
    }

    /// Returns what was seen of each vCPU with a budget.
    pub(super) fn budgets(&self, observer: &Observer) -> Vec<SeenBudget> {
        let all = self.system.vcpus.iter().zip(&self.vcpus);
        let seen = all.filter_map(|(described, &vcpu)| {
            let server = observer.layout.vcpus.get(vcpu)?.server?;
            let counted = observer.latest()?.vcpus.get(vcpu)?;
            let [budget, overrun] = [server.budget_ns, server.overrun_ns].map(Duration::from_nanos);
            let switch = self.overheads.timer_ns + self.overheads.switch_ns();
            Some(SeenBudget {
                vcpu: described.id.clone(),
                budget,
                overrun,
                longest: observer.most_in_a_period(vcpu),
                limit: budget + overrun + Duration::from_nanos(switch),
                counts: counted.into(),
            })
        });
        seen.collect()
    }

    /// Returns the sections of each resource that guests have reported.
    pub(super) fn claims(&self, observer: &Observer) -> Vec<(&str, Vec<Claim>)> {
        let of = |resource: usize| {
            let name = self.system.resources[resource].as_str();
            let users =
                (0..self.system.tasks.len()).filter(|&t| self.system.tasks[t].uses(resource));
            let claims = users.filter_map(|task| {
                let (_, seen) = self.reported(task, observer)?;
                let mutex = hash(name.as_bytes());
                let all = seen.record.sections == seen.sections.len() as u64;
                let sections = seen.sections.iter().filter(|section| section.mutex == mutex);
                let last = seen.sections.last().map_or(0, |section| section.gave);
                Some(Claim {
                    task: self.system.tasks[task].id.clone(),
                    rank: self.rank(task, resource),
                    sections: sections.copied().collect(),
                    until: if all { u64::MAX } else { last },
                })
            });
            (name, claims.collect())
        };
        self.globals().map(of).collect()
    }
}
