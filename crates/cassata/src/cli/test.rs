//! Arguments of `cassata test`.

use clap::Args;

/// Run every test there is, or some
///
/// First what the source must satisfy (rustfmt, clippy, rustdoc), then the tests
/// that need no machine (cargo runs them), then those that boot one in QEMU, at
/// last the demonstration, shortened. The last line says how many passed and failed,
/// and how many were skipped because a program is not installed. Left out are those that
/// take long for what they add, unless --all asks for them or part of their name is given; and
/// the longest, moved-migrant-100000.on-demand, moved-asked-100000, supply-1000000.KIND,
/// varied-1000000.KIND and stock.POLICY, and campaign-slurm, which installs Slurm,
/// unless their whole names are given.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cassata test                    what takes half an hour on two processors
  cassata test --all              everything but the longest
  cassata test --lint-only        format, clippy, documentation
  cassata test --host-only        without a machine
  cassata test psci               whatever has `psci` in its name
  cassata test --machine-only --coverage
                                  which lines of the hypervisor they execute
  cassata test gathered --machine-only --repeat 10 --busy
                                  that those find the same every time

Each machine test leaves its console logs in results/test/NAME. What --coverage finds stands in
results/coverage-el2: report.html, result.json, and lines.csv with every line never executed.")]
pub struct Test {
    /// Only tests whose name contains this, or is this
    #[arg(default_value = "", hide_default_value = true)]
    pub filter: String,
    /// Also the tests that take long for what they add
    #[arg(long)]
    pub all: bool,
    /// Only what the source must satisfy: format, lints, documentation
    #[arg(long, group = "part")]
    pub lint_only: bool,
    /// Only those that need no machine
    #[arg(long, group = "part")]
    pub host_only: bool,
    /// Only those that boot a machine
    #[arg(long, group = "part")]
    pub machine_only: bool,
    /// Run each machine test so many times, and compare what they find
    ///
    /// Each leaves a result.json; but for its part `host`, all of them must be
    /// equal.
    #[arg(long, value_name = "TIMES", default_value_t = 1, requires = "machine_only",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
    /// Record which lines of the hypervisor the machine tests execute
    ///
    /// Machines in virtual time record it, at no change of that time. After all tests (--all),
    /// 95 % of the lines must have been executed.
    #[arg(long, conflicts_with_all = ["lint_only", "host_only"])]
    pub coverage: bool,
    /// Every second time, keep all processors busy with other work
    #[arg(long, requires = "repeat")]
    pub busy: bool,
}
