//! `cassata experiment`.

use super::{interrupt, publish, say};
use crate::cli::{Experiment as Arguments, Paper, Vmpcp};
use crate::place;
use lab::answer::Answer;
use lab::experiment::case_study::CaseStudy;
use lab::experiment::vmpcp::{
    self,
    figure::{FIGURES, Figure},
};
use lab::interrupt::{EXIT_CODE, Interrupt};
use lab::progress::Progress;
use lab::results::Directory;
use miette::{IntoDiagnostic, Result};

/// Repeats an experiment.
pub fn experiment(arguments: &Arguments) -> Result<u8> {
    let interrupt = interrupt()?;
    match &arguments.paper {
        Paper::Vmpcp(arguments) if arguments.case_study => {
            tell(&CaseStudy::simulate().into_diagnostic()?.answer())?;
            Ok(0)
        }
        Paper::Vmpcp(arguments) => figures(arguments, &interrupt),
    }
}

/// Shows an answer and writes its files. The checks are the paper's statements, which it has
/// told already.
fn tell(answer: &Answer) -> Result<()> {
    let directory = Directory::create(&place::results(), &answer.outcome.name)?;
    publish(answer, answer.findings().trim_end(), &directory)
}

fn figures(arguments: &Vmpcp, interrupt: &Interrupt) -> Result<u8> {
    let asked = |figure: &Figure| {
        arguments.figures.is_empty() || arguments.figures.contains(&figure.number)
    };
    for figure in FIGURES.into_iter().filter(asked) {
        let mut progress = Progress::new("experiment vmpcp");
        let (tasksets, seed) = (arguments.tasksets, arguments.seed);
        let done =
            vmpcp::run(figure, tasksets, seed, &mut progress, interrupt).into_diagnostic()?;
        drop(progress);
        let Some(experiment) = done else { return Ok(EXIT_CODE) };
        tell(&experiment.answer())?;
        say("");
    }
    Ok(0)
}
