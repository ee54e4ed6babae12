//! `cassata analyze`.

use super::{description, say};
use crate::cli::{Analyze, BoundsKind};
use crate::messages::note;
use analysis::answer::Answer;
use analysis::bounds::{self, Bounds, Verdict};
use analysis::budgets::{self, Search};
use analysis::model::System;
use lab::bounds::{cannot, overview, servers};
use miette::{IntoDiagnostic, Result, miette};
use std::path::Path;

/// Says which deadlines hold.
pub fn analyze(arguments: &Analyze) -> Result<u8> {
    let mut system = read(&arguments.file)?;
    let bounds = arguments.bounds.into();
    if arguments.find_budgets {
        let search = budgets::find(&system, bounds, arguments.periods);
        match search.map_err(|error| miette!("{}: {error}", arguments.file.display()))? {
            Search::Found(found) => {
                if !arguments.json {
                    say(&servers(&system, &found).to_string());
                }
                system = found;
            }
            hopeless => {
                let why = cannot(&system, &hopeless);
                if arguments.json {
                    let answer = serde_json::json!({ "schedulable": false, "because": why });
                    say(&serde_json::to_string_pretty(&answer).into_diagnostic()?);
                } else {
                    say(&why);
                }
                return Ok(1);
            }
        }
    }
    let verdict = compute(&arguments.file, &system, bounds)?;
    if arguments.json {
        let answer = Answer::new(&system, &verdict);
        say(&serde_json::to_string_pretty(&answer).into_diagnostic()?);
    } else {
        say(overview(&arguments.file.display().to_string(), &system, &verdict).trim_end());
    }
    if verdict.schedulable() && !compute(&arguments.file, &system, Bounds::Corrected)?.schedulable()
    {
        note("only as published: with --bounds corrected, not every deadline holds");
    }
    Ok(u8::from(!verdict.schedulable()))
}

/// Bounds of `system`, which `path` describes.
pub fn compute(path: &Path, system: &System, bounds: Bounds) -> Result<Verdict> {
    bounds::analyze(system, bounds).map_err(|error| miette!("{}: {error}", path.display()))
}

/// Reads vCPUs and tasks: JSON, or what a system description says of them.
pub fn read(path: &Path) -> Result<System> {
    if path.extension().is_some_and(|extension| extension == "toml") {
        return description::load(path)?.timing.ok_or_else(|| {
            miette!(
                help = "give a vCPU a `server` and `tasks`; docs/src/analysis.md has an example",
                "{}: no vCPU has a budget, so there is nothing to analyse",
                path.display()
            )
        });
    }
    let text = description::source(path)?;
    System::from_json(&text)
        .map_err(|problem| miette!(help = problem.mend.clone(), "{}: {problem}", path.display()))
}

impl From<BoundsKind> for Bounds {
    fn from(kind: BoundsKind) -> Self {
        match kind {
            BoundsKind::Published => Self::Published,
            BoundsKind::Corrected => Self::Corrected,
        }
    }
}
