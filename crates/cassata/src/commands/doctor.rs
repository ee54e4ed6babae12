//! `cassata doctor`.

use crate::cli::Doctor;
use crate::{TROUBLE, place};
use miette::{Result, miette};
use std::process::Command;

/// Has the launcher look: it knows what it sets up, and can tell before there is this program.
pub fn doctor(arguments: &Doctor) -> Result<u8> {
    let launcher = place::root()?.join("cassata");
    let mut command = Command::new(&launcher);
    command.arg("doctor").args(arguments.json.then_some("--json"));
    let status = command.status();
    let status = status.map_err(|error| miette!("cannot run {}: {error}", launcher.display()))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(TROUBLE))
}
