//! The commands.

mod analyze;
mod bench;
mod build;
mod check;
mod demo;
pub mod description;
mod experiment;
mod run;
mod simulate;
mod test;
mod vtime;

use crate::cli::Command;
use crate::{TROUBLE, messages, place};
use lab::answer::Answer;
use lab::interrupt::{self as signals, Interrupt};
use lab::machine::{Time, VirtualTime};
use lab::qemu::Qemu;
use lab::results::Directory;
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

/// Why something could not be said, if that was so.
static UNSAID: OnceLock<io::Error> = OnceLock::new();

/// Carries a command out; answers the exit code. One that Ctrl-C has ended answers with that,
/// whatever it had found by then.
pub fn run(command: &Command) -> u8 {
    let code = carry_out(command).and_then(|code| match UNSAID.get() {
        Some(error) => {
            Err(miette!(help = "is there room?", "cannot write to standard output: {error}"))
        }
        None => Ok(code),
    });
    let code = code.unwrap_or_else(|report| {
        messages::error(&report);
        TROUBLE
    });
    if signals::was_requested() { signals::EXIT_CODE } else { code }
}

fn carry_out(command: &Command) -> Result<u8> {
    match command {
        Command::Demo(arguments) => demo::demo(arguments),
        Command::Test(arguments) => test::test(arguments),
        Command::Bench(arguments) => bench::bench(arguments),
        Command::Build(arguments) => build::build(arguments),
        Command::Run(arguments) => run::run(arguments),
        Command::Check(arguments) => check::check(arguments),
        Command::Analyze(arguments) => analyze::analyze(arguments),
        Command::Experiment(arguments) => experiment::experiment(arguments),
        Command::Simulate(arguments) => simulate::simulate(arguments),
        Command::Vtime(arguments) => vtime::vtime(arguments),
    }
}

fn interrupt() -> Result<Interrupt> {
    Interrupt::install().into_diagnostic().wrap_err("cannot listen for Ctrl-C")
}

/// Virtual time, counted into a file in `directory`.
fn virtual_time(qemu: &Qemu, directory: &Directory) -> Result<Time> {
    let instrument = place::instrument()?;
    Ok(Time::Virtual(VirtualTime::new(&instrument, qemu, directory.path())?))
}

/// Writes to standard output. A reader that has closed the pipe has read enough; if it
/// cannot be said the command fails, but only in the end: its results are files.
fn say(text: &str) {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => drop(UNSAID.set(error)),
        _ => {}
    }
}

/// Says `text`, writes the files of `answer`, and says where they are.
fn publish(answer: &Answer, text: &str, directory: &Directory) -> Result<()> {
    say(text);
    let [json, html] = answer.write(directory)?;
    say(&format!("\n{}\n{}", json.display(), html.display()));
    Ok(())
}

/// Publishes an answer, and writes what documents quote into them, if that is asked for.
fn conclude(answer: &Answer, text: &str, directory: &Directory, quote: bool) -> Result<()> {
    publish(answer, text, directory)?;
    if quote {
        let documents = answer.write_documents(&place::root()?)?;
        documents.iter().for_each(|document| say(&document.display().to_string()));
    }
    Ok(())
}
