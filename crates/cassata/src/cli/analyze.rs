//! Arguments of `cassata analyze`.

use super::OverheadArgs;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Compute whether every deadline holds
///
/// Bounds on response times of vCPUs with budgets and of tasks that share
/// resources, under the protocol vMPCP (Kim, Wang and Rajkumar, RTSS 2014,
/// as corrected in 2015). For each vCPU and task: the bound, what it is made
/// of, the slack, and whether it holds. Exits with 0 when all hold, 1 when
/// one does not, 2 for bad input.
///
/// FILE is a system description (.toml) with budgets and tasks, or JSON: times
/// are whole nanoseconds, a larger priority is higher, a
/// task's deadline is its period, and a segment that holds a resource
/// names it: gcs for one that tasks of several vCPUs use, lcs for one that
/// stays on one vCPU.
///
/// The equations are the paper's, so that they can be compared with it. For a
/// system that will run, ask for --bounds corrected, as `cassata check` does;
/// where only the published bounds hold, a line on standard error says so.
///
/// The bounds contain what EL2 takes, as it was measured, times a margin; for JSON,
/// in virtual time, where an instruction is a nanosecond. With --overheads computed
/// it is what `cassata bound` computes from the hypervisor's image: for the system
/// that is described, and for JSON for any. The paper takes it as nothing, and so
/// does --no-overheads.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cassata analyze taskset.json             every bound, for people
  cassata analyze taskset.json --json      for programs
  cassata analyze system.toml              what a system description declares
  cassata analyze system.toml --overheads computed
  cassata analyze taskset.json --find-budgets --periods

A taskset:
  {\"server\": \"deferrable\", \"overrun\": true,
   \"vcpus\": [{\"id\": \"v1\", \"pcpu\": 0, \"budget\": 3000000, \"period\": 10000000, \"priority\": 1}],
   \"tasks\": [{\"id\": \"t1\", \"vcpu\": \"v1\", \"period\": 200000000, \"priority\": 1,
              \"segments\": [{\"wcet\": 2000000}, {\"wcet\": 1000000, \"gcs\": \"R0\"},
                           {\"wcet\": 2000000, \"lcs\": \"L1\"}]}]}
server is periodic or deferrable; a vCPU may have a server and an overrun of its own.
A task may have a jitter, a vCPU and a task an offset, 0 otherwise. Interrupts that release no
task, at least a period apart:
  \"handlers\": [{\"id\": \"tick\", \"vcpu\": \"v1\", \"period\": 1000000, \"wcet\": 5000}]")]
pub struct Analyze {
    /// Where vCPUs and tasks are described
    pub file: PathBuf,
    /// Answer as JSON
    #[arg(long)]
    pub json: bool,
    /// Which equations: as the paper has them, or with what they forget
    #[arg(long, value_enum, default_value = "published")]
    pub bounds: BoundsKind,
    /// Choose the least budgets with which everything holds
    #[arg(long)]
    pub find_budgets: bool,
    /// Choose periods of vCPUs too
    #[arg(long, requires = "find_budgets")]
    pub periods: bool,
    /// What EL2 takes.
    #[command(flatten)]
    pub overheads: OverheadArgs,
}

/// Which equations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BoundsKind {
    /// As published, with the authors' correction of 2015
    Published,
    /// With Equation 7 mended and Equation 11 widened
    Corrected,
}
