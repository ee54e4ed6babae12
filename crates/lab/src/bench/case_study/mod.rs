//! The case study of vMPCP (Kim, Wang and Rajkumar, RTSS 2014, section V-B), by
//! simulation: eight tasks on eight vCPUs share one resource, under MPCP, under
//! vMPCP with deferrable servers without overrun, and with. Then all three on the hypervisor.
//!
//! | module | story |
//! | --- | --- |
//! | `claims` | the paper's statements as checks |
//! | `ties` | what a microsecond more or less changes |
//! | `hypervisor` | the same system on the hypervisor, with the probe's tasks |
//! | `linux` | the same with two VMs of Linux, as the paper had it |
//! | `orders` | how often it decides each tie in which way |
//! | `table` | responses in the simulator, with the probe and with Linux |
//! | `smoke` | both systems in short, as machine tests |
//! | `report` | the page, the tables, the JSON |
//!
//! In the paper, every time is a multiple of a tenth of a millisecond, and
//! nothing costs anything. Ours is that schedule. Theirs was measured on
//! hardware, so where two things happen at one instant in ours, one of them came
//! first in theirs; `ties` shows what follows from that.

mod claims;
mod hypervisor;
mod linux;
mod orders;
mod report;
mod smoke;
mod table;
mod ties;

use super::{Conduct, Label};
use crate::answer::Answer;
use crate::dataset::Dataset;
use crate::suite::{Bench, Scenario};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use miette::IntoDiagnostic;
use sim::case_study::{Scheme, system};
use sim::system::{Execution, Refusal};
use sim::timeline::{Job, Timeline};
use sim::{System, World};

#[derive(Args, Debug)]
struct Options {
    /// How many hyperperiods run on the hypervisor with jittered arrivals; 0: none
    #[arg(long, value_name = "N", default_value = "1000", conflicts_with = "write_docs",
          value_parser = clap::value_parser!(u64).range(..=100_000))]
    hyperperiods: u64,
    /// Do not boot Linux, which takes some minutes
    #[arg(long)]
    without_linux: bool,
    /// Boot Linux again where that has been measured already
    #[arg(long)]
    fresh: bool,
}

/// What is conducted from here.
pub(super) const EXPERIMENTS: &[&dyn Conduct] = &[&Study];

/// The experiment. Only Linux's boots are cases, which are kept: with the probe, only the jittered
/// hyperperiods take longer than seconds.
#[derive(Clone, Copy, Debug)]
pub struct Study;

impl Conduct for Study {
    fn label(&self) -> Label {
        Label {
            name: "case-study",
            about: "Figure 11 of vMPCP (Kim, Wang and Rajkumar, RTSS 2014)",
            details: "Simulates the paper's eight tasks under MPCP, vMPCP+DSnO and vMPCP+DSwO, \
                      draws their timelines and compares response times. Then runs them under \
                      all three on the hypervisor: with the probe's tasks, and on two VMs with \
                      Linux, as the paper had it. At last with the probe's tasks under \
                      vMPCP+DSwO for a thousand hyperperiods with arrivals that are some \
                      microseconds late at random: in which order do the tasks get the \
                      resource?\n\n\
                      With `--write-docs` and `--without-linux`, what documents quote of Linux \
                      stays as it is.\n\n\
                      Exits with 0 whether the paper agrees or not: that is a finding. On the \
                      hypervisor no response may be above its bound.",
            examples: "  cassata bench case-study\n  \
                       cassata bench case-study --hyperperiods 0    without the jittered ones\n  \
                       cassata bench case-study --without-linux     with the probe's tasks only",
        }
    }

    fn options(&self, command: Command) -> Command {
        Options::augment_args(command)
    }

    fn scenarios(&self) -> Vec<Scenario> {
        smoke::scenarios()
    }

    fn conduct(&self, options: &ArgMatches, bench: &Bench) -> miette::Result<Answer> {
        let options = Options::from_arg_matches(options).into_diagnostic()?;
        let study = CaseStudy::simulate().into_diagnostic()?;
        let mut answer = study.answer();
        let probe = hypervisor::run(bench)?;
        let linux = (!options.without_linux).then(|| linux::run(bench, options.fresh));
        let linux = linux.transpose()?;
        let seen = |within| linux.as_ref().map_or_else(Vec::new, |linux| linux.seen(within));
        answer.data(&table::responses(&study, &probe, &seen(true)));
        hypervisor::tell(&mut answer, &probe);
        if let Some(linux) = &linux {
            answer.data(&table::beside(&seen(false)));
            linux.tell(&mut answer);
            let [within, beside] = [table::within(&seen(true)), table::beside(&seen(false))];
            let quoted = [within, linux.taken(), linux.orders(), beside];
            answer.document("bench case-study, Linux", markdown(&quoted));
        }
        let mut quoted = vec![table::responses(&study, &probe, &[]), study.ways()];
        if options.hyperperiods > 0 {
            let orders = orders::run(bench, options.hyperperiods)?;
            orders::tell(&mut answer, &orders);
            quoted.push(orders.data());
        }
        answer.document("bench case-study", markdown(&quoted));
        Ok(answer)
    }
}

/// Returns tables for a document.
fn markdown(tables: &[Dataset]) -> String {
    let tables = tables.iter().map(|data| data.table().titled_markdown());
    tables.collect::<Vec<_>>().join("\n")
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
