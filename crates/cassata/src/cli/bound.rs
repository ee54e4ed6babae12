//! Arguments of `cassata bound`.

use clap::Args;
use std::path::PathBuf;

/// Compute how long EL2 takes at most, from its image
///
/// Disassembles the hypervisor, finds its control-flow graph, and computes for everything guests
/// come for the longest path in instructions: of the whole stay, and without a look at whether an
/// interrupt is pending. Loops have bounds in the source beside them; what has none is listed
/// with its place. Says too how deep the stack gets, and counts where the code may panic. Exits with
/// 1 when a figure is larger than recorded, more is missing, or the stack is nearly full.
///
/// Without a description the figures hold for every system that can be described. A system has
/// fewer vCPUs, VMs, list registers and so on, so its figures are smaller.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cassata bound                              every figure, and what is missing
  cassata bound systems/demo.toml            the figures for this system
  cassata bound --path \"null call\"           which functions make it
  cassata bound --write                      records the figures: see what changed with git diff
  cassata bound --image build/el2-trace.elf  another image; compared with nothing

Reads crates/el2/bounds.toml, compares with crates/el2/bounds-recorded.toml, and writes
results/bound. docs/src/bound.md says what the figures mean.")]
pub struct Bound {
    /// The description of a system whose figures are asked for; compared with nothing
    #[arg(value_name = "SYSTEM", conflicts_with = "write")]
    pub file: Option<PathBuf>,
    /// Show the path that makes the longest stretch, for figures with this in their names
    #[arg(long, value_name = "NAME")]
    pub path: Option<String>,
    /// Analyse this ELF file, and not the hypervisor that systems are packed with
    #[arg(long, value_name = "FILE", conflicts_with = "write")]
    pub image: Option<PathBuf>,
    /// Record the figures
    #[arg(long)]
    pub write: bool,
    /// Answer as JSON
    #[arg(long)]
    pub json: bool,
}
