//! Bao, in a checkout that the user has: the guest and Linux have cores of their own, so nothing is
//! shared. It was written from Bao's documentation and source (docs/src/peers.md says which); no test
//! here runs Bao itself.
//!
//! | module | story |
//! | --- | --- |
//! | [`checkout`] | what is taken for a checkout, and building it beside |
//! | [`config`] | the configuration that Bao is built with |
//! | [`images`] | what is booted: Linux in one piece, and the first instructions |
//! | [`stand_in`] | what the tests build and boot in Bao's place |

mod checkout;
mod config;
mod images;
#[cfg(test)]
mod tests;

pub use checkout::accept;

use super::case::Case;
use super::plan::CORES;
use super::system::System;
use crate::guests::Images;
use crate::machine::MachineConfig;
use crate::suite::Bench;
use miette::{IntoDiagnostic, Result, ensure, miette};
use std::path::{Path, PathBuf};

/// Memory of the machine, bytes: what Bao's description of the platform says.
const MEMORY: u64 = 4 << 30;
/// Where Bao lies and is entered (bao-demos, `platforms/qemu-aarch64-virt/README.md`).
const BAO_PA: u64 = 0x5000_0000;

/// The file in a run's directory that says how large Bao itself is, bytes.
const SIZE: &str = "bao.size";

/// What is known of a Bao that was built.
#[derive(Clone, Debug)]
pub struct Built {
    /// The flat image, with the guests in it.
    pub image: PathBuf,
    /// Bytes of it that are Bao's own code and data.
    pub own_bytes: u64,
}

/// Returns where the checkout of `case` is.
fn checkout_of(case: &Case) -> Result<&Path> {
    case.image.as_deref().ok_or_else(|| miette!("Bao needs --bao"))
}

/// Returns where the tests' stand-in for a checkout is, in the project at `root`.
pub fn stand_in(root: &Path) -> PathBuf {
    root.join("crates/lab/src/bench/peers/bao/stand-in")
}

/// Returns the bytes of Bao's own code and data in the run with its files in `directory`.
///
/// # Errors
/// When nothing was built there.
pub fn own_bytes(directory: &Path) -> Result<u64> {
    let path = directory.join(SIZE);
    let bytes = std::fs::read_to_string(&path).ok().and_then(|text| text.parse().ok());
    bytes.ok_or_else(|| miette!("{} does not say how large Bao is", path.display()))
}

/// Deletes what a run that went well leaves in `directory`, and another one would make again: Linux, twice.
/// A run that fails keeps it to be looked at.
pub fn tidy(directory: &Path) {
    for name in [config::LINUX, checkout::IMAGE] {
        // It is not there unless Bao ran.
        let _ = std::fs::remove_file(directory.join(name));
    }
}

/// Returns all by which two runs of `case` differ, whose Linux is told `linux`.
pub fn told(case: &Case, linux: &str) -> String {
    let sum = checkout_of(case).map_or(0, checkout::sum);
    let config = config::text(case.cores, "vmlist[]", Path::new(""), 0);
    format!("{sum:08x}\n{config}{linux}")
}

/// Builds Bao for `case` in the directory of `bench`, and returns the machine that boots it. The guest is
/// the file `waker`; Linux is told `linux`.
///
/// # Errors
/// When the checkout is none or does not build, or a file cannot be read or written.
pub fn machine(
    case: &Case,
    linux: &str,
    files: &Images,
    waker: &Path,
    bench: &Bench,
) -> Result<MachineConfig> {
    ensure!(
        case.system == System::Bao && case.cores == CORES,
        "Bao's description of the platform has {CORES} cores"
    );
    let checkout = checkout_of(case)?;
    checkout::check(checkout)?;
    // The Makefile works elsewhere, and reads what is named here.
    let directory = std::fs::canonicalize(&bench.directory).into_diagnostic()?;
    let linux = images::Linux::of(files, linux, case.cores - 1, &directory)?;
    linux.write(&directory.join(config::LINUX))?;
    let header = checkout::header(checkout)?;
    let config = config::text(case.cores, &header, &directory, linux.entry());
    debug_assert!(waker.ends_with(config::WAKER), "the configuration names it");
    let built = checkout::build(checkout, &config, &directory)?;
    let own_bytes = built.own_bytes.to_string();
    crate::results::write_file(&directory.join(SIZE), own_bytes.as_bytes())?;
    let first = directory.join("first.bin");
    crate::results::write_file(&first, &images::first(BAO_PA))?;
    Ok(board(&first, &built.image, case.cores))
}

/// Returns the machine that enters the Image `first`, with `bao` where that goes.
fn board(first: &Path, bao: &Path, cores: u32) -> MachineConfig {
    let mut config = MachineConfig::new(first, cores, MEMORY);
    let device = format!("loader,file={},addr={BAO_PA:#x},force-raw=on", bao.display());
    config.extra_args = vec!["-device".into(), device.into()];
    config
}
