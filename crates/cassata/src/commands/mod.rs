//! The commands.

mod analyze;
mod bench;
mod bound;
mod build;
mod calibrate;
mod campaign;
mod check;
mod coverage;
pub mod description;
mod doctor;
mod gaps;
mod new;
mod operate;
mod overheads;
mod run;
mod signing;
mod simulate;
mod test;
mod trace;
mod vtime;

use crate::cli::Command;
use crate::{TROUBLE, messages};
use lab::answer::Answer;
use lab::interrupt::{self as signals, Interrupt};
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
        Command::Demo(arguments) => bench::bench(&arguments.0),
        Command::Test(arguments) => test::test(arguments),
        Command::Bench(arguments) => bench::bench(&arguments.asked),
        Command::Campaign(arguments) => campaign::campaign(&arguments.asked),
        Command::Fuzz(arguments) => bench::bench(&arguments.0),
        Command::Build(arguments) => build::build(arguments),
        Command::Run(arguments) => run::run(arguments),
        Command::Move(arguments) => operate::move_vcpu(arguments),
        Command::Policy(arguments) => operate::switch_policy(arguments),
        Command::Doctor(arguments) => doctor::doctor(arguments),
        Command::New(arguments) => new::new(arguments),
        Command::Check(arguments) => check::check(arguments),
        Command::Analyze(arguments) => analyze::analyze(arguments),
        Command::Bound(arguments) => bound::bound(arguments),
        Command::Calibrate(arguments) => calibrate::calibrate(arguments),
        Command::Simulate(arguments) => simulate::simulate(arguments),
        Command::Trace(arguments) => trace::trace(arguments),
        Command::Vtime(arguments) => vtime::vtime(arguments),
    }
}

fn interrupt() -> Result<Interrupt> {
    Interrupt::install().into_diagnostic().wrap_err("cannot listen for Ctrl-C")
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
