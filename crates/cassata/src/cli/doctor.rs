//! Arguments of `cassata doctor`.

use clap::Args;

/// Say what is missing on this machine
///
/// Looks for each package that Cassata needs, for those that only a few commands need, for apt's sources, for
/// processors, memory and room, and says how to get what is not there. It installs nothing and writes nothing. Exits
/// with 1 if anything is missing.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  cassata doctor")]
pub struct Doctor {
    /// Answer as JSON
    #[arg(long)]
    pub json: bool,
}
