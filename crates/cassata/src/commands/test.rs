//! `cassata test`.

use super::{interrupt, say};
use crate::cli::Test;
use crate::place;
use lab::interrupt::{self as signals, Interrupt};
use lab::progress::Progress;
use lab::qemu::Qemu;
use lab::results::Directory;
use lab::suite::{self, Bench, CargoTest, Tally};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The test of what the FreeRTOS guest reads from outside.
const FREERTOS: &str = "freertos-parsers";

/// Runs every test there is, or some.
pub fn test(arguments: &Test) -> Result<u8> {
    let (root, interrupt) = (place::root()?, interrupt()?);
    let directory = Directory::create(&place::results(), "test")?;
    let mut tally = Tally::default();
    if !arguments.machine_only {
        tally += host(&root, arguments, directory.path(), &interrupt)?;
    }
    if !arguments.host_only {
        tally += machine(root, arguments, directory.path().into(), &interrupt)?;
    }
    if tally == Tally::default() && !arguments.filter.is_empty() && !interrupt.requested() {
        return Err(miette!(
            help = "a test runs if its name contains that; `cassata test --help`",
            "no test has `{}` in its name",
            arguments.filter
        ));
    }
    if interrupt.requested() {
        say(&format!("{tally}, and then it was interrupted"));
        return Ok(signals::EXIT_CODE);
    }
    say(&tally.to_string());
    Ok(u8::from(tally.failed > 0))
}

/// The host crates, and the parts of the hypervisor that need no hardware.
fn host(root: &Path, arguments: &Test, logs: &Path, interrupt: &Interrupt) -> Result<Tally> {
    let mut tally = Tally::default();
    for (name, which) in [("host", &[][..]), ("el2", &["-p", "cassata-el2", "--lib"][..])] {
        if interrupt.requested() {
            break;
        }
        let mut args: Vec<OsString> = vec!["test".into(), "--no-fail-fast".into()];
        args.extend(["--manifest-path".into(), root.join("Cargo.toml").into()]);
        args.extend(which.iter().map(Into::into));
        if !arguments.filter.is_empty() {
            args.extend(["--".into(), OsString::from(&arguments.filter)]);
        }
        let log = logs.join(format!("{name}.log"));
        let run = CargoTest { cargo: place::cargo(), args, env: place::toolchain(), log };
        let mut progress = Progress::new(&format!("{name} tests"));
        let one = run.run(&mut progress, interrupt);
        tally += one.into_diagnostic().wrap_err_with(|| format!("cannot run {name} tests"))?;
    }
    if FREERTOS.contains(&arguments.filter) && !interrupt.requested() {
        let program = root.join("guests/freertos/test");
        let mut progress = Progress::new("guest tests");
        let log = logs.join("freertos.log");
        let one = suite::run_program(FREERTOS, &program, log, &mut progress, interrupt);
        tally += one.into_diagnostic().wrap_err("cannot run guests/freertos/test")?;
    }
    Ok(tally)
}

fn machine(
    root: PathBuf,
    arguments: &Test,
    directory: PathBuf,
    interrupt: &Interrupt,
) -> Result<Tally> {
    let (qemu, instrument) = (Qemu::find()?, place::instrument()?);
    let interrupt = interrupt.clone();
    let bench =
        Bench { root, directory, hypervisor: crate::HYPERVISOR, instrument, qemu, interrupt };
    let mut progress = Progress::new("machine tests");
    Ok(suite::run_scenarios(&suite::scenarios(), &arguments.filter, &bench, &mut progress))
}
