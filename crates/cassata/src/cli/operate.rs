//! Arguments of `cassata move` and `cassata policy`.

use clap::Args;
use std::path::PathBuf;

/// Have a vCPU of a running system go to another pCPU
///
/// The VM's migration policy has to be `on-request`, and the pCPU one of the vCPU's `may_run_on`.
/// Whatever is described so was admitted by `cassata check`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cassata move run-demo linux.1 3      while: cassata run systems/demo.toml
  cassata move results/run-demo linux.1 3

RUN is a directory of results, or its name.")]
pub struct Move {
    /// The run: a directory of results, or its name
    pub run: PathBuf,
    /// The vCPU, by its VM and its index there, as `linux.1`
    pub vcpu: String,
    /// The pCPU
    pub pcpu: usize,
}

/// Give a VM of a running system another migration policy
///
/// It has to be named in the VM's `may_switch_to`. vCPUs that are away from their bases come back
/// as the policy said under which they have left.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cassata policy run-demo linux none         while: cassata run systems/demo.toml
  cassata policy results/run-demo linux on-demand

RUN is a directory of results, or its name.")]
pub struct Policy {
    /// The run: a directory of results, or its name
    pub run: PathBuf,
    /// The VM
    pub vm: String,
    /// The policy, as a description names it
    pub policy: String,
}
