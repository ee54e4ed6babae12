//! A verdict as JSON, with names instead of indices and times in nanoseconds.

use crate::bounds::{Bounds, Section, Share, TaskBound, VcpuBound, Verdict};
use crate::model::{self, Ns, System};
use crate::overheads::Overheads;
use serde::Serialize;

/// What programs read. `null` stands for a response time that does not converge
/// within the period.
#[derive(Clone, Debug, Serialize)]
pub struct Answer<'a> {
    /// True if everything holds.
    pub schedulable: bool,
    /// Which equations: `published` or `corrected`.
    pub bounds: &'static str,
    /// What EL2 takes in them; `null` where it takes nothing.
    pub overheads: Option<Overheads>,
    /// One for each vCPU, in the order of the description.
    pub vcpus: Vec<VcpuAnswer<'a>>,
    /// One for each task, in the order of the description.
    pub tasks: Vec<TaskAnswer<'a>>,
}

/// Of one vCPU.
#[derive(Clone, Debug, Serialize)]
pub struct VcpuAnswer<'a> {
    /// The name.
    pub id: &'a str,
    /// W^v.
    pub response: Option<Ns>,
    /// B^v.
    pub blocking: Ns,
    /// O^v.
    pub overrun: Ns,
    /// By EL2.
    pub el2: Ns,
    /// By handlers of vCPUs of lower priority.
    pub handlers: Ns,
    /// What its own handlers, and EL2, take of two periods: at most the budget.
    pub own_handlers: Ns,
    /// True if it gets its budget.
    pub schedulable: bool,
    /// C^v.
    pub budget: Ns,
    /// T^v.
    pub period: Ns,
    /// What the period leaves.
    pub slack: Option<Ns>,
    /// By vCPUs of higher priority.
    pub preemption: Vec<ShareAnswer<'a>>,
}

/// Of one task.
#[derive(Clone, Debug, Serialize)]
pub struct TaskAnswer<'a> {
    /// The name.
    pub id: &'a str,
    /// W, from the beginning of the period.
    pub response: Option<Ns>,
    /// B^l.
    pub local_blocking: Ns,
    /// B^r.
    pub remote_blocking: Option<Ns>,
    /// True if it meets its deadlines.
    pub schedulable: bool,
    /// The name of its vCPU.
    pub vcpu: &'a str,
    /// The period.
    pub deadline: Ns,
    /// What the deadline leaves.
    pub slack: Option<Ns>,
    /// C.
    pub execution: Ns,
    /// By EL2.
    pub el2: Ns,
    /// By handlers of its vCPU.
    pub handlers: Ns,
    /// While its vCPU does not run.
    pub supply_gaps: Ns,
    /// How late it may be released.
    pub jitter: Ns,
    /// By tasks of higher priority.
    pub preemption: Vec<ShareAnswer<'a>>,
    /// Each wait for a global resource.
    pub sections: Vec<SectionAnswer<'a>>,
}

/// How long another task or vCPU takes.
#[derive(Clone, Debug, Serialize)]
pub struct ShareAnswer<'a> {
    /// Whose name.
    pub id: &'a str,
    /// How long.
    pub time: Ns,
}

/// Of one gcs.
#[derive(Clone, Debug, Serialize)]
pub struct SectionAnswer<'a> {
    /// Index of the segment in its task.
    pub segment: usize,
    /// The name of its resource.
    pub resource: &'a str,
    /// B^r_{i,j}.
    pub wait: Option<Ns>,
    /// W^gcs.
    pub response: Ns,
}

impl<'a> Answer<'a> {
    /// What `verdict` says of `system`.
    #[must_use]
    pub fn new(system: &'a System, verdict: &Verdict) -> Self {
        let vcpus = verdict.vcpus.iter().enumerate();
        let tasks = verdict.tasks.iter().enumerate();
        Self {
            schedulable: verdict.schedulable(),
            bounds: match verdict.bounds {
                Bounds::Published => "published",
                Bounds::Corrected => "corrected",
            },
            overheads: Some(verdict.overheads).filter(|overheads| !overheads.is_none()),
            vcpus: vcpus.map(|(index, bound)| vcpu_answer(system, index, bound)).collect(),
            tasks: tasks.map(|(index, bound)| task_answer(system, index, bound)).collect(),
        }
    }
}

fn vcpu_answer<'a>(system: &'a System, index: usize, bound: &VcpuBound) -> VcpuAnswer<'a> {
    let share = |share: &Share| ShareAnswer { id: &system.vcpus[share.of].id, time: share.time_ns };
    VcpuAnswer {
        id: &system.vcpus[index].id,
        response: bound.response_ns,
        blocking: bound.blocking_ns,
        overrun: bound.overrun_ns,
        el2: bound.el2_ns,
        handlers: bound.handlers_ns,
        own_handlers: bound.own_handlers_ns,
        schedulable: bound.schedulable(),
        budget: bound.budget_ns,
        period: bound.period_ns,
        slack: bound.slack_ns(),
        preemption: bound.preemption.iter().map(share).collect(),
    }
}

fn task_answer<'a>(system: &'a System, index: usize, bound: &TaskBound) -> TaskAnswer<'a> {
    let task = &system.tasks[index];
    let share = |share: &Share| ShareAnswer { id: &system.tasks[share.of].id, time: share.time_ns };
    let section = |section: &Section| SectionAnswer {
        segment: section.segment,
        resource: resource_of(system, &task.segments[section.segment]),
        wait: section.wait_ns,
        response: section.response_ns,
    };
    TaskAnswer {
        id: &task.id,
        response: bound.response_ns,
        local_blocking: bound.local_blocking_ns,
        remote_blocking: bound.remote_blocking_ns,
        schedulable: bound.schedulable(),
        vcpu: &system.vcpus[task.vcpu].id,
        deadline: bound.deadline_ns,
        slack: bound.slack_ns(),
        execution: bound.execution_ns,
        el2: bound.el2_ns,
        handlers: bound.handlers_ns,
        supply_gaps: bound.supply_gaps_ns,
        jitter: bound.jitter_ns,
        preemption: bound.preemption.iter().map(share).collect(),
        sections: bound.sections.iter().map(section).collect(),
    }
}

/// The name of what a segment holds; empty when that is nothing.
fn resource_of<'a>(system: &'a System, segment: &model::Segment) -> &'a str {
    match segment.section {
        model::Section::Global(resource) | model::Section::Local(resource) => {
            &system.resources[resource]
        }
        model::Section::Normal => "",
    }
}
