//! `cassata demo`.

use super::{conclude, description, interrupt, publish, virtual_time};
use crate::cli::Demo;
use crate::place;
use lab::guests::LinuxWork;
use lab::machine::Time;
use lab::qemu::Qemu;
use lab::results::Directory;
use lab::session::{End, Session};
use lab::{interrupt, view};
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
    let session = Session::of(&bundle, &qemu, &time, directory.path())
        .within(arguments.seconds)
        .shown_by(view::choose("cassata demo"))
        .interrupted_by(interrupt);
    let work = arguments.runs.map_or(LinuxWork::All, |runs| LinuxWork::Runs(runs.into()));
    let demo = lab::demo::run(session, work)?;
    let mut answer = demo.answer();
    lab::run::conditions(&mut answer, &qemu, &time, &bundle, &text);
    let text = format!("\n{}", answer.summary());
    if demo.run.end == End::Interrupted {
        publish(&answer, &text, &directory)?;
        return Ok(interrupt::EXIT_CODE);
    }
    conclude(&answer, &text, &directory, arguments.write_docs)?;
    Ok(answer.outcome.exit_code(arguments.report_only))
}
