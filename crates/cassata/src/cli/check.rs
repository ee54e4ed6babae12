//! Arguments of `cassata check`.

use super::OverheadArgs;
use clap::Args;
use std::path::PathBuf;

/// Say whether a system description is sound
///
/// Reads it and every file it names, and tells everything that is wrong:
/// where, and how to mend it. Exits with 2 if anything is, with 1 if a
/// deadline it declares cannot be promised: the bounds contain what EL2 takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  cassata check systems/demo.toml")]
pub struct Check {
    /// The system description
    pub system: PathBuf,
    /// Answer as JSON
    #[arg(long)]
    pub json: bool,
    /// What EL2 takes.
    #[command(flatten)]
    pub overheads: OverheadArgs,
}
