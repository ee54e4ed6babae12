//! `cassata simulate`.

use super::analyze::{self, Described};
use super::{overheads, say};
use crate::cli::Simulate;
use analysis::overheads::Overheads;
use lab::progress::Progress;
use lab::report::timeline::Schedule;
use lab::simulate::{Options, Simulation, simulate as run};
use miette::{Result, miette};
use std::path::Path;

/// Simulates a system and shows what was seen beside the bounds.
pub fn simulate(arguments: &Simulate) -> Result<u8> {
    let Described { system, protocol, checked, .. } = analyze::read(&arguments.system)?;
    let overheads = arguments.overheads.map_or(Ok(Overheads::NONE), |source| {
        overheads::from(source, arguments.margin, checked.as_ref())
    })?;
    let options = Options {
        protocol: arguments.protocol(protocol),
        execution: arguments.execution(),
        seed: arguments.seed,
        until: arguments.limit,
        bounds: arguments.bounds.into(),
        overheads,
    };
    let mut progress = Progress::new("simulate");
    let seen = run(&system, &options, &mut progress);
    drop(progress);
    let seen = seen.map_err(|failure| miette!("{}: {failure}", arguments.system.display()))?;
    if let Some(path) = &arguments.trace {
        draw(&seen, &arguments.system, path)?;
    }
    if arguments.json {
        say(&format!("{:#}", seen.json()));
    } else {
        [seen.tasks(), seen.vcpus()].iter().for_each(|data| say(&data.table().to_string()));
        seen.remarks().iter().for_each(|remark| say(remark));
        if let Some(path) = &arguments.trace {
            say(&path.display().to_string());
        }
    }
    let fails = seen.late().next().is_some() || seen.beyond_bounds().next().is_some();
    Ok(u8::from(fails))
}

fn draw(seen: &Simulation, system: &Path, path: &Path) -> Result<()> {
    let name = system.file_name().unwrap_or_default().to_string_lossy();
    let schedule = Schedule {
        title: &format!("{name} under {}", seen.protocol()),
        system: &seen.system,
        pcpus: &seen.pcpus,
        resources: &seen.resources,
        timeline: &seen.timeline,
        lanes: &[],
        end: seen.opening().max(1),
    };
    lab::results::write_file(path, schedule.svg().as_bytes())
}
