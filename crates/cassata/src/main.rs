//! `cassata`: the command line.
//!
//! Exit codes: 0 when all is well, 1 when something that was checked does not
//! hold, 2 for bad input and for machines that would not run, 130 after Ctrl-C.

#![forbid(unsafe_code)]

mod cli;
mod commands;
mod messages;
mod place;

use clap::Parser;
use lab::bundle::{Builds, choose};
use std::process::ExitCode;
use system::Checked;
use system::sbom::Origin;

/// The hypervisor.
static HYPERVISOR: Builds = Builds {
    silent: include_bytes!(env!("CASSATA_EL2_ELF")),
    with_parts: include_bytes!(env!("CASSATA_EL2_PARTS_ELF")),
    tracing: include_bytes!(env!("CASSATA_EL2_TRACE_ELF")),
    gic_v2: include_bytes!(env!("CASSATA_EL2_GICV2_ELF")),
    is_checked: false,
};
/// The crates of each of these builds.
static CRATES: [&str; 4] = [
    include_str!(env!("CASSATA_EL2_CRATES_LIST")),
    include_str!(env!("CASSATA_EL2_PARTS_CRATES_LIST")),
    include_str!(env!("CASSATA_EL2_TRACE_CRATES_LIST")),
    include_str!(env!("CASSATA_EL2_GICV2_CRATES_LIST")),
];
/// The checksums of crates.
static LOCK: &str = include_str!("../../../Cargo.lock");
/// The instrument of virtual time.
static INSTRUMENT: &[u8] = include_bytes!(env!("CASSATA_VTIME_SO"));
/// Exit code for bad input and for machines that would not run.
const TROUBLE: u8 = 2;

/// Tells where the build of the hypervisor that a system wants comes from.
fn origin(checked: &Checked) -> Origin<'static> {
    Origin { elf: HYPERVISOR.of(checked), inventory: choose(checked, CRATES), lock: LOCK }
}

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if !error.use_stderr() => error.exit(), // help and version
        Err(error) => {
            messages::note(error.render().to_string().trim_end());
            return ExitCode::from(TROUBLE);
        }
    };
    commands::run(&cli.command).into()
}
