//! What the equations say of a whole system, and what each bound is made of.

use super::arithmetic::{Computed, Uncomputable, add};
use super::{Bounds, Workload};
use crate::model::{Ns, System};
use crate::overheads::Overheads;
use thiserror::Error;

/// What is known of every vCPU and task, in the order of the [`System`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Which equations were used.
    pub bounds: Bounds,
    /// What EL2 takes in them.
    pub overheads: Overheads,
    /// One for each vCPU.
    pub vcpus: Vec<VcpuBound>,
    /// One for each task. They hold if all vCPUs get their budgets.
    pub tasks: Vec<TaskBound>,
}

/// How long another task or vCPU takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Index of the vCPU or task.
    pub of: usize,
    /// For how long, in all.
    pub time_ns: Ns,
}

/// Equation 5 for one vCPU. Without a response time, the parts are those of a
/// whole period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VcpuBound {
    /// From the beginning of its period until it has had its budget and overrun;
    /// nothing when that is longer than the period.
    pub response_ns: Option<Ns>,
    /// The own budget.
    pub budget_ns: Ns,
    /// What it may run beyond that.
    pub overrun_ns: Ns,
    /// Gcs's of vCPUs of lower priority.
    pub blocking_ns: Ns,
    /// vCPUs of higher priority.
    pub preemption: Vec<Share>,
    /// EL2.
    pub el2_ns: Ns,
    /// Handlers of vCPUs of lower priority, while a gcs raises those.
    pub handlers_ns: Ns,
    /// What its own handlers, and EL2, take of two periods. That they end in time is certain if the
    /// budget is no less.
    pub own_handlers_ns: Ns,
    /// What the response time must not exceed.
    pub period_ns: Ns,
}

/// Equation 6 for one task. Without a response time, the parts are those of the
/// time until its deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskBound {
    /// From the beginning of its period, jitter included, to the end of its job;
    /// nothing when no bound within the period is found.
    pub response_ns: Option<Ns>,
    /// C, all its segments.
    pub execution_ns: Ns,
    /// B^l, Equation 9.
    pub local_blocking_ns: Ns,
    /// B^r, Equation 10; nothing when a wait has no bound within the period.
    pub remote_blocking_ns: Option<Ns>,
    /// B^r of each gcs, Equation 11.
    pub sections: Vec<Section>,
    /// Tasks of higher priority on the same vCPU.
    pub preemption: Vec<Share>,
    /// EL2, whatever it is for.
    pub el2_ns: Ns,
    /// Handlers of the vCPU.
    pub handlers_ns: Ns,
    /// While the vCPU does not run.
    pub supply_gaps_ns: Ns,
    /// How late it may be released.
    pub jitter_ns: Ns,
    /// What the response time must not exceed: the period.
    pub deadline_ns: Ns,
    /// A task of higher priority on the same vCPU that has no bound, so that
    /// this one has none either.
    pub unbounded_because_of: Option<usize>,
}

/// The wait for one global resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// Index of the segment in its task.
    pub segment: usize,
    /// B^r_{i,j}, Equation 11; nothing when it is longer than the period.
    pub wait_ns: Option<Ns>,
    /// The part of it that one gcs of a vCPU of lower priority takes.
    pub lower_ns: Ns,
    /// W^gcs, Equations 14 to 16: from then until the gcs is over.
    pub response_ns: Ns,
}

/// A bound could not be computed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the bound of {of} cannot be computed: {cause}")]
pub struct AnalysisError {
    /// Which vCPU or task.
    pub of: String,
    /// Why.
    pub cause: Uncomputable,
}

impl Verdict {
    /// Returns true if every vCPU gets its budget and every task meets its deadline.
    #[must_use]
    pub fn schedulable(&self) -> bool {
        self.vcpus.iter().all(VcpuBound::schedulable)
            && self.tasks.iter().all(TaskBound::schedulable)
    }
}

impl VcpuBound {
    /// Returns true if it gets its budget in every period, and that suffices for its handlers.
    #[must_use]
    pub fn schedulable(&self) -> bool {
        self.response_ns.is_some() && self.handlers_end()
    }

    /// Returns true if its own handlers end in time.
    #[must_use]
    pub fn handlers_end(&self) -> bool {
        self.own_handlers_ns <= self.budget_ns
    }

    /// What the period leaves.
    #[must_use]
    pub fn slack_ns(&self) -> Option<Ns> {
        self.response_ns.map(|response| self.period_ns - response)
    }
}

impl TaskBound {
    /// Returns true if it meets every deadline, if all vCPUs get their budgets.
    #[must_use]
    pub fn schedulable(&self) -> bool {
        self.response_ns.is_some()
    }

    /// What the deadline leaves.
    #[must_use]
    pub fn slack_ns(&self) -> Option<Ns> {
        self.response_ns.map(|response| self.deadline_ns - response)
    }

    /// The part that takes longest, and how long it takes: nothing when it is a
    /// wait without a bound. What to look at when a deadline is missed.
    #[must_use]
    pub fn largest(&self) -> (Contribution, Option<Ns>) {
        let known = [
            (Contribution::Execution, Some(self.execution_ns)),
            (Contribution::LocalBlocking, Some(self.local_blocking_ns)),
            (Contribution::El2, Some(self.el2_ns)),
            (Contribution::Handlers, Some(self.handlers_ns)),
            (Contribution::SupplyGaps, Some(self.supply_gaps_ns)),
        ];
        let preemption =
            self.preemption.iter().map(|s| (Contribution::Preemption(s.of), Some(s.time_ns)));
        let waits = self.sections.iter().map(|s| (Contribution::RemoteWait(s.segment), s.wait_ns));
        let parts = known.into_iter().chain(preemption).chain(waits);
        let largest = parts.max_by_key(|(_, time)| time.unwrap_or(Ns::MAX));
        largest.unwrap_or((Contribution::Execution, Some(self.execution_ns)))
    }
}

/// What a task spends its response time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contribution {
    /// The own segments.
    Execution,
    /// Critical sections of tasks of lower priority on the same vCPU.
    LocalBlocking,
    /// EL2, on its pCPU.
    El2,
    /// Handlers of interrupts on the same vCPU.
    Handlers,
    /// Waiting while its vCPU has no budget, or is preempted.
    SupplyGaps,
    /// A task of higher priority.
    Preemption(usize),
    /// Waiting for the resource of this segment.
    RemoteWait(usize),
}

/// Bounds for everything in `system`, which [`System::check`] accepts, as if EL2 took no time.
///
/// # Errors
/// When a time overflows, or when iterating takes for ever.
pub fn analyze(system: &System, bounds: Bounds) -> Result<Verdict, AnalysisError> {
    analyze_with(system, bounds, Overheads::NONE)
}

/// Like [`analyze`], but the bounds contain what EL2 takes.
///
/// # Errors
/// When a time overflows, when iterating takes for ever, or when EL2 alone takes all of a pCPU.
pub fn analyze_with(
    system: &System,
    bounds: Bounds,
    overheads: Overheads,
) -> Result<Verdict, AnalysisError> {
    let of = |of: String| move |cause| AnalysisError { of, cause };
    let workload = Workload::with_overheads(system, bounds, overheads);
    let workload = workload.map_err(of("the system".into()))?;
    let vcpus =
        system.vcpus.iter().enumerate().map(|(index, vcpu)| {
            workload.vcpu_bound(index).map_err(of(format!("vCPU `{}`", vcpu.id)))
        });
    let vcpus = vcpus.collect::<Result<_, _>>()?;
    let mut responses = vec![None; system.tasks.len()];
    let mut tasks = vec![None; system.tasks.len()];
    for index in workload.tasks_in_order() {
        let of = of(format!("task `{}`", system.tasks[index].id));
        let bound = workload.task_bound(index, &mut responses).map_err(of)?;
        tasks[index] = Some(bound);
    }
    Ok(Verdict { bounds, overheads, vcpus, tasks: tasks.into_iter().flatten().collect() })
}

impl Workload {
    /// Returns true if every vCPU passes Equation 5, and its handlers end in time.
    ///
    /// # Errors
    /// When a time overflows, or when iterating takes for ever.
    pub fn vcpus_schedulable(&self) -> Computed<bool> {
        for vcpu in 0..self.vcpus() {
            if !self.vcpu_schedulable(vcpu)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns true if one vCPU does.
    ///
    /// # Errors
    /// When a time overflows, or when iterating takes for ever.
    pub fn vcpu_schedulable(&self, vcpu: usize) -> Computed<bool> {
        Ok(self.handlers_end(vcpu) && self.vcpu_response(vcpu)?.is_some())
    }

    /// Returns true if every task passes Equation 6, and all handlers end in time. Writes response times to
    /// `responses`, one for each task, until one fails.
    ///
    /// # Errors
    /// When a time overflows, or when iterating takes for ever.
    pub fn tasks_schedulable(&self, responses: &mut [Option<Ns>]) -> Computed<bool> {
        for task in self.tasks_in_order() {
            responses[task] = self.task_response(task, responses)?;
            if responses[task].is_none() {
                return Ok(false);
            }
        }
        Ok((0..self.vcpus()).all(|vcpu| self.handlers_end(vcpu)))
    }

    fn vcpu_bound(&self, index: usize) -> Computed<VcpuBound> {
        let response_ns = self.vcpu_response(index)?;
        let period_ns = self.vcpus[index].period;
        let time = response_ns.unwrap_or(period_ns);
        let share = |of| Ok(Share { of, time_ns: self.vcpu_interference(of, time)? });
        Ok(VcpuBound {
            response_ns,
            budget_ns: self.vcpus[index].budget,
            overrun_ns: self.overrun_time(index),
            blocking_ns: self.vcpu_blocking(index, time)?,
            preemption: self.higher_vcpus(index).map(share).collect::<Computed<_>>()?,
            el2_ns: self.el2_time(index, time),
            handlers_ns: self.raised_handler_time(self.lower_vcpus(index), time),
            own_handlers_ns: self.handlers_demand(index),
            period_ns,
        })
    }

    fn task_bound(&self, index: usize, responses: &mut [Option<Ns>]) -> Computed<TaskBound> {
        let response = self.task_response(index, responses)?;
        responses[index] = response;
        let task = &self.tasks[index];
        let time = response.unwrap_or(task.period - task.jitter);
        // What has no bound takes its deadline, at least.
        let share = |of: usize| {
            let response = responses[of].unwrap_or(self.tasks[of].period);
            Ok(Share { of, time_ns: self.task_interference(of, time, response)? })
        };
        let section = |section: usize| {
            Ok(Section {
                segment: self.segment(section),
                wait_ns: self.remote_wait(section, responses)?,
                lower_ns: self.longest_lower(section)?,
                response_ns: self.gcs_response(section)?,
            })
        };
        Ok(TaskBound {
            response_ns: response.map(|response| add(response, task.jitter)).transpose()?,
            execution_ns: task.wcet,
            local_blocking_ns: self.local_blocking(index)?,
            remote_blocking_ns: self.remote_blocking(index, responses)?,
            sections: self.sections(index).map(section).collect::<Computed<_>>()?,
            preemption: self.higher_tasks(index).map(share).collect::<Computed<_>>()?,
            el2_ns: self.el2_time(task.vcpu, time),
            handlers_ns: self.handler_time(task.vcpu, time),
            supply_gaps_ns: self.supply_gaps(task.vcpu, time)?,
            jitter_ns: task.jitter,
            deadline_ns: task.period,
            unbounded_because_of: self.higher_tasks(index).find(|&of| responses[of].is_none()),
        })
    }
}
