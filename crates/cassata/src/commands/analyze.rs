//! `cassata analyze`.

use super::{description, say};
use crate::cli::{Analyze, BoundsKind};
use analysis::answer::Answer;
use analysis::bounds::{self, Bounds};
use analysis::model::System;
use lab::bounds::overview;
use miette::{IntoDiagnostic, Result, miette};

/// Says which deadlines hold.
pub fn analyze(arguments: &Analyze) -> Result<u8> {
    let system = read(arguments)?;
    let compute = |bounds| {
        bounds::analyze(&system, bounds)
            .map_err(|error| miette!("{}: {error}", arguments.file.display()))
    };
    let verdict = compute(arguments.bounds.into())?;
    if arguments.json {
        let answer = Answer::new(&system, &verdict);
        say(&serde_json::to_string_pretty(&answer).into_diagnostic()?);
    } else {
        say(overview(&arguments.file.display().to_string(), &system, &verdict).trim_end());
    }
    if verdict.schedulable() && !compute(Bounds::Corrected)?.schedulable() {
        eprintln!("only as published: with --bounds corrected, not every deadline holds");
    }
    Ok(u8::from(!verdict.schedulable()))
}

fn read(arguments: &Analyze) -> Result<System> {
    let (path, text) = (arguments.file.display(), description::source(&arguments.file)?);
    System::from_json(&text)
        .map_err(|problem| miette!(help = problem.mend.clone(), "{path}: {problem}"))
}

impl From<BoundsKind> for Bounds {
    fn from(kind: BoundsKind) -> Self {
        match kind {
            BoundsKind::Published => Self::Published,
            BoundsKind::Corrected => Self::Corrected,
        }
    }
}
