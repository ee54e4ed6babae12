//! The demonstration as an experiment. It has no cases: it is given to be watched, so what an
//! earlier one has shown is not shown again.

use super::experiment::read;
use super::{Conduct, Label};
use crate::answer::Answer;
use crate::guests::LinuxWork;
use crate::machine::Time;
use crate::quantity::seconds;
use crate::session::Session;
use crate::suite::{Bench, Scenario};
use crate::{demo, run, source, view};
use clap::{ArgMatches, Args, Command};
use miette::Result;
use std::time::Duration;

/// What it boots, from the project's root.
const SYSTEM: &str = "systems/demo.toml";

/// What is conducted from here.
pub(super) const EXPERIMENTS: &[&dyn Conduct] = &[&Demonstration];

/// The experiment.
#[derive(Clone, Copy, Debug)]
pub struct Demonstration;

/// What can be asked of it. No document quotes a demonstration that was not the usual one.
#[derive(Args, Debug)]
struct Options {
    /// Let time pass as the host's does
    #[arg(long, conflicts_with = "write_docs")]
    real_time: bool,
    /// Show a link instead: Linux orders what FreeRTOS controls, and plots it
    #[arg(long, conflicts_with_all = ["write_docs", "runs", "real_time"])]
    control: bool,
    /// Give up after so many seconds of the machine's own time
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    seconds: Duration,
    /// End when Linux has finished so many runs of hackbench
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..),
          conflicts_with = "write_docs")]
    runs: Option<u16>,
}

impl Conduct for Demonstration {
    fn label(&self) -> Label {
        Label {
            name: "demo",
            about: "Show Linux and FreeRTOS sharing cores, with figures at the end",
            details: "Boots systems/demo.toml: a stock Debian Linux that runs hackbench on two \
                      cores, and on one of them a FreeRTOS that wakes a task every millisecond. \
                      Shows meanwhile what each does, and at the end how late the RTOS ever was. \
                      Exits with 0 only if both did their work and the RTOS missed nothing.\n\n\
                      Time is virtual: an instruction is a nanosecond, and all cores advance \
                      together. So the figures are the board's, and the same on any computer, \
                      however busy; only how long it takes is the computer's.",
            examples: "  cassata demo                    the whole of it\n  \
                       cassata demo --runs 1           only until Linux has finished one run\n  \
                       cassata demo --real-time        in the host's time: an idle computer is \
                       needed\n  \
                       cassata demo --control          a motor that FreeRTOS controls, and Linux \
                       orders and plots\n  \
                       cassata demo --report-only      figures matter, goals do not",
        }
    }

    fn options(&self, command: Command) -> Command {
        Options::augment_args(command)
    }

    fn directory(&self, options: &ArgMatches) -> &'static str {
        if options.get_flag("control") { "control" } else { self.label().name }
    }

    /// An answer after Ctrl-C tells what was seen until then.
    fn conduct(&self, options: &ArgMatches, bench: &Bench) -> Result<Answer> {
        let Options { real_time, seconds, runs, control } = read(options)?;
        let (system, edits) = if control {
            (demo::control::SYSTEM, demo::control::edits())
        } else {
            (SYSTEM, Vec::new())
        };
        let bundle = bench.pack(&bench.described(system, &edits)?)?;
        let time = if real_time { Time::Real } else { Time::Virtual(bench.virtual_time()?) };
        let session = Session::of(&bundle, &bench.qemu, &time, &bench.directory)
            .within(seconds)
            .shown_by(view::choose("cassata demo"))
            .interrupted_by(bench.interrupt.clone());
        let work = runs.map_or(LinuxWork::All, |runs| LinuxWork::Runs(runs.into()));
        let mut answer = if control {
            demo::control::run(session)?.answer()?
        } else {
            demo::run(session, work)?.answer()
        };
        let source = source::read(&bench.root.join(system))?;
        let text = edits.iter().fold(source, |text, (from, to)| text.replace(from, to));
        run::conditions(&mut answer, &bench.qemu, &time, &bundle, &text);
        Ok(answer)
    }

    fn scenarios(&self) -> Vec<Scenario> {
        demo::scenarios()
    }
}
