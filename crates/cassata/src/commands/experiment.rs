//! `cassata experiment`.

use super::{interrupt, say, write_results};
use crate::cli::{Experiment as Arguments, Paper, Vmpcp};
use crate::place;
use lab::experiment::case_study::CaseStudy;
use lab::experiment::vmpcp::{self, figure::Figure};
use lab::interrupt::{EXIT_CODE, Interrupt};
use lab::progress::Progress;
use lab::results::Directory;
use miette::{IntoDiagnostic, Result};

/// Repeats an experiment.
pub fn experiment(arguments: &Arguments) -> Result<u8> {
    let interrupt = interrupt()?;
    match &arguments.paper {
        Paper::Vmpcp(arguments) if arguments.case_study => case_study(),
        Paper::Vmpcp(arguments) => figures(arguments, &interrupt),
    }
}

fn case_study() -> Result<u8> {
    let study = CaseStudy::simulate().into_diagnostic()?;
    let mut outcome = study.outcome();
    outcome.parameter("cassata", env!("CARGO_PKG_VERSION"));
    let directory = Directory::create(&place::results(), &outcome.name)?;
    for run in &study.runs {
        directory.write(&run.file(), run.svg().as_bytes())?;
    }
    say(study.summary().trim_end());
    write_results(&directory, &outcome, &study.report())?;
    Ok(0)
}

fn figures(arguments: &Vmpcp, interrupt: &Interrupt) -> Result<u8> {
    let asked = |figure: &Figure| {
        arguments.figures.is_empty() || arguments.figures.contains(&figure.number())
    };
    for figure in Figure::ALL.into_iter().filter(asked) {
        let mut progress = Progress::new("experiment vmpcp");
        let (tasksets, seed) = (arguments.tasksets, arguments.seed);
        let done =
            vmpcp::run(figure, tasksets, seed, &mut progress, interrupt).into_diagnostic()?;
        drop(progress);
        let Some(experiment) = done else { return Ok(EXIT_CODE) };
        let directory = Directory::create(&place::results(), &experiment.name())?;
        directory.write("figure.csv", experiment.csv().as_bytes())?;
        directory.write("figure.svg", experiment.chart().file().as_bytes())?;
        let mut outcome = experiment.outcome();
        outcome.parameter("cassata", env!("CARGO_PKG_VERSION"));
        say(experiment.summary().trim_end());
        write_results(&directory, &outcome, &experiment.report())?;
        say("");
    }
    Ok(0)
}
