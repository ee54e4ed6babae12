//! `cassata vtime`.

use crate::cli::Vtime;
use crate::place;
use miette::{Result, miette};
use std::os::unix::process::CommandExt;
use vtime::options::Options;

/// Becomes the QEMU command line, in virtual time.
pub fn vtime(arguments: &Vtime) -> Result<u8> {
    let Some((program, rest)) = arguments.command.split_first() else {
        return Err(miette!("no command line to run"));
    };
    let options = Options {
        quantum_ns: arguments.quantum_ns,
        serial: !arguments.parallel,
        rate: arguments.mhz,
        statistics: arguments.statistics.clone(),
        summary: true,
        stalls: arguments.stalls.clone(),
        range: arguments.range.clone(),
        ..Options::default()
    };
    let command = place::instrument()?.command(program.as_ref(), rest, &options);
    // From here on there is nothing but QEMU: terminal, signals and exit code
    // are its own.
    let error = command.map_err(|error| miette!("{error}"))?.exec();
    Err(miette!("cannot run {}: {error}", program.display()))
}
