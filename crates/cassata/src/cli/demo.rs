//! Arguments of `cassata demo`.

use super::values::seconds;
use clap::Args;
use std::time::Duration;

/// Show Linux and FreeRTOS sharing cores, with figures at the end
///
/// Boots systems/demo.toml: a stock Debian Linux that runs hackbench on two
/// cores, and on one of them a FreeRTOS that wakes a task every
/// millisecond. Shows meanwhile what each does, and at the end how late the
/// RTOS ever was. Exits with 0 only if both did their work and the RTOS
/// missed nothing.
///
/// Time is virtual: an instruction is a nanosecond, and all cores advance
/// together. So the figures are the board's, and the same on any computer,
/// however busy; only how long it takes is the computer's.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cassata demo                    the whole of it
  cassata demo --runs 1           only until Linux has finished one run
  cassata demo --real-time        in the host's time: an idle computer is needed
  cassata demo --report-only      figures matter, goals do not

Writes results/demo/result.json, report.html, a CSV file for each table, an SVG file for each
plot, and a console log for each guest.")]
pub struct Demo {
    /// Write the output into the README, which quotes it
    #[arg(long, conflicts_with_all = ["real_time", "runs"])]
    pub write_docs: bool,
    /// Exit with 0 even if a goal is missed
    #[arg(long)]
    pub report_only: bool,
    /// Let time pass as the host's does
    #[arg(long)]
    pub real_time: bool,
    /// Give up after so many seconds of the machine's own time
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub seconds: Duration,
    /// End when Linux has finished so many runs of hackbench
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub runs: Option<u16>,
}
