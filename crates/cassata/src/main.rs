//! `cassata`: the command line.
//!
//! Exit codes: 0 when all is well, 1 when something that was checked does not
//! hold, 2 for bad input and for machines that would not run, 130 after Ctrl-C.

#![forbid(unsafe_code)]

mod cli;
mod commands;
mod place;

use clap::Parser;
use std::process::ExitCode;

/// The hypervisor.
static HYPERVISOR: &[u8] = include_bytes!(env!("CASSATA_EL2_ELF"));
/// The instrument of virtual time.
static INSTRUMENT: &[u8] = include_bytes!(env!("CASSATA_VTIME_SO"));
/// Exit code for bad input and for machines that would not run.
const TROUBLE: u8 = 2;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    commands::run(&cli.command).map_or_else(
        |report| {
            eprintln!("{}", commands::description::shown(&report));
            ExitCode::from(TROUBLE)
        },
        ExitCode::from,
    )
}
