//! The case study of vMPCP (Kim, Wang and Rajkumar, RTSS 2014, section V-B), by
//! simulation: eight tasks on eight vCPUs share one resource, under MPCP, under
//! vMPCP with deferrable servers without overrun, and with. Then both of the latter on the
//! hypervisor.
//!
//! | module | story |
//! | --- | --- |
//! | `claims` | the paper's statements as checks |
//! | `ties` | what a microsecond more or less changes |
//! | `hypervisor` | the same system on the hypervisor |
//! | `report` | the page, the tables, the JSON |
//!
//! In the paper, every time is a multiple of a tenth of a millisecond, and
//! nothing costs anything. Ours is that schedule. Theirs was measured on
//! hardware, so where two things happen at one instant in ours, one of them came
//! first in theirs; `ties` shows what follows from that.

mod claims;
mod hypervisor;
mod report;
mod ties;

use super::{Conduct, Label};
use crate::answer::Answer;
use crate::suite::Bench;
use clap::ArgMatches;
use miette::IntoDiagnostic;
use sim::case_study::{Scheme, system};
use sim::system::{Execution, Refusal};
use sim::timeline::{Job, Timeline};
use sim::{System, World};

/// The experiment. It has no cases: it takes seconds.
#[derive(Clone, Copy, Debug)]
pub struct Study;

impl Conduct for Study {
    fn label(&self) -> Label {
        Label {
            name: "case-study",
            about: "Figure 11 of vMPCP (Kim, Wang and Rajkumar, RTSS 2014)",
            details: "Simulates the paper's eight tasks under MPCP, vMPCP+DSnO and vMPCP+DSwO, \
                      draws their timelines and compares response times. Then runs them under \
                      the latter two on the hypervisor, with the probe's tasks.\n\n\
                      Exits with 0 whether the paper agrees or not: that is a finding. On the \
                      hypervisor no response may be above its bound.",
            examples: "  cassata bench case-study",
        }
    }

    fn conduct(&self, _: &ArgMatches, bench: &Bench) -> miette::Result<Answer> {
        let study = CaseStudy::simulate().into_diagnostic()?;
        let mut answer = study.answer();
        hypervisor::tell(&mut answer, &study, &hypervisor::run(bench)?);
        Ok(answer)
    }
}

/// How much of the schedule is kept: the time in which every task completes its
/// first job, with room to spare, ns.
const OPENING: u64 = 40_000_000;

/// What was seen under one scheme.
#[derive(Clone, Debug)]
pub struct Run {
    /// Which.
    pub scheme: Scheme,
    /// What was simulated.
    pub system: System,
    /// Response time of the first job of each task, ns.
    pub responses: Vec<u64>,
    /// The beginning of the schedule.
    pub timeline: Timeline,
}

/// All three, in the order of the paper.
#[derive(Clone, Debug)]
pub struct CaseStudy {
    /// One for each of [`Scheme::ALL`].
    pub runs: Vec<Run>,
    /// The same with execution times a little shorter, by chance.
    pub ties: ties::Ties,
}

impl CaseStudy {
    /// Simulates everything.
    ///
    /// # Errors
    /// None that a system of the paper could cause; the simulator's refusal is
    /// passed on.
    pub fn simulate() -> Result<Self, Refusal> {
        let run = |scheme| run(scheme, Execution::Worst, 0);
        let runs = Scheme::ALL.into_iter().map(run).collect::<Result<_, _>>()?;
        Ok(Self { runs, ties: ties::Ties::simulate()? })
    }

    /// The run under a scheme.
    pub fn run(&self, scheme: Scheme) -> &Run {
        let place = Scheme::ALL.iter().position(|&other| other == scheme);
        &self.runs[place.unwrap_or(0)]
    }
}

fn run(scheme: Scheme, execution: Execution, seed: u64) -> Result<Run, Refusal> {
    let system = System { execution, seed, ..system(scheme) };
    let mut world = World::watched(&system, Timeline::until(OPENING))?;
    world.run_until(OPENING);
    let timeline = world.into_observer();
    let first = |task| timeline.jobs.iter().find(|job| job.task == task);
    let response = |job: &Job| job.completion - job.arrival;
    let responses =
        (0..system.tasks.len()).map(|task| first(task).map_or(OPENING, response)).collect();
    Ok(Run { scheme, system, responses, timeline })
}

/// The mean over the tasks of how much longer (more than 0) or shorter each
/// responds than under the baseline: -0.1 is 10 % shorter. The paper says "on
/// average", which can mean this or [`change_of_the_mean`].
pub fn mean_change(responses: &[u64], baseline: &[u64]) -> f64 {
    let ratios = responses.iter().zip(baseline).map(|(&ours, &theirs)| ours as f64 / theirs as f64);
    ratios.sum::<f64>() / baseline.len() as f64 - 1.0
}

/// How much longer or shorter the mean response time is than the baseline's.
pub fn change_of_the_mean(responses: &[u64], baseline: &[u64]) -> f64 {
    responses.iter().sum::<u64>() as f64 / baseline.iter().sum::<u64>() as f64 - 1.0
}

#[cfg(test)]
mod tests;
