//! Arguments of `cassata run`.

use super::OverheadSource;
use clap::Args;
use lab::console::connection::Request;
use lab::quantity::seconds;
use std::path::PathBuf;
use std::time::Duration;

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
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cassata run systems/demo.toml
  cassata run systems/demo.toml --for 10 --json figures.json
  cassata run systems/demo.toml --vtime       figures that no busy host falsifies
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
