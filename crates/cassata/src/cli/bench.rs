//! Arguments of `cassata bench`.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};

/// Measure, and compare with goals
///
/// What has been measured with the same hypervisor, guests, QEMU and instrument is not
/// measured again.
///
/// `el2` counts the instructions at EL2 for each kind of visit, by
/// provoking every one some ten thousand times, and the hypervisor's bytes
/// and lines; and it measures what interrupt priority separation is worth.
///
/// `vtime` tells whether virtual time is repeatable, exact, and not too
/// dear, with stock Linux and a bare-metal guest on up to eight cores. It
/// takes half an hour or more.
///
/// `lhp` runs Linux and FreeRTOS on four cores under each migration policy:
/// hackbench's time, the RTOS's latencies, what a migration and what the
/// hypervisor cost, how long lock holders lay preempted. It takes about two hours,
/// and goes on where it was stopped; with --quick it takes a quarter of one.
///
/// Exits with 0 only if every goal is met.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cassata bench el2
  cassata bench vtime --quick     coarsely, in some minutes
  cassata bench vtime             go on where an earlier one was stopped
  cassata bench lhp --quick       lock holder preemption, coarsely
  cassata bench lhp --point throughput-on-demand-f5

Writes results/NAME/result.json and report.html, a CSV file for each table and an SVG
file for each plot.")]
pub struct Bench {
    /// What to measure
    #[arg(value_parser = experiments())]
    pub subject: String,
    /// Measure less, where it would take long
    #[arg(long)]
    pub quick: bool,
    /// Measure again what has been measured already
    #[arg(long)]
    pub fresh: bool,
    /// Only the cases whose names begin so; one that does not exist makes it
    /// tell those that do
    #[arg(long, value_name = "NAME")]
    pub point: Option<String>,
    /// Write the figures into the documents that quote them
    #[arg(long)]
    pub write_docs: bool,
    /// Exit with 0 even if a goal is missed
    #[arg(long)]
    pub report_only: bool,
}

/// Returns the names that there are, from the laboratory's list.
fn experiments() -> PossibleValuesParser {
    let all = lab::bench::all();
    PossibleValuesParser::new(all.map(|one| PossibleValue::new(one.name()).help(one.about())))
}
