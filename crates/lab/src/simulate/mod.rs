//! A system of vCPUs and tasks in the simulator, beside its bounds.
//!
//! | module | story |
//! | --- | --- |
//! | [`model`] | from the model of the analysis to that of the simulator |
//! | `tell` | what was seen, as datasets and as JSON |

pub mod model;
mod tell;
#[cfg(test)]
mod tests;

use crate::progress::Progress;
use crate::quantity::{count, duration};
use analysis::bounds::{AnalysisError, Bounds, Verdict, analyze_with};
use analysis::overheads::Overheads;
use miette::{IntoDiagnostic, Result};
use sim::observer::Observer;
use sim::record::Record;
use sim::system::{Execution, MAX_TIME, Protocol};
use sim::timeline::Timeline;
use sim::usage::{Meter, Usage};
use sim::{System, World};
use std::time::Duration;

/// After so many instants the progress is told.
const TOLD_EVERY: u64 = 1 << 16;

/// How to simulate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How global resources are accessed. Bounds are known for vMPCP only.
    pub protocol: Protocol,
    /// How long segments take.
    pub execution: Execution,
    /// What chance begins with.
    pub seed: u64,
    /// Simulated time, ns, at most [`MAX_TIME`]; none: a hundred times the longest
    /// period of a task.
    pub until: Option<u64>,
    /// Which equations the bounds are from.
    pub bounds: Bounds,
    /// What EL2 takes, in the simulation and in the bounds.
    pub overheads: Overheads,
}

/// What was seen.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// What was simulated.
    pub system: System,
    /// The pCPU that each core of it stands for.
    pub pcpus: Vec<u32>,
    /// Names of the resources.
    pub resources: Vec<String>,
    /// Simulated time, ns.
    pub end: u64,
    /// What became of each task.
    pub records: Vec<Record>,
    /// By task: how long its oldest job has not been complete, ns.
    pub unfinished: Vec<Option<u64>>,
    /// By vCPU.
    pub usage: Vec<Usage>,
    /// How often a core's scheduler decided.
    pub decisions: u64,
    /// The beginning.
    pub timeline: Timeline,
    /// What the analysis says; none for a protocol that it does not know.
    pub verdict: Option<Verdict>,
    /// True if a task arrives before the first period of some vCPU, of which time
    /// bounds say nothing.
    pub begins_unserved: bool,
}

/// Simulates a system that the analysis accepts.
///
/// # Errors
/// When the simulator refuses it, or a bound cannot be computed.
pub fn simulate(
    system: &analysis::model::System,
    options: &Options,
    progress: &mut Progress,
) -> Result<Simulation> {
    let (protocol, execution) = (options.protocol, options.execution);
    let verdict = match protocol {
        Protocol::Vmpcp => {
            Some(analyze_with(system, options.bounds, options.overheads).into_diagnostic()?)
        }
        Protocol::Mpcp => None,
    };
    let of = |cause| AnalysisError { of: "the system".into(), cause };
    let simulated = model::simulated(system, protocol, execution, options.overheads, options.seed);
    let simulated = simulated.map_err(of).into_diagnostic()?;
    let longest = simulated.tasks.iter().map(|task| task.period).max().unwrap_or(0);
    let end = options.until.unwrap_or(longest.saturating_mul(100)).min(MAX_TIME);
    let observer = (Timeline::until(longest_opening(&simulated).min(end)), Meter::new(&simulated));
    let mut world = World::watched(&simulated, observer).into_diagnostic()?;
    run(&mut world, end, progress);
    let (records, unfinished) = (world.records().copied().collect(), world.unfinished().collect());
    let decisions = world.decisions();
    let (timeline, meter) = world.into_observer();
    let served = system.vcpus.iter().map(|vcpu| vcpu.offset_ns).max().unwrap_or(0);
    Ok(Simulation {
        pcpus: model::pcpus(system).into_iter().collect(),
        begins_unserved: system.tasks.iter().any(|task| task.offset_ns < served),
        resources: system.resources.clone(),
        end,
        records,
        unfinished,
        usage: meter.usage().to_vec(),
        decisions,
        timeline,
        verdict,
        system: simulated,
    })
}

/// Lets time pass until `end`, ns, and tells how far it is.
fn run<O: Observer>(world: &mut World<O>, end: u64, progress: &mut Progress) {
    let mut instants = 0_u64;
    while world.step(end) {
        instants += 1;
        if instants.is_multiple_of(TOLD_EVERY) {
            let time = |ns| duration(Duration::from_nanos(ns));
            progress.now(&format!(
                "{} of {}, {} events",
                time(world.now()),
                time(end),
                count(world.events())
            ));
        }
    }
    world.run_until(end);
}

/// A time by which every task's first job should be complete, and all vCPUs
/// have been replenished twice, ns.
fn longest_opening(system: &System) -> u64 {
    let tasks = system.tasks.iter().map(|task| task.offset.saturating_add(task.period));
    let servers = system.vcpus.iter().filter_map(|vcpu| Some((vcpu.offset, vcpu.server?.period.0)));
    let servers = servers.map(|(offset, period)| offset.saturating_add(period.saturating_mul(2)));
    tasks.chain(servers).max().unwrap_or(0)
}

impl Simulation {
    /// The longest response seen of a task, ns: of a job that is complete, or so
    /// far of one that is not. None before it has arrived.
    pub fn response(&self, task: usize) -> Option<u64> {
        let record = &self.records[task];
        let complete = (record.completed > 0).then_some(record.longest);
        complete.max(self.unfinished[task])
    }

    /// The bound on the response of a task, ns; none where there is none, as for handlers.
    pub fn bound(&self, task: usize) -> Option<u64> {
        self.verdict.as_ref()?.tasks.get(task)?.response_ns
    }

    /// Returns true if the bounds hold for this system and this beginning: every vCPU gets
    /// its budget, before any task arrives, and every task has a bound.
    pub fn bounded(&self) -> bool {
        !self.begins_unserved && self.schedulable()
    }

    fn schedulable(&self) -> bool {
        self.verdict.as_ref().is_some_and(Verdict::schedulable)
    }

    /// Tasks of which a job took longer than its period.
    pub fn late(&self) -> impl Iterator<Item = usize> + '_ {
        let late = |&task: &usize| {
            let of = &self.system.tasks[task];
            !of.handler && self.response(task) > Some(of.period)
        };
        (0..self.records.len()).filter(late)
    }

    /// Tasks of which a job took longer than the analysis allows.
    pub fn beyond_bounds(&self) -> impl Iterator<Item = usize> + '_ {
        let beyond = |&task: &usize| {
            self.bounded() && self.bound(task).is_some_and(|b| self.response(task) > Some(b))
        };
        (0..self.records.len()).filter(beyond)
    }

    /// The instant up to which the timeline is worth drawing, ns: every task has
    /// completed its first job, or it ends.
    pub fn opening(&self) -> u64 {
        let first = |task| self.timeline.jobs.iter().find(|job| job.task == task);
        let last = (0..self.records.len()).map(|task| first(task).map(|job| job.completion));
        let last = last.max_by_key(|end| end.unwrap_or(u64::MAX)).flatten();
        last.map_or(self.timeline.end(), |end| (end + end / 20).min(self.timeline.end()))
    }
}
