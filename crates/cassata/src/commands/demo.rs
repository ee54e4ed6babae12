//! `cassata demo`.

use super::{description, interrupt, say, virtual_time, write_results};
use crate::cli::Demo;
use crate::place;
use lab::demo::{LinuxWork, Options};
use lab::machine::Time;
use lab::qemu::Qemu;
use lab::results::Directory;
use lab::session::End;
use lab::{conditions, interrupt, view};
use miette::Result;

/// Shows Linux and FreeRTOS sharing cores.
pub fn demo(arguments: &Demo) -> Result<u8> {
    let (qemu, interrupt) = (Qemu::find()?, interrupt()?);
    let system = place::root()?.join("systems/demo.toml");
    let text = description::source(&system)?;
    let checked = description::load(&system)?;
    let directory = Directory::create(&place::results(), "demo")?;
    let bundle = description::pack(&checked, &directory.path().join("system.elf"))?;
    let time = if arguments.real_time { Time::Real } else { virtual_time(&qemu, &directory)? };
    let options = Options {
        time,
        limit: arguments.seconds,
        work: arguments.runs.map_or(LinuxWork::All, |runs| LinuxWork::Runs(runs.into())),
        directory: directory.path().into(),
    };
    let mut view = view::choose("cassata demo");
    let demo = lab::demo::run(&bundle, &qemu, &options, &mut *view, interrupt)?;
    let mut outcome = lab::demo::outcome(&demo);
    conditions::record(&mut outcome, &qemu, &options.time, &bundle, &text);
    say(&format!("\n{}", lab::demo::summary(&demo, &outcome)));
    write_results(&directory, &outcome, &lab::demo::report(&demo))?;
    if demo.end == End::Interrupted {
        return Ok(interrupt::EXIT_CODE);
    }
    Ok(outcome.exit_code(arguments.report_only))
}
