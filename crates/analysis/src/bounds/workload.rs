//! A system as the equations read it: what does not depend on budgets or on the
//! server is summed up once, and nothing is allocated after that.

use super::Bounds;
use super::arithmetic::{Computed, add, sum};
use super::el2::El2;
use crate::model::{Handler, Ns, Section, ServerKind, Service, System};
use std::cmp::Reverse;
use std::ops::Range;

/// What the equations are about. vCPUs, tasks and segments have the indices that
/// they have in the [`System`]; budgets and the server may be changed.
#[derive(Clone, Debug)]
pub struct Workload {
    pub(super) bounds: Bounds,
    /// What EL2 takes.
    pub(super) el2: El2,
    /// How many periods of a task Equations 6 and 11 look at.
    pub(super) reach: u64,
    pub(super) vcpus: Vec<VcpuLoad>,
    pub(super) tasks: Vec<TaskLoad>,
    /// Every gcs, task by task in the order of segments.
    pub(super) sections: Vec<GcsLoad>,
    /// vCPUs grouped by pCPU, the highest priority first.
    pub(super) on_pcpu: Vec<usize>,
    /// Tasks grouped by vCPU, the highest priority first.
    pub(super) on_vcpu: Vec<usize>,
    /// Indices in `sections`, grouped by resource.
    pub(super) users: Vec<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct VcpuLoad {
    pub budget: Ns,
    pub period: Ns,
    pub priority: i64,
    pub service: Service,
    /// In `on_pcpu`: those of the same pCPU with a higher, a lower priority.
    pub higher: Range<usize>,
    pub lower: Range<usize>,
    /// In `on_vcpu`: its tasks.
    pub tasks: Range<usize>,
    /// Equation 1.
    pub ght: Ns,
    /// The handlers.
    pub handlers: Vec<HandlerLoad>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct HandlerLoad {
    pub period: Ns,
    pub wcet: Ns,
}

#[derive(Clone, Debug)]
pub(super) struct TaskLoad {
    pub vcpu: usize,
    pub period: Ns,
    pub jitter: Ns,
    /// C_i.
    pub wcet: Ns,
    /// max E_{i,k} over the gcs's; 0 without.
    pub longest_gcs: Ns,
    /// The sum of E_{i,k} over the gcs's.
    pub all_gcs: Ns,
    /// In `on_vcpu`: those of the same vCPU with a higher, a lower priority.
    pub higher: Range<usize>,
    pub lower: Range<usize>,
    /// In `sections`: its gcs's.
    pub sections: Range<usize>,
    /// Equation 7.
    pub lcs_blocking: Ns,
    /// Equation 8.
    pub gcs_blocking: Ns,
}

#[derive(Clone, Debug)]
pub(super) struct GcsLoad {
    pub task: usize,
    /// Index of the segment in its task.
    pub segment: usize,
    pub wcet: Ns,
    /// In `users`: the gcs's with the same resource, this one included.
    pub users: Range<usize>,
    /// Equation 12.
    pub load: Ns,
    /// Equation 13.
    pub vcpu_preemption: Ns,
}

impl HandlerLoad {
    const fn new(handler: &Handler) -> Self {
        Self { period: handler.period_ns, wcet: handler.wcet_ns }
    }
}

impl Workload {
    /// Sums up `system`, which [`System::check`] accepts.
    ///
    /// # Errors
    /// When a sum overflows.
    pub fn new(system: &System, bounds: Bounds) -> Computed<Self> {
        let mut workload = Self {
            bounds,
            el2: El2::default(),
            reach: 1,
            vcpus: Vec::with_capacity(system.vcpus.len()),
            tasks: Vec::with_capacity(system.tasks.len()),
            sections: Vec::new(),
            on_pcpu: (0..system.vcpus.len()).collect(),
            on_vcpu: (0..system.tasks.len()).collect(),
            users: Vec::new(),
        };
        workload.add_vcpus(system);
        workload.add_tasks(system)?;
        workload.group_vcpus(system);
        workload.group_tasks(system);
        workload.group_users(system);
        workload.sum_up(system)?;
        Ok(workload)
    }

    /// Serves the budgets of all vCPUs alike from now on.
    pub fn set_server(&mut self, kind: ServerKind, overrun: bool) {
        self.vcpus.iter_mut().for_each(|vcpu| vcpu.service = Service { kind, overrun });
    }

    /// Gives a vCPU another budget: from 1 ns to its period.
    pub fn set_budget(&mut self, vcpu: usize, budget: Ns) {
        debug_assert!((1..=self.vcpus[vcpu].period).contains(&budget));
        self.vcpus[vcpu].budget = budget;
    }

    /// Gives a vCPU another budget and period: from 1 ns to the period.
    ///
    /// # Errors
    /// When EL2 alone takes all of a pCPU, for periods are too short.
    pub fn set_server_of(&mut self, vcpu: usize, budget: Ns, period: Ns) -> Computed<()> {
        let other = self.vcpus[vcpu].period != period;
        self.vcpus[vcpu].period = period;
        self.set_budget(vcpu, budget);
        if other { self.measure_busy() } else { Ok(()) }
    }

    /// Looks for response times and waits of tasks up to so many periods, instead
    /// of 1. What is beyond the first is no bound where other tasks are late too,
    /// but says by how much.
    pub fn set_reach(&mut self, periods: u64) {
        self.reach = periods;
    }

    /// How many vCPUs there are.
    #[must_use]
    pub fn vcpus(&self) -> usize {
        self.vcpus.len()
    }

    /// How many tasks there are.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Every task, those of one vCPU together, the highest priority first: the
    /// order in which Equation 6 can be computed.
    pub fn tasks_in_order(&self) -> impl Iterator<Item = usize> + '_ {
        self.on_vcpu.iter().copied()
    }

    fn add_vcpus(&mut self, system: &System) {
        self.vcpus.extend(system.vcpus.iter().enumerate().map(|(index, vcpu)| VcpuLoad {
            budget: vcpu.budget_ns,
            period: vcpu.period_ns,
            priority: vcpu.priority,
            service: system.service(index),
            higher: 0..0,
            lower: 0..0,
            tasks: 0..0,
            ght: 0,
            handlers: system.handlers_of(index).map(HandlerLoad::new).collect(),
        }));
    }

    fn add_tasks(&mut self, system: &System) -> Computed<()> {
        for (index, task) in system.tasks.iter().enumerate() {
            let first = self.sections.len();
            for (segment, of) in task.segments.iter().enumerate() {
                if matches!(of.section, Section::Global(_)) {
                    let (load, vcpu_preemption) = (0, 0);
                    let (task, wcet, users) = (index, of.wcet_ns, 0..0);
                    let section = GcsLoad { task, segment, wcet, users, load, vcpu_preemption };
                    self.sections.push(section);
                }
            }
            let gcs = || self.sections[first..].iter().map(|section| section.wcet);
            self.tasks.push(TaskLoad {
                vcpu: task.vcpu,
                period: task.period_ns,
                jitter: task.jitter_ns,
                wcet: sum(task.segments.iter().map(|segment| segment.wcet_ns))?,
                longest_gcs: gcs().max().unwrap_or(0),
                all_gcs: sum(gcs())?,
                higher: 0..0,
                lower: 0..0,
                sections: first..self.sections.len(),
                lcs_blocking: 0,
                gcs_blocking: 0,
            });
        }
        Ok(())
    }

    fn group_vcpus(&mut self, system: &System) {
        let key =
            |&index: &usize| (system.vcpus[index].pcpu, Reverse(system.vcpus[index].priority));
        self.on_pcpu.sort_unstable_by_key(key);
        let groups = groups(&self.on_pcpu, |index| system.vcpus[index].pcpu as usize);
        for group in groups {
            for place in group.clone() {
                let vcpu = &mut self.vcpus[self.on_pcpu[place]];
                (vcpu.higher, vcpu.lower) = (group.start..place, place + 1..group.end);
            }
        }
    }

    fn group_tasks(&mut self, system: &System) {
        let key =
            |&index: &usize| (system.tasks[index].vcpu, Reverse(system.tasks[index].priority));
        self.on_vcpu.sort_unstable_by_key(key);
        for group in groups(&self.on_vcpu, |index| system.tasks[index].vcpu) {
            for place in group.clone() {
                let task = &mut self.tasks[self.on_vcpu[place]];
                (task.higher, task.lower) = (group.start..place, place + 1..group.end);
            }
            let vcpu = system.tasks[self.on_vcpu[group.start]].vcpu;
            self.vcpus[vcpu].tasks = group;
        }
    }

    fn group_users(&mut self, system: &System) {
        let resource = |sections: &[GcsLoad], index: usize| {
            let section = &sections[index];
            match system.tasks[section.task].segments[section.segment].section {
                Section::Global(resource) => resource,
                Section::Normal | Section::Local(_) => usize::MAX, // only gcs's are listed
            }
        };
        self.users = (0..self.sections.len()).collect();
        self.users.sort_by_key(|&index| resource(&self.sections, index));
        for group in groups(&self.users, |index| resource(&self.sections, index)) {
            for place in group.clone() {
                self.sections[self.users[place]].users = group.clone();
            }
        }
    }

    fn sum_up(&mut self, system: &System) -> Computed<()> {
        for vcpu in 0..self.vcpus.len() {
            self.vcpus[vcpu].ght = self.sum_of_longest_gcs(self.vcpus[vcpu].tasks.clone())?;
        }
        for task in 0..self.tasks.len() {
            self.tasks[task].lcs_blocking = self.longest_lcs_below(system, task);
            let below = self.tasks[task].lower.clone();
            self.tasks[task].gcs_blocking = self.sum_of_longest_gcs(below)?;
        }
        for index in 0..self.sections.len() {
            let section = &self.sections[index];
            let task = &self.tasks[section.task];
            let above = self.sum_of_longest_gcs(task.higher.clone())?;
            let load = add(section.wcet, above)?;
            let higher = &self.on_pcpu[self.vcpus[task.vcpu].higher.clone()];
            let vcpu_preemption = sum(higher.iter().map(|&vcpu| self.vcpus[vcpu].ght))?;
            self.sections[index].load = load;
            self.sections[index].vcpu_preemption = vcpu_preemption;
        }
        Ok(())
    }

    /// One gcs for each of these tasks, the longest.
    fn sum_of_longest_gcs(&self, places: Range<usize>) -> Computed<Ns> {
        sum(self.on_vcpu[places].iter().map(|&task| self.tasks[task].longest_gcs))
    }

    /// The longest lcs of a task below `task` whose ceiling lets it block `task`.
    fn longest_lcs_below(&self, system: &System, task: usize) -> Ns {
        let priority = system.tasks[task].priority;
        let peers = &self.on_vcpu[self.vcpus[self.tasks[task].vcpu].tasks.clone()];
        let uses = |peer: usize, resource: usize| {
            let mut segments = system.tasks[peer].segments.iter();
            segments.any(|segment| segment.section == Section::Local(resource))
        };
        // The priority of the highest task that ever locks the resource.
        let ceiling = |resource: usize| {
            let users = peers.iter().filter(|&&peer| uses(peer, resource));
            users.map(|&peer| system.tasks[peer].priority).max()
        };
        let blocks = |ceiling: i64| match self.bounds {
            Bounds::Published => ceiling > priority,
            Bounds::Corrected => ceiling >= priority,
        };
        let below = self.on_vcpu[self.tasks[task].lower.clone()].iter();
        let segments = below.flat_map(|&lower| system.tasks[lower].segments.iter());
        let blocking = segments.filter_map(|segment| match segment.section {
            Section::Local(resource) if ceiling(resource).is_some_and(blocks) => {
                Some(segment.wcet_ns)
            }
            _ => None,
        });
        blocking.max().unwrap_or(0)
    }
}

/// Stretches of `order` whose members have the same key.
fn groups(order: &[usize], key: impl Fn(usize) -> usize) -> Vec<Range<usize>> {
    let chunks = order.chunk_by(|&a, &b| key(a) == key(b));
    let ends = chunks.scan(0, |end, chunk| {
        let start = *end;
        *end += chunk.len();
        Some(start..*end)
    });
    ends.collect()
}
