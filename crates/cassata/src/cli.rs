//! What can be said on the command line.

mod simulate;

pub use simulate::Simulate;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;
use vtime::options::Options;
use vtime::rate::ClockRate;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Yellow.on_default().bold())
    .usage(AnsiColor::Yellow.on_default().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Green.on_default());

/// A real-time hypervisor on which an RTOS and Linux share cores.
///
/// The RTOS answers its interrupts as if the core were its own, Linux gets
/// every cycle the RTOS leaves, and neither is changed. A system is described
/// in a TOML file; it is checked, packed into one bootable image, and run in
/// QEMU, on this computer, as it is.
#[derive(Debug, Parser)]
#[command(name = "cassata", version, styles = STYLES, max_term_width = 100)]
#[command(after_help = "\
Begin here:
  cassata demo                           see Linux and FreeRTOS share a core
  cassata check systems/demo.toml        is a system description sound?
  cassata run systems/demo.toml          run it until it ends or Ctrl-C

Results stand in results/NAME: result.json for programs, report.html for people,
console-VM.log for each guest. `cassata help COMMAND` says more.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
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
    #[command(after_help = "\
Examples:
  cassata demo                    the whole of it
  cassata demo --runs 1           only until Linux has finished one run
  cassata demo --real-time        in the host's time: an idle computer is needed
  cassata demo --report-only      figures matter, goals do not

Writes results/demo/result.json, report.html and a console log for each guest.")]
    Demo(Demo),

    /// Run every test there is, or some
    ///
    /// First those that need no machine (cargo runs them), then those that boot
    /// one in QEMU, at last the demonstration, shortened. The last line says
    /// how many passed and failed. Left out are the longest,
    /// moved-migrant-100000.on-demand, gathered-stock and stock.POLICY, unless
    /// they are asked for by their whole names.
    #[command(after_help = "\
Examples:
  cassata test                    everything but the longest
  cassata test --host-only        without a machine
  cassata test psci               whatever has `psci` in its name

Each machine test leaves its console logs in results/test/NAME.")]
    Test(Test),

    /// Measure, and compare with goals
    ///
    /// `el2` counts the instructions at EL2 for each kind of visit, by
    /// provoking every one some ten thousand times, and the hypervisor's bytes
    /// and lines; and it measures what interrupt priority separation is worth.
    ///
    /// `vtime` tells whether virtual time is repeatable, exact, and not too
    /// dear, with stock Linux and a bare-metal guest on up to eight cores. It
    /// takes half an hour or more; what it has measured it does not measure again.
    ///
    /// `lhp` runs Linux and FreeRTOS on four cores under each migration policy:
    /// hackbench's time, the RTOS's latencies, what a migration and what the
    /// hypervisor cost, how long lock holders lay preempted. It takes about two hours,
    /// and goes on where it was stopped; with --quick it takes a quarter of one.
    ///
    /// Exits with 0 only if every goal is met.
    #[command(after_help = "\
Examples:
  cassata bench el2
  cassata bench vtime --quick     coarsely, in some minutes
  cassata bench vtime             go on where an earlier one was stopped
  cassata bench lhp --quick       lock holder preemption, coarsely
  cassata bench lhp --point throughput-on-demand-f5

Writes results/NAME/result.json and report.html.")]
    Bench(Bench),

    /// Pack a system into one bootable image
    ///
    /// Checks the description, then writes the hypervisor, its tables, a device
    /// tree for each guest and the guests' images into one file, which boots
    /// with QEMU's -kernel. Needs no compiler.
    #[command(after_help = "\
Example:
  cassata build systems/demo.toml -o demo.elf
  qemu-system-aarch64 -M virt,virtualization=on,gic-version=3 -cpu cortex-a76 \\
      -smp 2 -m 1G -nic none -nographic -kernel demo.elf")]
    Build(Build),

    /// Run a system and watch it
    ///
    /// Ends when the machine switches itself off, when the time is over, or on
    /// Ctrl-C; nothing is left running. Exits with 1 if a guest failed.
    #[command(after_help = "\
Examples:
  cassata run systems/demo.toml
  cassata run systems/demo.toml --for 10 --json figures.json
  cassata run systems/demo.toml --vtime       figures that no busy host falsifies

Writes results/run-NAME/result.json, report.html and a console log for each
guest, NAME being that of the description.")]
    Run(Run),

    /// Say whether a system description is sound
    ///
    /// Reads it and every file it names, and tells everything that is wrong:
    /// where, and how to mend it. Exits with 2 if anything is, with 1 if a
    /// deadline it declares cannot be promised.
    #[command(after_help = "\
Example:
  cassata check systems/demo.toml")]
    Check(Check),

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
    /// The bounds are the paper's, so that they can be compared with it. For a
    /// system that will run, ask for --bounds corrected, as `cassata check` does;
    /// where only the published bounds hold, a line on standard error says so.
    #[command(after_help = "\
Examples:
  cassata analyze taskset.json             every bound, for people
  cassata analyze taskset.json --json      for programs
  cassata analyze system.toml              what a system description declares
  cassata analyze taskset.json --find-budgets --periods

A taskset:
  {\"server\": \"deferrable\", \"overrun\": true,
   \"vcpus\": [{\"id\": \"v1\", \"pcpu\": 0, \"budget\": 3000000, \"period\": 10000000, \"priority\": 1}],
   \"tasks\": [{\"id\": \"t1\", \"vcpu\": \"v1\", \"period\": 200000000, \"priority\": 1,
              \"segments\": [{\"wcet\": 2000000}, {\"wcet\": 1000000, \"gcs\": \"R0\"},
                           {\"wcet\": 2000000, \"lcs\": \"L1\"}]}]}
server is periodic or deferrable. A task may have a jitter, a vCPU and a task an
offset, 0 otherwise.")]
    Analyze(Analyze),

    /// Repeat an experiment of a published paper
    #[command(after_help = "\
Examples:
  cassata experiment vmpcp                 figures 6 to 10
  cassata experiment vmpcp --figure 9      one of them
  cassata experiment vmpcp --case-study    figure 11, by simulation")]
    Experiment(Experiment),

    /// Simulate vCPUs and tasks, and compare with their bounds
    ///
    /// Drives the hypervisor's own scheduler in a world of discrete events:
    /// vCPUs with budgets, guests with tasks and critical sections. Prints the
    /// longest response time that was seen of each task beside its bound. Exits
    /// with 1 if a job was late or a bound exceeded, with 2 if the description
    /// makes no sense.
    ///
    /// Under vMPCP a gcs raises its task and its vCPU, and may overrun the
    /// budget by what Equation 1 allows; MPCP is the baseline that raises the
    /// task only (Kim, Wang, Rajkumar, RTSS 2014).
    #[command(after_help = "\
Examples:
  cassata simulate tasks.json
  cassata simulate tasks.json --for 2s --trace schedule.svg
  cassata simulate tasks.json --execution 50 --seed 7 --json

The file is what `cassata analyze` reads; `offset` and `jitter` of tasks and
`offset` of vCPUs say when things begin.")]
    Simulate(Simulate),

    /// Run any QEMU command line in virtual time
    ///
    /// Takes a command line of qemu-system-aarch64, whatever it runs, and lets
    /// all its cores advance together, an instruction a nanosecond. Checks
    /// first that this QEMU can (version 10.0 or newer, with plugins) and says
    /// what to install if not. The terminal, Ctrl-C and the exit code are
    /// QEMU's own. What was counted is written to standard error at the end.
    ///
    /// The guest reads time from its counter. `-cpu cortex-a76,cntfrq=1000000000`
    /// makes that count single nanoseconds. With a fixed seed and date (`-seed 1
    /// -rtc base=2026-01-01,clock=vm`) runs are the same to the instruction.
    #[command(after_help = "\
Example:
  cassata vtime --statistics count.json -- qemu-system-aarch64 -M virt,gic-version=3 \\
      -cpu cortex-a76,cntfrq=1000000000 -smp 4 -m 1G -nic none -nographic \\
      -kernel Image -initrd initramfs.cpio.gz -append 'console=ttyAMA0 rdinit=/init'")]
    Vtime(Vtime),
}

/// `cassata demo`.
#[derive(Args, Debug)]
pub struct Demo {
    /// Exit with 0 even if a goal is missed
    #[arg(long)]
    pub report_only: bool,
    /// Let time pass as the host's does
    #[arg(long)]
    pub real_time: bool,
    /// Give up after so many seconds of the host's time
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    pub seconds: Duration,
    /// End when Linux has finished so many runs of hackbench
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub runs: Option<u16>,
}

/// `cassata test`.
#[derive(Args, Debug)]
pub struct Test {
    /// Only tests whose name contains this, or is this
    #[arg(default_value = "", hide_default_value = true)]
    pub filter: String,
    /// Only those that need no machine
    #[arg(long, conflicts_with = "machine_only")]
    pub host_only: bool,
    /// Only those that boot a machine
    #[arg(long)]
    pub machine_only: bool,
}

/// `cassata bench`.
#[derive(Args, Debug)]
pub struct Bench {
    /// What to measure
    #[arg(value_enum)]
    pub subject: Subject,
    /// Measure less (lhp, vtime)
    #[arg(long)]
    pub quick: bool,
    /// Measure again what has been measured already (lhp, vtime)
    #[arg(long)]
    pub fresh: bool,
    /// Only the points whose names begin so (lhp); one that does not exist makes it
    /// tell those that do
    #[arg(long, value_name = "NAME")]
    pub point: Option<String>,
    /// Exit with 0 even if a goal is missed
    #[arg(long)]
    pub report_only: bool,
}

/// What there is to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Subject {
    /// What the hypervisor costs
    El2,
    /// What becomes of Linux when the RTOS preempts a lock holder
    Lhp,
    /// What virtual time is worth, and what it costs
    Vtime,
}

/// `cassata build`.
#[derive(Args, Debug)]
pub struct Build {
    /// The system description
    pub system: PathBuf,
    /// The file to write
    #[arg(short, long, value_name = "IMAGE")]
    pub output: PathBuf,
}

/// `cassata run`.
#[derive(Args, Debug)]
pub struct Run {
    /// The system description
    pub system: PathBuf,
    /// Run in virtual time: an instruction is a nanosecond, on every core alike
    #[arg(long)]
    pub vtime: bool,
    /// End after so many seconds of the machine's own time
    #[arg(long = "for", value_name = "SECONDS", value_parser = seconds)]
    pub limit: Option<Duration>,
    /// Write the figures to this file too
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Exit with 0 even if a guest failed
    #[arg(long)]
    pub report_only: bool,
}

/// `cassata check`.
#[derive(Args, Debug)]
pub struct Check {
    /// The system description
    pub system: PathBuf,
    /// Answer as JSON
    #[arg(long)]
    pub json: bool,
}

/// `cassata analyze`.
#[derive(Args, Debug)]
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
}

/// Which equations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BoundsKind {
    /// As published, with the authors' correction of 2015
    Published,
    /// With Equation 7 mended and Equation 11 widened
    Corrected,
}

/// `cassata experiment`.
#[derive(Args, Debug)]
pub struct Experiment {
    /// Which.
    #[command(subcommand)]
    pub paper: Paper,
}

/// Papers whose experiments can be repeated.
#[derive(Debug, Subcommand)]
pub enum Paper {
    /// vMPCP: schedulability and the case study (Kim, Wang and Rajkumar, RTSS 2014)
    ///
    /// Draws random tasksets around the paper's Table I, computes with the
    /// published bounds which are schedulable under PSwO, DSwO, PSnO and DSnO,
    /// and shows beside each figure what the paper says of it and whether ours
    /// agrees. What the paper leaves open is listed, with how much it matters.
    ///
    /// With --case-study, simulates the paper's eight tasks under MPCP,
    /// vMPCP+DSnO and vMPCP+DSwO, draws their timelines and compares response
    /// times.
    ///
    /// Exits with 0 whether it agrees or not: that is a finding.
    #[command(after_help = "\
Examples:
  cassata experiment vmpcp --figure 9 --tasksets 1000
  cassata experiment vmpcp --case-study

Writes results/vmpcp-figure-N/result.json, report.html, figure.csv and figure.svg;
results/vmpcp-case-study/result.json, report.html and an SVG file for each scheme.")]
    Vmpcp(Vmpcp),
}

/// `cassata experiment vmpcp`.
#[derive(Args, Debug)]
pub struct Vmpcp {
    /// Only this figure: 6 to 10; may be repeated
    #[arg(long = "figure", value_name = "N", value_parser = clap::value_parser!(u32).range(6..=10))]
    pub figures: Vec<u32>,
    /// Not the figures, but Section V-B: eight tasks in the simulator
    #[arg(long, conflicts_with_all = ["figures", "tasksets", "seed"])]
    pub case_study: bool,
    /// Tasksets at each point
    #[arg(long, value_name = "N", default_value_t = 10_000,
          value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub tasksets: u64,
    /// Of the random numbers: the same seed draws the same tasksets
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// `cassata vtime`.
#[derive(Args, Debug)]
pub struct Vtime {
    /// How far a core may run ahead of the others, nanoseconds
    #[arg(long, value_name = "NS", default_value_t = Options::DEFAULT_QUANTUM_NS,
          value_parser = clap::value_parser!(u64).range(1..=Options::MAX_QUANTUM_NS))]
    pub quantum_ns: u64,
    /// Let cores run at the same time instead of in turns: runs are alike then,
    /// but not the same
    #[arg(long)]
    pub parallel: bool,
    /// Clock rate of every core: million instructions in a second
    #[arg(long, value_name = "MHZ", default_value = "1000", value_parser = clock_rate)]
    pub mhz: ClockRate,
    /// Write what is counted to this file, while it runs and at the end
    #[arg(long, value_name = "FILE")]
    pub statistics: Option<PathBuf>,
    /// Count instructions and visits in these physical addresses too
    #[arg(long, value_name = "START-END", value_parser = vtime::options::range)]
    pub range: Option<Range<u64>>,
    /// QEMU and its arguments
    #[arg(last = true, required = true, value_name = "QEMU")]
    pub command: Vec<OsString>,
}

/// A positive number of seconds, fractions allowed.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| "must be more than 0 seconds, and less than for ever".to_owned())
}

fn clock_rate(text: &str) -> Result<ClockRate, String> {
    let rate = text.parse().ok().and_then(ClockRate::from_mhz);
    rate.ok_or_else(|| format!("must be a whole number from 1 to {}", ClockRate::MAX_MHZ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Result<Command, String> {
        let words = line.split_whitespace();
        Cli::try_parse_from(words).map(|cli| cli.command).map_err(|error| error.to_string())
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn understands_what_the_help_shows() {
        let Command::Demo(demo) = parse("cassata demo --runs 1 --report-only").unwrap() else {
            panic!()
        };
        assert_eq!((demo.runs, demo.report_only), (Some(1), true));
        assert_eq!(demo.seconds, Duration::from_secs(300));
        let Command::Run(run) = parse("cassata run a.toml --for 2.5 --json f.json").unwrap() else {
            panic!()
        };
        assert_eq!(run.limit, Some(Duration::from_millis(2_500)));
        assert_eq!((run.system, run.json), ("a.toml".into(), Some("f.json".into())));
        let Command::Test(test) = parse("cassata test psci --machine-only").unwrap() else {
            panic!()
        };
        assert_eq!((test.filter.as_str(), test.machine_only), ("psci", true));
        let Command::Build(build) = parse("cassata build a.toml -o b.elf").unwrap() else {
            panic!()
        };
        assert_eq!(build.output, PathBuf::from("b.elf"));
        assert!(matches!(parse("cassata check a.toml"), Ok(Command::Check(_))));
        let Command::Analyze(analyze) =
            parse("cassata analyze a.json --json --bounds corrected").unwrap()
        else {
            panic!()
        };
        assert_eq!((analyze.json, analyze.bounds), (true, BoundsKind::Corrected));
        let Command::Experiment(Experiment { paper: Paper::Vmpcp(vmpcp) }) =
            parse("cassata experiment vmpcp --figure 9 --tasksets 100").unwrap()
        else {
            panic!()
        };
        assert_eq!((vmpcp.figures, vmpcp.tasksets, vmpcp.seed), (vec![9], 100, 1));
        let line =
            "cassata simulate a.json --for 1.5ms --trace t.svg --protocol mpcp --execution 50";
        let Command::Simulate(told) = parse(line).unwrap() else { panic!() };
        assert_eq!((told.limit, told.trace), (Some(1_500_000), Some("t.svg".into())));
        assert_eq!((told.protocol, told.execution, told.seed), (simulate::Protocol::Mpcp, 50, 0));
        let line = "cassata vtime --mhz 500 --range 0x10-0x20 -- qemu-system-aarch64 -M virt";
        let Command::Vtime(vtime) = parse(line).unwrap() else { panic!() };
        assert_eq!((vtime.mhz.mhz(), vtime.quantum_ns, vtime.range), (500, 2_000, Some(16..32)));
        assert_eq!(vtime.command, ["qemu-system-aarch64", "-M", "virt"]);
    }

    #[test]
    fn refuses_nonsense_and_names_it() {
        for (line, named) in [
            ("cassata run a.toml --for 0", "--for"),
            ("cassata run a.toml --for soon", "soon"),
            ("cassata run a.toml --for inf", "inf"),
            ("cassata demo --runs 0", "--runs"),
            ("cassata test --host-only --machine-only", "--machine-only"),
            ("cassata build a.toml", "--output"),
            ("cassata vtime qemu-system-aarch64", "--"),
            ("cassata vtime", "QEMU"),
            ("cassata vtime --mhz 0 -- q", "10000"),
            ("cassata bench el3", "el2"),
            ("cassata bench vtme", "vtime"),
            ("cassata experiment vmpcp --figure 5", "6..=10"),
            ("cassata experiment vmpcp --tasksets 0", "--tasksets"),
            ("cassata experiment vmpcp --case-study --figure 6", "--case-study"),
            ("cassata analyze a.json --bounds best", "corrected"),
            ("cassata analyze a.json --periods", "--find-budgets"),
            ("cassata simulate a.json --for 0s", "at least 1 ns"),
            ("cassata simulate a.json --for 2h", "2h"),
            ("cassata simulate a.json --for -2s", "-2"),
            ("cassata simulate a.json --for 99999999999s", "146 years"),
            ("cassata simulate a.json --execution 0", "1..=100"),
            ("cassata dmeo", "demo"),
        ] {
            let error = parse(line).expect_err(line);
            assert!(error.contains(named), "{line}: {error}");
        }
    }

    #[test]
    fn every_command_teaches_by_example() {
        for command in Cli::command().get_subcommands() {
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let call = format!("cassata {}", command.get_name());
            assert!(examples.contains(&call), "{call}");
        }
    }
}
