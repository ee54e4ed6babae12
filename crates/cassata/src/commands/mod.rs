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
use crate::place;
use lab::interrupt::Interrupt;
use lab::machine::{Time, VirtualTime};
use lab::qemu::Qemu;
use lab::report::Report;
use lab::results::{Directory, Outcome};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

/// Why something could not be said, if that was so.
static UNSAID: OnceLock<io::Error> = OnceLock::new();

/// Carries a command out; answers the exit code.
pub fn run(command: &Command) -> Result<u8> {
    let code = carry_out(command)?;
    match UNSAID.get() {
        Some(error) => {
            Err(miette!(help = "is there room?", "cannot write to standard output: {error}"))
        }
        None => Ok(code),
    }
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

/// Says something on standard output. Whoever stops reading has heard enough; if it
/// cannot be said the command fails, but only in the end: its results are files.
fn say(text: &str) {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => drop(UNSAID.set(error)),
        _ => {}
    }
}

/// Writes `result.json` and `report.html`, and says where they are.
fn write_results(directory: &Directory, outcome: &Outcome, report: &Report) -> Result<()> {
    let json = directory.write_outcome(outcome)?;
    let html = directory.write("report.html", report.render(outcome).as_bytes())?;
    say(&format!("\n{}\n{}", json.display(), html.display()));
    Ok(())
}
