//! What was computed for a system, and whether what a run saw stayed below it.
//!
//! | module | story |
//! | --- | --- |
//! | `seen` | what was seen of each task and each vCPU with a budget |
//! | `order` | whether each mutex went to the task that came first |
//!
//! [`crate::figures::promises`] tells and checks it.
//!
//! Tasks are compared with their bounds where their guests report of them. The bounds are the
//! corrected ones with what EL2 takes: what was measured and the usual margin, unless told otherwise. They say nothing where the analysis
//! does not find the system schedulable, and nothing of the host's time. vCPUs are compared with
//! what their servers allow in a period, which EL2 enforces in any case.

mod order;
mod seen;

pub use order::{Claim, objections};
pub use seen::{Counts, SeenBudget, SeenResponse};

use crate::observe::Observer;
use analysis::bounds::{Bounds, Verdict, analyze_with};
use analysis::model::{self, Section};
use analysis::overheads::{DEFAULT_MARGIN_PERMILLE, Overheads};
use std::cmp::Reverse;
use std::time::Duration;
use system::Checked;
use system::model::Protocol;

/// What was computed. The default is a system without budgets, for which nothing is.
#[derive(Clone, Debug, Default)]
pub struct Promises {
    timing: Option<Timing>,
}

/// Of a system with budgets.
#[derive(Clone, Debug)]
struct Timing {
    system: model::System,
    protocol: Protocol,
    overheads: Overheads,
    /// None: it cannot be computed.
    verdict: Option<Verdict>,
    /// By vCPU of the model: its index in the tables.
    vcpus: Vec<usize>,
    /// By task of the model: its VM.
    vms: Vec<usize>,
}

impl Promises {
    /// Computes what is promised for a system, with what EL2 was measured to take and the usual
    /// margin.
    #[must_use]
    pub fn of(checked: &Checked) -> Self {
        Self::with(checked, checked.overheads(DEFAULT_MARGIN_PERMILLE))
    }

    /// Like [`Self::of`], with other times that EL2 takes.
    #[must_use]
    pub fn with(checked: &Checked, overheads: Overheads) -> Self {
        let Some(system) = checked.timing.clone() else { return Self::default() };
        let all = checked.vms.iter().enumerate();
        let all = all.flat_map(|(index, vm)| vm.vcpus.iter().map(move |vcpu| (index, vcpu)));
        let served = all.enumerate().filter(|(_, (_, vcpu))| vcpu.server.is_some());
        let (vcpus, vm_of): (Vec<_>, Vec<_>) = served.map(|(place, (vm, _))| (place, vm)).unzip();
        let vms = system.tasks.iter().map(|task| vm_of[task.vcpu]).collect();
        let promises = Self::computed(system, overheads, vcpus, vms);
        promises.under(checked.protocol)
    }

    /// Promises nothing that is not known of this protocol.
    fn under(mut self, protocol: Protocol) -> Self {
        if let Some(timing) = &mut self.timing {
            timing.protocol = protocol;
            timing.verdict = timing.verdict.take().filter(|_| protocol == Protocol::Vmpcp);
        }
        self
    }

    /// Computes it for a model whose vCPUs stand in the tables at `vcpus`, and whose tasks are of
    /// the VMs `vms`.
    pub(crate) fn computed(
        system: model::System,
        overheads: Overheads,
        vcpus: Vec<usize>,
        vms: Vec<usize>,
    ) -> Self {
        let verdict = analyze_with(&system, Bounds::Corrected, overheads).ok();
        let protocol = Protocol::Vmpcp;
        Self { timing: Some(Timing { system, protocol, overheads, verdict, vcpus, vms }) }
    }

    /// Returns what was seen of each task whose guest reports.
    #[must_use]
    pub fn responses(&self, observer: &Observer) -> Vec<SeenResponse> {
        self.timing.as_ref().map_or_else(Vec::new, |timing| timing.responses(observer))
    }

    /// Returns the declared tasks of which no response was seen, by name: no guest reports of them, or
    /// none has released a job.
    #[must_use]
    pub fn unseen(&self, observer: &Observer) -> Vec<&str> {
        let mut seen = self.responses(observer);
        seen.retain(SeenResponse::is_seen);
        let tasks = self.timing.iter().flat_map(|timing| &timing.system.tasks);
        let names = tasks.map(|task| task.id.as_str());
        names.filter(|name| seen.iter().all(|seen| seen.task != *name)).collect()
    }

    /// Returns what was seen of each vCPU with a budget.
    #[must_use]
    pub fn budgets(&self, observer: &Observer) -> Vec<SeenBudget> {
        self.timing.as_ref().map_or_else(Vec::new, |timing| timing.budgets(observer))
    }

    /// Returns how often to look at the machine, at least, to tell what each vCPU with a budget has in
    /// each of its periods; none without budgets.
    #[must_use]
    pub fn look_every(&self) -> Option<Duration> {
        let vcpus = self.timing.iter().flat_map(|timing| &timing.system.vcpus);
        vcpus.map(|vcpu| seen::look_every(Duration::from_nanos(vcpu.budget_ns))).min()
    }

    /// Returns the global resources by name, each with what tasks reported of it.
    #[must_use]
    pub fn claims(&self, observer: &Observer) -> Vec<(&str, Vec<Claim>)> {
        self.timing.as_ref().map_or_else(Vec::new, |timing| timing.claims(observer))
    }

    /// Returns how many global critical sections were seen, and for how many of them a task waited.
    #[must_use]
    pub fn sections(&self, observer: &Observer) -> [u64; 2] {
        let claims = self.claims(observer).into_iter().flat_map(|(_, all)| all);
        let sections: Vec<_> = claims.flat_map(|claim| claim.sections).collect();
        let waited = sections.iter().filter(|section| section.queued > 0).count();
        [sections.len(), waited].map(|count| count as u64)
    }

    /// Returns true if every deadline is to hold.
    #[must_use]
    pub fn schedulable(&self) -> bool {
        self.timing.as_ref().is_some_and(Timing::schedulable)
    }
}

impl Timing {
    fn schedulable(&self) -> bool {
        self.verdict.as_ref().is_some_and(Verdict::schedulable)
    }

    /// Returns the bound on the response of a task, ns.
    fn bound_ns(&self, task: usize) -> Option<u64> {
        self.verdict.as_ref()?.tasks[task].response_ns
    }

    /// Returns a task's name in its VM.
    fn own_name(&self, task: usize) -> &str {
        let id = &self.system.tasks[task].id;
        id.split_once('/').map_or(id, |(_, name)| name)
    }

    /// Returns the place of a task in the queue of a resource: 0 is served first, by the priority
    /// of its vCPU, then by its own (RTSS 2014, Section III-A, rules 5 and 6); under MPCP by its own
    /// first.
    fn rank(&self, task: usize, resource: usize) -> usize {
        let key = |task: usize| {
            let of = &self.system.tasks[task];
            let vcpu = self.system.vcpus[of.vcpu].priority;
            Reverse(match self.protocol {
                Protocol::Vmpcp => (vcpu, of.priority),
                Protocol::Mpcp => (of.priority, vcpu),
            })
        };
        let users = (0..self.system.tasks.len())
            .filter(|&other| self.system.tasks[other].uses(resource) && key(other) < key(task));
        users.count()
    }

    /// Returns the resources that tasks of several vCPUs use, or might.
    fn globals(&self) -> impl Iterator<Item = usize> + '_ {
        let global = |resource: &usize| {
            let mut segments = self.system.tasks.iter().flat_map(|task| &task.segments);
            segments.any(|segment| segment.section == Section::Global(*resource))
        };
        (0..self.system.resources.len()).filter(global)
    }
}
