//! How often one pCPU makes EL2 visit others.
//!
//! A vCPU is displaced when one of certain others begins to run on its pCPU. For that, one of two
//! things must have happened there:
//!
//! - the other one can run now: a job of it was released or an interrupt has come, a resource was
//!   granted to it, or its budget was replenished;
//! - a vCPU that kept it from running has stopped: a job or handler of that one is done or a job
//!   waits for a resource, its budget or overrun is over, or it is not raised any more.
//!
//! The vCPU that was displaced has its core back before it is displaced again. So in any window
//! there is what one earlier time has left, and what each of those that fall into the window does.

use super::workload::Workload;
use crate::model::{Cause, Ns, Section, System, Traffic};
use std::cmp::Reverse;

/// What happens again and again, and how often at most.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// vCPUs of one pCPU.
    Displacement {
        /// Those that displace.
        by: Vec<usize>,
        /// Others that run above one of them, always or while they are raised.
        above: Vec<usize>,
    },
    /// Never sooner than after so long.
    Every(Ns),
}

/// How often something happens to a vCPU: for each job and each interrupt that releases none, for
/// each gcs of a job, and in a period.
struct Turns {
    job: u64,
    section: u64,
    period: u64,
}

/// It can run: released, granted, replenished.
const BEGINS: Turns = Turns { job: 1, section: 1, period: 1 };
/// It stops: done; waits, lowered; without budget, without overrun.
const ENDS: Turns = Turns { job: 1, section: 2, period: 2 };

impl Source {
    /// Finds out which vCPUs matter.
    pub(super) fn new(system: &System, traffic: &Traffic) -> Self {
        let by = match &traffic.cause {
            Cause::Every(every) => return Self::Every(*every),
            Cause::Displacement { by } => by.clone(),
        };
        let pcpu = by.first().map(|&vcpu| system.vcpus[vcpu].pcpu);
        let lowest = by.iter().map(|&vcpu| system.vcpus[vcpu].priority).min();
        let is_raised = |vcpu: usize| {
            let tasks = system.tasks.iter().filter(|task| task.vcpu == vcpu);
            let mut segments = tasks.flat_map(|task| &task.segments);
            segments.any(|segment| matches!(segment.section, Section::Global(_)))
        };
        let keeps_away = |&vcpu: &usize| {
            let of = &system.vcpus[vcpu];
            let here = Some(of.pcpu) == pcpu && !by.contains(&vcpu);
            here && (Some(of.priority) > lowest || is_raised(vcpu))
        };
        let mut above: Vec<usize> = (0..system.vcpus.len()).filter(keeps_away).collect();
        above.sort_by_key(|&vcpu| Reverse(system.vcpus[vcpu].priority));
        Self::Displacement { by, above }
    }
}

/// How many of what comes every so often are active in a window.
pub(super) fn active(time: Ns, every: Ns) -> u64 {
    time.div_ceil(every).saturating_add(1)
}

impl Workload {
    /// Returns how often it happens at most in a window, one time before it included that may
    /// have left something to do.
    pub(super) fn times(&self, source: &Source, time: Ns) -> u64 {
        match source {
            Source::Every(every) => active(time, *every),
            Source::Displacement { by, above } => {
                // A vCPU may have its core before its timer fires.
                let time = time.saturating_add(self.overheads().timer_advance_ns);
                let begin = by.iter().map(|&vcpu| self.turns(vcpu, time, &BEGINS));
                let end = above.iter().map(|&vcpu| self.turns(vcpu, time, &ENDS));
                begin.chain(end).fold(1, u64::saturating_add)
            }
        }
    }

    fn turns(&self, vcpu: usize, time: Ns, turns: &Turns) -> u64 {
        let of = &self.vcpus[vcpu];
        let tasks = self.on_vcpu[of.tasks.clone()].iter().map(|&task| &self.tasks[task]);
        let jobs = tasks.map(|task| {
            let sections = turns.section.saturating_mul(task.sections.len() as u64);
            active(time, task.period).saturating_mul(turns.job.saturating_add(sections))
        });
        let periods = active(time, of.period).saturating_mul(turns.period);
        let handled = of.handled(time, |_| turns.job);
        jobs.fold(periods.saturating_add(handled), u64::saturating_add)
    }
}
