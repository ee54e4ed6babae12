//! What is simulated, and what makes no sense.

use crate::mutex::Order;
use sched::server::{Account, Server};
use sched::{Instant, MAX_VCPUS};
use std::collections::BTreeSet;
use std::fmt;

/// How global resources are accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Ceilings for tasks and vCPUs, overrun where the servers allow it, and
    /// queues by vCPU first (RTSS 2014, Section III-A).
    Vmpcp,
    /// The baseline that knows of tasks only: a ceiling within the guest, but
    /// none for the vCPU; no overrun; queues by task priority, which must
    /// therefore mean the same in all guests. Ties: by vCPU.
    Mpcp,
}

impl Protocol {
    pub(crate) const fn order(self) -> Order {
        match self {
            Self::Vmpcp => Order::VcpuFirst,
            Self::Mpcp => Order::TaskFirst,
        }
    }
}

/// How long a segment takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// Always its worst case.
    Worst,
    /// By chance from `least` percent (1 to 100) of the worst case to all of it;
    /// one in four takes all of it.
    Random {
        /// Percent of the worst case.
        least: u8,
    },
}

/// What EL2 takes of a core for each of its visits, ns; nothing by default. What each is for
/// stands at `analysis::overheads::Overheads`, whose times they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// A job is released.
    pub release: u64,
    /// A vCPU preempts another one, or ends the core's sleep.
    pub switch_on_wake: u64,
    /// A vCPU has gone to sleep.
    pub switch_on_sleep: u64,
    /// The scheduler's timer fires.
    pub timer: u64,
    /// A core is told that it has a message.
    pub doorbell: u64,
    /// A global resource is requested, or given back.
    pub gcs_call: u64,
    /// A global resource is passed on; on each of both cores.
    pub grant: u64,
    /// With each switch.
    pub departure: u64,
    /// With each release.
    pub timer_advance: u64,
    /// Another duty.
    pub duty: u64,
    /// From one such duty to the next; 0: there are none.
    pub duty_every: u64,
}

/// A vCPU that is not simulated loses its core, and what EL2 takes for that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Displacement {
    /// Indices of the vCPUs that displace it when they run, all of one core; at least one.
    pub by: Vec<usize>,
    /// Cores, each with what EL2 takes there when that begins, ns.
    pub begins: Vec<(usize, u64)>,
    /// The same for when it ends.
    pub ends: Vec<(usize, u64)>,
}

/// A virtual CPU.
#[derive(Clone, Debug)]
pub struct Vcpu {
    /// How people call it.
    pub name: String,
    /// The core it is assigned to, from 0.
    pub core: usize,
    /// Larger is higher; compared with all vCPUs of the system. Equals come in
    /// the order of this list, the later one first.
    pub priority: u64,
    /// The budget; none: as much as it likes.
    pub server: Option<Server>,
    /// When its first period begins, ns.
    pub offset: u64,
}

/// What a segment needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// Nothing but time.
    Nothing,
    /// A resource that is shared with other vCPUs: a gcs.
    Global(usize),
    /// A resource that is shared within the vCPU: an lcs.
    Local(usize),
}

/// A part of a task's execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Worst-case execution time, ns; not zero.
    pub wcet: u64,
    /// What it holds meanwhile.
    pub need: Need,
}

/// A periodic task, or the handler of an interrupt that comes periodically.
#[derive(Clone, Debug)]
pub struct Task {
    /// How people call it.
    pub name: String,
    /// Index of its vCPU.
    pub vcpu: usize,
    /// Larger is higher; unique among the tasks and among the handlers of its vCPU.
    pub priority: u64,
    /// It is a handler: it goes before all tasks of its vCPU, those in critical sections included.
    /// It holds nothing itself, and has no deadline.
    pub handler: bool,
    /// From one arrival to the next, and the deadline, ns.
    pub period: u64,
    /// The first arrival, ns.
    pub offset: u64,
    /// A job may be released so much later than it arrives, ns; below the
    /// period.
    pub jitter: u64,
    /// What a job executes, in order.
    pub segments: Vec<Segment>,
}

impl Task {
    /// What tasks of a vCPU are ordered by: greater goes first.
    pub(crate) const fn rank(&self) -> (bool, u64) {
        (self.handler, self.priority)
    }
}

/// Everything that is simulated.
#[derive(Clone, Debug)]
pub struct System {
    /// How global resources are accessed.
    pub protocol: Protocol,
    /// How long segments take.
    pub execution: Execution,
    /// What EL2 takes.
    pub costs: Costs,
    /// What it takes besides for vCPUs that are displaced: at most 64 of them.
    pub displacements: Vec<Displacement>,
    /// What chance begins with.
    pub seed: u64,
    /// At most [`MAX_VCPUS`].
    pub vcpus: Vec<Vcpu>,
    /// At most 64 of each vCPU, handlers included.
    pub tasks: Vec<Task>,
}

/// Why a system cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The vCPU or task.
    pub of: String,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.of, self.why)
    }
}

impl std::error::Error for Refusal {}

/// Most cores, and most tasks of a vCPU: sets of them are words.
pub const MAX_OF_EACH: usize = 64;

/// No time is longer, and the world ends here: 2^62 ns, 146 years. An instant
/// and two times after it always fit 64 bits.
pub const MAX_TIME: u64 = 1 << 62;

impl System {
    /// Returns true if this can be simulated.
    ///
    /// # Errors
    /// The first thing that makes no sense.
    pub fn check(&self) -> Result<(), Refusal> {
        if self.vcpus.len() > MAX_VCPUS {
            return refuse("the system", format!("has more than {MAX_VCPUS} vCPUs"));
        }
        if let Execution::Random { least: 0 | 101.. } = self.execution {
            return refuse("execution times", "begin below 1 % or above 100 %".into());
        }
        self.vcpus.iter().try_for_each(check_vcpu)?;
        self.tasks.iter().try_for_each(|task| self.check_task(task))?;
        (0..self.vcpus.len()).try_for_each(|vcpu| self.check_tasks_of(vcpu))?;
        self.check_displacements()?;
        self.check_ranks()
    }

    fn check_task(&self, task: &Task) -> Result<(), Refusal> {
        if self.vcpus.get(task.vcpu).is_none() {
            return refuse(&task.name, "its vCPU does not exist".into());
        }
        if task.period == 0 {
            return refuse(&task.name, "its period is zero".into());
        }
        if task.period.max(task.offset) > MAX_TIME {
            return refuse(&task.name, "its period or offset is longer than 2^62 ns".into());
        }
        if task.jitter >= task.period {
            return refuse(&task.name, "its release jitter is not below its period".into());
        }
        if task.segments.is_empty() || task.segments.iter().any(|segment| segment.wcet == 0) {
            return refuse(&task.name, "it has no segment, or one that takes no time".into());
        }
        if task.segments.iter().any(|segment| segment.wcet > MAX_TIME) {
            return refuse(&task.name, "a segment of it is longer than 2^62 ns".into());
        }
        if task.handler && task.segments.iter().any(|segment| segment.need != Need::Nothing) {
            return refuse(&task.name, "it is a handler, and needs a resource".into());
        }
        for segment in &task.segments {
            if let Need::Local(resource) = segment.need
                && self.tasks.iter().any(|other| {
                    other.vcpu != task.vcpu
                        && other.segments.iter().any(|s| s.need == Need::Local(resource))
                })
            {
                return refuse(&task.name, "its local resource is another vCPU's too".into());
            }
        }
        Ok(())
    }

    fn check_tasks_of(&self, vcpu: usize) -> Result<(), Refusal> {
        let name = &self.vcpus[vcpu].name;
        let priorities: Vec<_> =
            self.tasks.iter().filter(|task| task.vcpu == vcpu).map(Task::rank).collect();
        if priorities.len() > MAX_OF_EACH {
            return refuse(name, format!("it has more than {MAX_OF_EACH} tasks"));
        }
        if priorities.iter().collect::<BTreeSet<_>>().len() < priorities.len() {
            return refuse(name, "two of its tasks have the same priority".into());
        }
        Ok(())
    }

    fn check_displacements(&self) -> Result<(), Refusal> {
        let of = "a displacement";
        if self.displacements.len() > MAX_OF_EACH {
            return refuse("the system", format!("has more than {MAX_OF_EACH} displacements"));
        }
        for one in &self.displacements {
            let cores: Option<BTreeSet<usize>> =
                one.by.iter().map(|&vcpu| Some(self.vcpus.get(vcpu)?.core)).collect();
            if cores.is_none_or(|cores| cores.len() != 1) {
                return refuse(of, "it is not by vCPUs of one core".into());
            }
            let mut costs = one.begins.iter().chain(&one.ends);
            if costs.any(|&(core, time)| core >= self.cores() || time > MAX_TIME) {
                return refuse(
                    of,
                    "it costs time of a core that does not exist, or 146 years".into(),
                );
            }
        }
        Ok(())
    }

    fn check_ranks(&self) -> Result<(), Refusal> {
        if self.protocol == Protocol::Mpcp && self.task_priorities().len() > MAX_OF_EACH {
            let why = format!("has more than {MAX_OF_EACH} different task priorities under MPCP");
            return refuse("the system", why);
        }
        Ok(())
    }

    /// The different priorities of tasks in the whole system, highest first.
    pub(crate) fn task_priorities(&self) -> Vec<u64> {
        let tasks = self.tasks.iter().filter(|task| !task.handler);
        let all: BTreeSet<_> = tasks.map(|task| task.priority).collect();
        all.into_iter().rev().collect()
    }

    /// Indices of the vCPUs, highest priority first.
    #[must_use]
    pub fn vcpus_by_priority(&self) -> Vec<usize> {
        let mut all: Vec<_> = (0..self.vcpus.len()).collect();
        all.sort_by_key(|&vcpu| std::cmp::Reverse((self.vcpus[vcpu].priority, vcpu)));
        all
    }

    /// How many cores there are: one more than the highest that is named.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.vcpus.iter().map(|vcpu| vcpu.core + 1).max().unwrap_or(0)
    }
}

fn check_vcpu(vcpu: &Vcpu) -> Result<(), Refusal> {
    if vcpu.core >= MAX_OF_EACH {
        return refuse(&vcpu.name, format!("its core is not below {MAX_OF_EACH}"));
    }
    if vcpu.offset.max(vcpu.server.map_or(0, |server| server.period.0)) > MAX_TIME {
        return refuse(&vcpu.name, "its period or offset is longer than 2^62 ns".into());
    }
    if let Some(server) = vcpu.server {
        Account::open(server, Instant(0))
            .map_err(|refusal| Refusal { of: vcpu.name.clone(), why: refusal.to_string() })?;
    }
    Ok(())
}

fn refuse(of: &str, why: String) -> Result<(), Refusal> {
    Err(Refusal { of: of.into(), why })
}
