//! Arguments of `cassata bench`, and of `cassata demo` and `fuzz`, which are experiments too: the
//! laboratory's list says which there are and what each can be asked.

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};
use lab::bench::{Conduct, Demonstration, Fuzz, all};

/// What every experiment writes.
const FILES: &str = "result.json and report.html, a CSV file for each table and an SVG file for \
                     each plot.";

/// Measure, and compare with goals
///
/// What has been measured with the same hypervisor, guests, QEMU and instrument is not
/// measured again. Exits with 0 only if every goal is met.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cassata bench el2               what the hypervisor costs
  cassata bench lhp --quick       lock holder preemption, coarsely
  cassata bench help lhp          what it measures, and what can be asked of it

Writes results/NAME/result.json and report.html, a CSV file for each table and an SVG
file for each plot.")]
pub struct Bench {
    /// What to measure.
    #[command(subcommand)]
    pub asked: Asked,
}

/// An experiment that was asked for.
#[derive(Debug)]
pub struct Asked {
    /// Which.
    pub experiment: &'static dyn Conduct,
    /// The options.
    pub options: ArgMatches,
    /// What is done with what it answers.
    pub answer: Answer,
}

/// What can be asked of every answer.
#[derive(Args, Debug)]
pub struct Answer {
    /// Write the figures into the documents that quote them
    #[arg(long)]
    pub write_docs: bool,
    /// Exit with 0 even if a goal is missed
    #[arg(long)]
    pub report_only: bool,
}

impl Asked {
    fn of(experiment: &'static dyn Conduct, options: &ArgMatches) -> Result<Self, Error> {
        let answer = Answer::from_arg_matches(options)?;
        Ok(Self { experiment, options: options.clone(), answer })
    }
}

/// Makes a command of `experiment`: its help and its options.
fn command_of(experiment: &dyn Conduct, command: Command) -> Command {
    let label = experiment.label();
    Answer::augment_args(experiment.options(command))
        .about(label.about)
        .long_about(format!("{}\n\n{}", label.about, label.details))
        .after_help(format!(
            "Examples:\n{}\n\nWrites results/{}/{FILES}",
            label.examples, label.name
        ))
}

impl Subcommand for Asked {
    fn augment_subcommands(command: Command) -> Command {
        let commands = all().into_iter().map(|one| command_of(one, Command::new(one.label().name)));
        command.subcommands(commands).subcommand_required(true).arg_required_else_help(true)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        all().iter().any(|one| one.label().name == name)
    }
}

impl FromArgMatches for Asked {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let (name, options) = matches.subcommand().unwrap_or(("", matches));
        let experiment = all().into_iter().find(|one| one.label().name == name);
        Self::of(experiment.ok_or_else(|| Error::new(ErrorKind::MissingSubcommand))?, options)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// `cassata demo`: one experiment has a door of its own, for it is where newcomers begin.
#[derive(Debug)]
pub struct Demo(pub Asked);

impl Args for Demo {
    fn augment_args(command: Command) -> Command {
        command_of(&Demonstration, command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Demo {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Asked::of(&Demonstration, matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// `cassata fuzz`: like `demo`, an experiment with a door of its own.
#[derive(Debug)]
pub struct Fuzzing(pub Asked);

impl Args for Fuzzing {
    fn augment_args(command: Command) -> Command {
        command_of(&Fuzz, command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Fuzzing {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Asked::of(&Fuzz, matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
