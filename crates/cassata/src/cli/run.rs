//! Arguments of `cassata run`.

use super::OverheadSource;
use super::values::{gap_threshold, stall};
use clap::Args;
use lab::console::connection::Request;
use lab::quantity::seconds;
use std::path::PathBuf;
use std::time::Duration;
use vtime::stall::Stall;

/// Run a system and watch it
///
/// Ends when the machine switches itself off, when the time is over, or on
/// Ctrl-C; nothing is left running. Exits with 1 if a guest failed, and says
/// why.
///
/// With --console VM this terminal is the console of a guest: Ctrl-] q ends the
/// run, Ctrl-C goes to the guest. Another program can have a console as well:
/// --console VM=pty makes a pseudo-terminal for it, --console VM=unix:PATH a
/// socket.
///
/// With --gaps the board runs a detector in the place of the system's VMs: on every
/// core a guest that reads the counter without rest, and reports when it did not run
/// though EL2 had nothing to do. See docs/src/gaps.md.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cassata run systems/demo.toml
  cassata run systems/demo.toml --for 10 --json figures.json
  cassata run systems/demo.toml --vtime       figures that no busy host falsifies
  cassata run systems/demo.toml --gaps --vtime --stall 1@200ms:500us
  cassata run systems/shell.toml --console linux
  cassata run systems/shell.toml --console linux=unix:/tmp/linux
  socat -,rawer /tmp/linux                    at another terminal

Writes results/run-NAME/result.json, report.html, a CSV file for each table, an
SVG file for each plot, and a console log for each guest, NAME being that of the
description; results/run-NAME-2 and so on if another description of that name has
results there, or another run goes on.")]
pub struct Run {
    /// The system description
    pub system: PathBuf,
    /// Run in virtual time: an instruction is a nanosecond, on every core alike
    #[arg(long)]
    pub vtime: bool,
    /// End after so many seconds of the machine's own time [with --vtime and without
    /// --console: 60]
    #[arg(long = "for", value_name = "SECONDS", value_parser = seconds)]
    pub limit: Option<Duration>,
    /// Run a detector of gaps instead, which reports those longer than so much [for 1
    /// second, or what --for says; THRESHOLD: 10us]
    #[arg(long, value_name = "THRESHOLD", num_args = 0..=1, require_equals = true,
          default_missing_value = "10us", value_parser = gap_threshold,
          conflicts_with_all = ["consoles", "overheads"])]
    pub gaps: Option<u64>,
    /// Let a core execute nothing for a while, to try what notices: core 1 from 200 ms
    /// on for 500 us, with 1@200ms:500us; for several stalls, repeat it
    #[arg(long = "stall", value_name = "CORE@TIME:DURATION", value_parser = stall,
          requires = "vtime")]
    pub stalls: Vec<Stall>,
    /// Connect a guest's console to this terminal, to a new pseudo-terminal, or to a
    /// new Unix socket; for several guests, repeat it
    #[arg(long = "console", value_name = "VM[=pty|=unix:PATH]")]
    pub consoles: Vec<Request>,
    /// Write the figures to this file too
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Where what EL2 takes is from, in the bounds that tasks and budgets are compared with
    #[arg(long, value_enum, value_name = "SOURCE", default_value = "measured")]
    pub overheads: OverheadSource,
    /// Exit with 0 even if a guest failed
    #[arg(long)]
    pub report_only: bool,
}
