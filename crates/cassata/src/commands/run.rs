//! `cassata run`.

use super::{description, interrupt, say, virtual_time, write_results};
use crate::cli::Run;
use crate::place;
use lab::conditions;
use lab::machine::Time;
use lab::qemu::Qemu;
use lab::results::{Directory, has_place, write_json};
use lab::run::Options;
use lab::view;
use miette::Result;

/// Runs a system and watches it.
pub fn run(arguments: &Run) -> Result<u8> {
    let (qemu, interrupt) = (Qemu::find()?, interrupt()?);
    let stem = arguments.system.file_stem().unwrap_or_default().to_string_lossy();
    // `cassata demo` and its like have names of their own.
    let name = format!("run-{stem}");
    let text = description::source(&arguments.system)?;
    let checked = description::load(&arguments.system)?;
    if let Some(file) = &arguments.json {
        description::spare_inputs(&checked, file, "--json")?;
        has_place(file)?;
    }
    let directory = Directory::create(&place::results(), &name)?;
    let bundle = description::pack(&checked, &directory.path().join("system.elf"))?;
    let time = if arguments.vtime { virtual_time(&qemu, &directory)? } else { Time::Real };
    let options = Options { time, limit: arguments.limit, directory: directory.path().into() };
    let mut view = view::choose(&format!("cassata run {stem}"));
    let run = lab::run::run(&bundle, &qemu, &options, &mut *view, interrupt)?;
    let mut outcome = run.outcome(&name);
    conditions::record(&mut outcome, &qemu, &options.time, &bundle, &text);
    say(&format!("\n{}", run.summary()));
    write_results(&directory, &outcome, &run.report(&name))?;
    if let Some(file) = &arguments.json {
        write_json(file, &outcome)?;
    }
    Ok(outcome.exit_code(arguments.report_only))
}
