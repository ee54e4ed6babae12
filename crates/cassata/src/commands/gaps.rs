//! `cassata run --gaps`, and the system that `cassata build --gaps` packs.

use super::run::{self, directory};
use super::{description, interrupt, publish};
use crate::cli::Run;
use crate::place;
use lab::gaps::{self, Watch};
use lab::qemu::Qemu;
use lab::results::{has_place, write_json};
use lab::run::conditions;
use lab::session::Session;
use lab::view;
use miette::Result;
use std::path::Path;
use std::time::Duration;
use system::Checked;

/// How long a detector watches if nothing else is said; `--help` says it too.
const LENGTH: Duration = Duration::from_secs(1);

/// Runs a detector on the board of a system.
pub fn run(arguments: &Run, threshold_ns: u64) -> Result<u8> {
    let (qemu, interrupt) = (Qemu::find()?, interrupt()?);
    let stem = arguments.system.file_stem().unwrap_or_default().to_string_lossy();
    let name = format!("gaps-{stem}");
    let watch = Watch { threshold_ns, length: Some(arguments.limit.unwrap_or(LENGTH)) };
    let described = description::load(&arguments.system)?;
    run::has_cores_to_stall(arguments, &described)?;
    let checked = watch.system(&arguments.system, &described.machine, &place::root()?)?;
    if let Some(file) = &arguments.json {
        description::spare_inputs(&described, file, "--json")?;
        has_place(file)?;
    }
    let directory = directory(&name, &arguments.system)?;
    let time = run::time(arguments, &qemu, directory.path())?;
    let bundle = description::pack(&checked, &directory.path().join("system.elf"))?;
    let run = Session::of(&bundle, &qemu, &time, directory.path())
        .within(if arguments.vtime { watch.limit() } else { None })
        .shown_by(view::choose(&format!("cassata run {stem} --gaps")))
        .interrupted_by(interrupt)
        .run(|_| false)?;
    let mut answer = gaps::answer(&run, watch, &name);
    let text = watch.description(&described.machine, &place::root()?);
    conditions(&mut answer, &qemu, &time, &bundle, &text);
    publish(&answer, &format!("\n{}", lab::run::summary(&run, &answer)), &directory)?;
    if let Some(file) = &arguments.json {
        write_json(file, &answer.outcome)?;
    }
    Ok(answer.outcome.exit_code(arguments.report_only))
}

/// Reads a system, and makes the detector for its board. Returns both.
pub fn detector(path: &Path, watch: Watch) -> Result<(Checked, Checked)> {
    let described = description::load(path)?;
    let detector = watch.system(path, &described.machine, &place::root()?)?;
    Ok((described, detector))
}
