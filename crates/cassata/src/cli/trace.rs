//! Arguments of `cassata trace`.

use clap::Args;
use std::path::PathBuf;

/// Show what EL2 recorded of a run
///
/// A run leaves a trace if its description has `trace = "1M"` under `[hypervisor]`. This writes
/// it beside the run's other results for Perfetto (ui.perfetto.dev), and its beginning as
/// a drawing, and counts what was recorded.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cassata trace run-shell                     after: cassata run systems/shell.toml
  cassata trace results/run-shell --from 1.5 --for 0.02
  cassata trace run-shell --json

RUN is a directory of results, or its name. Writes RUN/trace.perfetto-trace and
RUN/trace.svg.")]
pub struct Trace {
    /// The run: a directory of results, or its name
    pub run: PathBuf,
    /// Draw from so many seconds on [default: when the first vCPU runs]
    #[arg(long, value_name = "SECONDS", value_parser = lab::quantity::seconds)]
    pub from: Option<std::time::Duration>,
    /// Draw so many seconds
    #[arg(long = "for", value_name = "SECONDS", value_parser = lab::quantity::seconds)]
    pub length: Option<std::time::Duration>,
    /// Print what a program reads
    #[arg(long)]
    pub json: bool,
}
