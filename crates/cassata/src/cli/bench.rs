//! Arguments of `cassata bench` and `cassata campaign`, and of `cassata demo` and `fuzz`, which are
//! experiments too: the laboratory's list says which there are and what each can be asked.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};
use lab::bench::{Conduct, Demonstration, Fuzz, all};
use std::ffi::OsString;
use std::path::PathBuf;

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
    /// Which part of it.
    pub part: Part,
}

/// What can be asked of every answer.
#[derive(Args, Debug)]
pub struct Answer {
    /// Write the figures into the documents that quote them
    #[arg(long)]
    pub write_docs: bool,
    #[command(flatten)]
    pub common: Common,
}

/// What can be asked of every answer, wherever it was measured.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// Exit with 0 even if a goal is missed
    #[arg(long)]
    pub report_only: bool,
    /// Keep what is measured, and write the answer, in this directory [default: results]
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
}

/// A part of an experiment: what `cassata campaign` has workers do.
#[derive(Args, Debug, Default)]
#[group(multiple = false, conflicts_with = "write_docs")]
pub struct Part {
    /// Print the points as JSON, and which of them have been measured already; run none
    #[arg(long)]
    pub list_points: bool,
    /// Run the point that is called exactly so, beside any other processes that run points, and
    /// keep what it brings
    #[arg(long, value_name = "NAME")]
    pub run_point: Option<String>,
    /// Run no point; answer what those have brought that were run
    #[arg(long)]
    pub merge: bool,
}

/// Makes a command of `experiment`: its help, its options, and those that `augment` adds.
fn command_of(
    experiment: &dyn Conduct,
    command: Command,
    augment: impl FnOnce(Command) -> Command,
) -> Command {
    let label = experiment.label();
    // The help comes last: a set of options would put its own in the place.
    augment(experiment.options(command))
        .about(label.about)
        .long_about(format!("{}\n\n{}", label.about, label.details))
        .after_help(format!(
            "Examples:\n{}\n\nWrites results/{}/{FILES}",
            label.examples, label.name
        ))
}

/// Finds the experiment that `matches` ask for, and its options.
fn asked(matches: &ArgMatches) -> Result<(&'static dyn Conduct, &ArgMatches), Error> {
    let (name, options) = matches.subcommand().unwrap_or(("", matches));
    let experiment = all().into_iter().find(|one| one.label().name == name);
    Ok((experiment.ok_or_else(|| Error::new(ErrorKind::MissingSubcommand))?, options))
}

/// Adds a command for each experiment.
fn commands(command: Command, each: impl Fn(&'static dyn Conduct, Command) -> Command) -> Command {
    let commands = all().into_iter().map(|one| each(one, Command::new(one.label().name)));
    command.subcommands(commands).subcommand_required(true).arg_required_else_help(true)
}

impl Asked {
    /// Reads what was asked of all of an experiment.
    fn whole(experiment: &'static dyn Conduct, options: &ArgMatches) -> Result<Self, Error> {
        let answer = Answer::from_arg_matches(options)?;
        Ok(Self { experiment, options: options.clone(), answer, part: Part::default() })
    }
}

impl Subcommand for Asked {
    fn augment_subcommands(command: Command) -> Command {
        commands(command, |one, command| {
            command_of(one, command, |command| Part::augment_args(Answer::augment_args(command)))
        })
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
        let (experiment, options) = asked(matches)?;
        Ok(Self { part: Part::from_arg_matches(options)?, ..Self::whole(experiment, options)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Measure on more processors or machines than one
///
/// Has Snakemake run the points of an experiment on all processors of this computer, on a
/// Slurm cluster or elsewhere, and merges what they bring: the same figures as `cassata bench`
/// has on one machine. Snakemake is installed below build/campaign if it is not there.
///
/// A point that was lost with its worker is run again. What has been measured already, by a
/// campaign or by `cassata bench`, is not measured again. Exits with 0 only if every goal is
/// met.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cassata campaign lhp --quick                         on all processors of this computer
  cassata campaign lhp --paper -- --cores 8            on eight of them
  cassata campaign promises --systems 5000 -- \\
      --executor slurm --jobs 100 --default-resources slurm_partition=main
  cassata campaign help lhp       what can be asked of an experiment

Options behind -- are Snakemake's. Writes what `cassata bench` writes, and what each worker
said into results/NAME/campaign/log.")]
pub struct Campaign {
    /// What to measure.
    #[command(subcommand)]
    pub asked: Distributed,
}

/// An experiment whose points others run.
#[derive(Debug)]
pub struct Distributed {
    /// Which.
    pub experiment: &'static dyn Conduct,
    /// The options.
    pub options: ArgMatches,
    /// The options as they were given.
    pub words: Vec<OsString>,
    /// What is done with what it answers.
    pub common: Common,
    /// Options of Snakemake.
    pub snakemake: Vec<OsString>,
}

/// What Snakemake's options are called here.
const SNAKEMAKE: &str = "snakemake";

/// Returns the options of `command` that `matches` have from the command line, as words of one.
fn words(command: &Command, matches: &ArgMatches) -> Vec<OsString> {
    let mut words = Vec::new();
    for argument in command.get_arguments() {
        let (id, Some(long)) = (argument.get_id().as_str(), argument.get_long()) else { continue };
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let name = OsString::from(format!("--{long}"));
        if argument.get_action().takes_values() {
            let values = matches.get_raw(id).into_iter().flatten();
            words.extend(values.map(|value| {
                let mut word = name.clone();
                word.push("=");
                word.push(value);
                word
            }));
        } else {
            words.push(name);
        }
    }
    words
}

impl Subcommand for Distributed {
    fn augment_subcommands(command: Command) -> Command {
        let options = Arg::new(SNAKEMAKE)
            .value_name("SNAKEMAKE-OPTIONS")
            .help("Options of Snakemake [default: --cores all]")
            .value_parser(clap::value_parser!(OsString))
            .num_args(1..)
            .last(true);
        commands(command, |one, command| {
            let name = one.label().name;
            let command = command_of(one, command, Common::augment_args).arg(options.clone());
            command.after_help(format!(
                "Examples:\n  cassata campaign {name}\n  cassata campaign {name} -- --cores 8\n  \
                 cassata campaign {name} -- --executor slurm --jobs 100\n\n\
                 Writes results/{name}/{FILES}"
            ))
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        Asked::has_subcommand(name)
    }
}

impl FromArgMatches for Distributed {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let (experiment, options) = asked(matches)?;
        let words = words(&experiment.options(Command::new("")), options);
        let snakemake = options.get_many(SNAKEMAKE).into_iter().flatten().cloned().collect();
        let common = Common::from_arg_matches(options)?;
        Ok(Self { experiment, options: options.clone(), words, common, snakemake })
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
        command_of(&Demonstration, command, Answer::augment_args)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Demo {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Asked::whole(&Demonstration, matches).map(Self)
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
        command_of(&Fuzz, command, Answer::augment_args)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Fuzzing {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Asked::whole(&Fuzz, matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_described_as_their_experiments_are() {
        for augment in [Asked::augment_subcommands, Distributed::augment_subcommands] {
            let command = augment(Command::new("bench"));
            for one in all() {
                let label = one.label();
                let described = command.find_subcommand(label.name).unwrap().get_about();
                assert_eq!(described.unwrap().to_string(), label.about);
            }
        }
    }
}
