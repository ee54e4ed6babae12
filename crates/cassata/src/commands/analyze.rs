//! `cassata analyze`.

use super::{description, overheads, say};
use crate::cli::{Analyze, BoundsKind};
use crate::messages::note;
use analysis::answer::Answer;
use analysis::bounds::{self, Bounds, Verdict};
use analysis::budgets::{self, Search};
use analysis::model::System;
use analysis::overheads::Overheads;
use lab::bounds::{cannot, overview, servers};
use miette::{IntoDiagnostic, Result, miette};
use std::path::Path;
use system::Checked;
use system::model::Protocol;

/// Says which deadlines hold.
pub fn analyze(arguments: &Analyze) -> Result<u8> {
    let Described { mut system, protocol, copy, checked } = read(&arguments.file)?;
    if protocol == Protocol::Mpcp {
        return Err(miette!(
            help = "leave `protocol` out for vMPCP; `cassata simulate` runs it under MPCP",
            "{}: no bounds are known for MPCP",
            arguments.file.display()
        ));
    }
    let overheads = overheads::choose(&arguments.overheads, checked.as_ref())?;
    overheads::reservation(&arguments.overheads).into_iter().for_each(note);
    let bounds = arguments.bounds.into();
    if arguments.find_budgets {
        if let Some(copy) = &copy {
            return Err(miette!(
                help = "leave out what lets it migrate, and put it back with the budgets that were found",
                "{}: no budgets are searched for vCPUs that migrate, such as {copy}",
                arguments.file.display()
            ));
        }
        let search = budgets::find(&system, bounds, overheads, arguments.periods);
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
    let verdict = compute(&arguments.file, &system, bounds, overheads)?;
    if arguments.json {
        let answer = Answer::new(&system, &verdict);
        say(&serde_json::to_string_pretty(&answer).into_diagnostic()?);
    } else {
        say(overview(&arguments.file.display().to_string(), &system, &verdict).trim_end());
    }
    let corrected = compute(&arguments.file, &system, Bounds::Corrected, overheads)?;
    if verdict.schedulable() && !corrected.schedulable() {
        note("only as published: with --bounds corrected, not every deadline holds");
    }
    Ok(u8::from(!verdict.schedulable()))
}

/// Bounds of `system`, which `path` describes.
pub fn compute(
    path: &Path,
    system: &System,
    bounds: Bounds,
    overheads: Overheads,
) -> Result<Verdict> {
    bounds::analyze_with(system, bounds, overheads)
        .map_err(|error| miette!("{}: {error}", path.display()))
}

/// vCPUs and tasks, and what describes the system where they run.
pub struct Described {
    /// The vCPUs and tasks.
    pub system: System,
    /// How they share global resources.
    pub protocol: Protocol,
    /// What stands for a vCPU on another pCPU than its own, if one may be on several.
    pub copy: Option<String>,
    /// The description; none for JSON.
    pub checked: Option<Checked>,
}

/// Reads vCPUs and tasks: JSON, or what a system description says of them.
pub fn read(path: &Path) -> Result<Described> {
    if path.extension().is_some_and(|extension| extension == "toml") {
        let checked = description::load(path)?;
        let system = checked.timing.clone().ok_or_else(|| {
            miette!(
                help = "give a vCPU a `server` and `tasks`; docs/src/analysis.md has an example",
                "{}: no vCPU has a budget, so there is nothing to analyse",
                path.display()
            )
        })?;
        let vcpus = checked.vms.iter().flat_map(|vm| &vm.vcpus);
        let served = vcpus.filter(|vcpu| vcpu.server.is_some()).count();
        return Ok(Described {
            copy: system.vcpus.get(served).map(|vcpu| vcpu.id.clone()),
            system,
            protocol: checked.protocol,
            checked: Some(checked),
        });
    }
    let text = description::source(path)?;
    let system = System::from_json(&text)
        .map_err(|problem| miette!(help = problem.mend.clone(), "{}: {problem}", path.display()))?;
    Ok(Described { system, protocol: Protocol::Vmpcp, copy: None, checked: None })
}

impl From<BoundsKind> for Bounds {
    fn from(kind: BoundsKind) -> Self {
        match kind {
            BoundsKind::Published => Self::Published,
            BoundsKind::Corrected => Self::Corrected,
        }
    }
}
