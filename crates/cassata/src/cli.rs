//! The command line: one file for each command, with its help.

mod analyze;
mod bench;
mod bound;
mod build;
mod calibrate;
mod check;
mod doctor;
mod new;
mod operate;
mod overheads;
mod run;
mod simulate;
mod test;
mod trace;
mod values;
mod vtime;

pub use analyze::{Analyze, BoundsKind};
pub use bench::{Asked, Bench, Campaign, Common, Demo, Distributed, Fuzzing};
pub use bound::Bound;
pub use build::{Build, Format};
pub use calibrate::Calibrate;
pub use check::Check;
pub use doctor::Doctor;
pub use new::New;
pub use operate::{Move, Policy};
pub use overheads::{OverheadArgs, OverheadSource};
pub use run::Run;
pub use simulate::Simulate;
pub use test::Test;
pub use trace::Trace;
pub use vtime::Vtime;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand};

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
  cassata new my.toml                    describe a system of your own
  cassata check systems/demo.toml        is a system description sound?
  cassata run systems/demo.toml          run it until it ends or Ctrl-C

Results stand in results/NAME: result.json for programs, report.html for people,
console-VM.log for each guest. `cassata help COMMAND` says more.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands. The help of each stands at its arguments, in its own file.
#[derive(Debug, Subcommand)]
pub enum Command {
    Demo(Demo),
    Test(Test),
    Bench(Bench),
    Campaign(Campaign),
    Fuzz(Fuzzing),
    Build(Build),
    Run(Run),
    Move(Move),
    Policy(Policy),
    New(New),
    Doctor(Doctor),
    Check(Check),
    Analyze(Analyze),
    Bound(Bound),
    Calibrate(Calibrate),
    Simulate(Simulate),
    Trace(Trace),
    Vtime(Vtime),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::path::PathBuf;
    use std::time::Duration;

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
        let Asked { experiment, options, answer, .. } = demo.0;
        assert_eq!((experiment.label().name, answer.common.report_only), ("demo", true));
        assert_eq!(options.get_one("runs"), Some(&1_u16));
        assert_eq!(options.get_one("seconds"), Some(&Duration::from_secs(60)));
        let Command::Run(run) = parse("cassata run a.toml --for 2.5 --json f.json").unwrap() else {
            panic!()
        };
        assert_eq!(run.limit, Some(Duration::from_millis(2_500)));
        assert_eq!((run.system, run.json), ("a.toml".into(), Some("f.json".into())));
        let Command::Test(test) = parse("cassata test psci --machine-only").unwrap() else {
            panic!()
        };
        assert_eq!((test.filter.as_str(), test.machine_only), ("psci", true));
        let Command::Test(test) = parse("cassata test gic --coverage").unwrap() else { panic!() };
        assert!(test.coverage && !test.machine_only);
        let Command::Build(build) = parse("cassata build a.toml -o b.elf").unwrap() else {
            panic!()
        };
        assert_eq!((build.output, build.sign), (PathBuf::from("b.elf"), None));
        let Command::Build(build) = parse("cassata build a.toml -o b.elf --sign k.pem").unwrap()
        else {
            panic!()
        };
        assert_eq!(build.sign, Some(PathBuf::from("k.pem")));
        assert!(matches!(parse("cassata check a.toml"), Ok(Command::Check(_))));
        let Command::Analyze(analyze) =
            parse("cassata analyze a.json --json --bounds corrected").unwrap()
        else {
            panic!()
        };
        assert_eq!((analyze.json, analyze.bounds), (true, BoundsKind::Corrected));
        let line = "cassata bench schedulability --figure 9 --tasksets 100 --quick";
        let Command::Bench(Bench { asked }) = parse(line).unwrap() else { panic!() };
        let (name, options) = (asked.experiment.label().name, asked.options);
        assert_eq!((name, options.get_flag("quick")), ("schedulability", true));
        assert_eq!(options.get_many("figures").unwrap().collect::<Vec<&u32>>(), [&9]);
        assert_eq!(
            (options.get_one("tasksets"), options.get_one("seed")),
            (Some(&100_u64), Some(&1_u64))
        );
        let line = "cassata campaign promises --systems 50 --quick --results r -- --cores 8";
        let Command::Campaign(Campaign { asked }) = parse(line).unwrap() else { panic!() };
        assert_eq!(
            (asked.words, asked.common.results),
            (vec!["--systems=50".into(), "--quick".into()], Some("r".into()),)
        );
        assert_eq!(asked.snakemake, ["--cores", "8"]);
        let line = "cassata bench promises --run-point machine-1";
        let Command::Bench(Bench { asked }) = parse(line).unwrap() else { panic!() };
        assert_eq!((asked.part.run_point.as_deref(), asked.part.merge), (Some("machine-1"), false));
        let line =
            "cassata simulate a.json --for 1.5ms --trace t.svg --protocol mpcp --execution 50";
        let Command::Simulate(told) = parse(line).unwrap() else { panic!() };
        assert_eq!((told.limit, told.trace), (Some(1_500_000), Some("t.svg".into())));
        assert_eq!(
            (told.protocol, told.execution, told.seed),
            (Some(simulate::Protocol::Mpcp), 50, 0)
        );
        for (line, source) in [
            ("cassata simulate a.json", None),
            ("cassata simulate --overheads a.json", Some(OverheadSource::Measured)),
            ("cassata simulate a.json --overheads=computed", Some(OverheadSource::Computed)),
        ] {
            let Command::Simulate(told) = parse(line).unwrap() else { panic!() };
            assert_eq!((told.overheads, told.system), (source, "a.json".into()), "{line}");
        }
        let Command::Run(run) = parse("cassata run a.toml --overheads computed").unwrap() else {
            panic!()
        };
        assert_eq!((run.overheads, run.gaps), (OverheadSource::Computed, None));
        let line = "cassata run --gaps a.toml --vtime --stall 1@200ms:500us --stall 0@1s:2us";
        let Command::Run(run) = parse(line).unwrap() else { panic!() };
        assert_eq!((run.gaps, run.system), (Some(10_000), "a.toml".into()));
        let stalls = run.stalls.iter().map(ToString::to_string);
        assert_eq!(Vec::from_iter(stalls), ["1@200000000:500000", "0@1000000000:2000"]);
        let Command::Build(build) = parse("cassata build a.toml -o b.elf --gaps=50us").unwrap()
        else {
            panic!()
        };
        assert_eq!(build.gaps, Some(50_000));
        let line = "cassata bound --path call --image e.elf --json";
        let Command::Bound(bound) = parse(line).unwrap() else { panic!() };
        assert_eq!((bound.path.as_deref(), bound.image), (Some("call"), Some("e.elf".into())));
        assert!(bound.json && !bound.write);
        let line = "cassata calibrate --board zcu102 -o c.fit --format fit --sweep 4M --cold 0";
        let Command::Calibrate(calibrate) = parse(line).unwrap() else { panic!() };
        assert_eq!((calibrate.sweep, calibrate.cold), (Some(4_096), Some(0)));
        assert_eq!((calibrate.output, calibrate.format), (Some("c.fit".into()), Format::Fit));
        let Command::Calibrate(calibrate) = parse("cassata calibrate --console uart.log").unwrap()
        else {
            panic!()
        };
        assert_eq!((calibrate.console, calibrate.board), (Some("uart.log".into()), None));
        let Command::Trace(trace) = parse("cassata trace run-a --from 1.5 --json").unwrap() else {
            panic!()
        };
        assert_eq!((trace.run, trace.json), ("run-a".into(), true));
        assert_eq!(trace.from, Some(Duration::from_millis(1_500)));
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
            ("cassata run a.toml --gaps=0.5us", "10s"),
            ("cassata run a.toml --gaps --overheads computed", "--overheads"),
            ("cassata run a.toml --stall 1@200ms:500us", "--vtime"),
            ("cassata build a.toml -o b.elf --gaps=later", "is not a unit of time"),
            ("cassata vtime --stall 1@200ms:0us -- q", "from 1 us"),
            ("cassata demo --runs 0", "--runs"),
            ("cassata test --host-only --machine-only", "--machine-only"),
            ("cassata test --lint-only --machine-only", "--machine-only"),
            ("cassata test --coverage --host-only", "--host-only"),
            ("cassata build a.toml", "--output"),
            ("cassata vtime qemu-system-aarch64", "--"),
            ("cassata vtime", "QEMU"),
            ("cassata vtime --mhz 0 -- q", "10000"),
            ("cassata bench el3", "el2"),
            ("cassata bench vtme", "vtime"),
            ("cassata bench schedulability --figure 5", "6..=10"),
            ("cassata bench schedulability --tasksets 0", "--tasksets"),
            ("cassata bench case-study --figure 6", "--figure"),
            ("cassata demo --runs 1 --write-docs", "--write-docs"),
            ("cassata demo --real-time --write-docs", "--write-docs"),
            ("cassata bench el2 --merge --list-points", "--merge"),
            ("cassata bench el2 --merge --write-docs", "--write-docs"),
            ("cassata campaign el3", "el2"),
            ("cassata campaign el2 --cores 8", "--cores"),
            ("cassata analyze a.json --bounds best", "corrected"),
            ("cassata analyze a.json --periods", "--find-budgets"),
            ("cassata bound --image a.elf --write", "--write"),
            ("cassata calibrate", "--board"),
            ("cassata calibrate --console a.log -o b.elf", "--output"),
            ("cassata calibrate --console a.log --load none", "--load"),
            ("cassata calibrate --board a --format fit", "--output"),
            ("cassata calibrate --board a --repetitions 0", "1..=10000"),
            ("cassata calibrate --board a --sweep 16M", "8M"),
            ("cassata simulate a.json --for 0s", "at least 1 ns"),
            ("cassata simulate a.json --for 2h", "2h"),
            ("cassata simulate a.json --for -2s", "-2"),
            ("cassata simulate a.json --for 99999999999s", "146 years"),
            ("cassata simulate a.json --execution 0", "1..=100"),
            ("cassata move run-a linux.1", "PCPU"),
            ("cassata move run-a linux.1 three", "three"),
            ("cassata policy run-a linux", "POLICY"),
            ("cassata dmeo", "demo"),
        ] {
            let error = parse(line).expect_err(line);
            assert!(error.contains(named), "{line}: {error}");
        }
    }

    #[test]
    fn every_command_teaches_by_example() {
        let cli = Cli::command();
        let [bench, campaign] = ["bench", "campaign"].map(|one| cli.find_subcommand(one).unwrap());
        let experiments = bench.get_subcommands().chain(campaign.get_subcommands());
        for command in cli.get_subcommands().chain(experiments) {
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let name = command.get_name();
            let calls = ["", "bench ", "campaign "].map(|before| format!("cassata {before}{name}"));
            assert!(calls.iter().any(|call| examples.contains(call)), "{name}");
        }
    }
}
