//! `cassata test`.

use super::coverage::Coverage;
use super::{interrupt, say};
use crate::cli::Test;
use crate::place;
use lab::bundle::Builds;
use lab::coverage::report::Extent;
use lab::interrupt::{self as signals, Interrupt};
use lab::progress::Progress;
use lab::qemu::Qemu;
use lab::results::Directory;
use lab::suite::{self, Asked, Bench, Call, CargoTest, LINTS, Repeat, Tally};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::ffi::OsString;
use std::path::Path;

/// Tests of guests' code in C, which are programs, by their names and those of their
/// directories: what the FreeRTOS guest reads from outside, and the library for shared resources.
const GUESTS: [(&str, &str); 2] = [("freertos-parsers", "freertos"), ("vmpcp-library", "vmpcp")];

/// Runs every test there is, or some.
pub fn test(arguments: &Test) -> Result<u8> {
    let (root, interrupt) = (place::root()?, interrupt()?);
    let directory = Directory::create(&place::results(), "test")?;
    let coverage = arguments.coverage.then(Coverage::begin).transpose()?;
    let (mut tally, mut machines) = (Tally::default(), Tally::default());
    if !arguments.host_only && !arguments.machine_only {
        tally += lint(&root, arguments, directory.path(), &interrupt)?;
    }
    if !arguments.lint_only && !arguments.machine_only {
        tally += host(&root, arguments, directory.path(), &interrupt)?;
    }
    if !arguments.lint_only && !arguments.host_only {
        machines = machine(&root, arguments, directory.path(), coverage.as_ref(), &interrupt)?;
        tally += machines;
    }
    if tally == Tally::default() && !arguments.filter.is_empty() && !interrupt.requested() {
        return Err(miette!(
            help = "a test runs if its name contains that; `cassata test --help`",
            "no test has `{}` in its name",
            arguments.filter
        ));
    }
    let interrupted = interrupt.requested();
    let covered = match &coverage {
        // What has been recorded until Ctrl-C is worth a look as well.
        Some(coverage) if machines != Tally::default() || !interrupted => {
            let extent = Extent { asked: asked(arguments), tally: machines, interrupted };
            coverage.tell(&root, &checked_hypervisor(&root)?, extent)?
        }
        _ => 0,
    };
    if interrupted {
        say(&format!("{tally}, and then it was interrupted"));
        return Ok(signals::EXIT_CODE);
    }
    say(&tally.to_string());
    Ok(covered.max(u8::from(tally.failed > 0)))
}

/// Checks what the source must satisfy as it stands.
fn lint(root: &Path, arguments: &Test, logs: &Path, interrupt: &Interrupt) -> Result<Tally> {
    let mut tally = Tally::default();
    let asked = |name: &str| name.contains(&arguments.filter);
    let lints: Vec<_> = LINTS.iter().filter(|lint| asked(lint.name)).collect();
    let Some(toolchain) = place::chosen_toolchain() else {
        if !lints.is_empty() {
            say("format, clippy and documentation are checked by `./cassata test`: skipped");
        }
        return Ok(Tally { skipped: lints.len() as u64, ..tally });
    };
    let mut progress = Progress::new("lint tests");
    for lint in lints {
        if interrupt.requested() {
            break;
        }
        let one = lint.run(root, &toolchain, logs, &mut progress, interrupt);
        tally += one.into_diagnostic().wrap_err_with(|| format!("cannot run {}", lint.name))?;
    }
    Ok(tally)
}

/// What cargo tests: all but what runs on bare metal or inside QEMU only. The hypervisor
/// is in it with its library. The profile is the command line's, whose crates are
/// compiled already.
const HOST: [&str; 8] = [
    "--release",
    "--workspace",
    "--exclude",
    "cassata-probe",
    "--exclude",
    "cassata-embassy",
    "--exclude",
    "cassata-vtime-plugin",
];

/// Runs what needs no machine.
fn host(root: &Path, arguments: &Test, logs: &Path, interrupt: &Interrupt) -> Result<Tally> {
    let mut args: Vec<OsString> = ["test", "--locked", "--no-fail-fast"].map(Into::into).into();
    args.extend(HOST.map(Into::into));
    args.extend(["--manifest-path".into(), root.join("Cargo.toml").into()]);
    if !arguments.filter.is_empty() {
        args.extend(["--".into(), OsString::from(&arguments.filter)]);
    }
    let (cargo, env, log) = (place::cargo(), place::toolchain(), logs.join("host.log"));
    let run = CargoTest { cargo, args, env, log };
    let mut progress = Progress::new("host tests");
    let mut tally =
        run.run(&mut progress, interrupt).into_diagnostic().wrap_err("cannot run host tests")?;
    drop(progress);
    for (name, guest) in GUESTS {
        if !name.contains(&arguments.filter) || interrupt.requested() {
            continue;
        }
        let program = root.join(format!("guests/{guest}/test"));
        let mut progress = Progress::new("guest tests");
        let log = logs.join(format!("{guest}.log"));
        let run = CargoTest { cargo: program.into(), args: Vec::new(), env: Vec::new(), log };
        let one = run.run_as_one(name, &mut progress, interrupt);
        tally +=
            one.into_diagnostic().wrap_err_with(|| format!("cannot run guests/{guest}/test"))?;
    }
    Ok(tally)
}

/// Returns which machine tests the arguments ask for.
fn asked(arguments: &Test) -> Asked<'_> {
    Asked { filter: &arguments.filter, all: arguments.all }
}

/// Runs what needs a machine.
fn machine(
    root: &Path,
    arguments: &Test,
    directory: &Path,
    coverage: Option<&Coverage>,
    interrupt: &Interrupt,
) -> Result<Tally> {
    let scenarios = lab::scenario::all();
    // A name that no scenario has is the caller's matter, whatever was built.
    let asked = asked(arguments);
    if !scenarios.iter().any(|scenario| scenario.is_asked_for(asked)) {
        return Ok(Tally::default());
    }
    let (qemu, instrument) = (Qemu::find()?, place::instrument()?);
    let checked = checked_hypervisor(root)?;
    let bench = Bench {
        root: root.into(),
        directory: directory.into(),
        hypervisor: crate::HYPERVISOR,
        instrument,
        qemu,
        interrupt: interrupt.clone(),
        records: coverage.map(|coverage| coverage.records.clone()),
    };
    let mut progress = Progress::new("machine tests");
    let repeat = Repeat { times: arguments.repeat, busy: arguments.busy };
    let call = Call { asked, at_once: suite::side_by_side(), repeat, checked };
    Ok(suite::run_scenarios(&scenarios, call, &bench, &mut progress))
}

/// Reads the build of the hypervisor that machine tests run. It is not carried inside the
/// command line: only tests need it, and they need the project anyway.
fn checked_hypervisor(root: &Path) -> Result<Builds> {
    let read = |product: &str| {
        let file = std::fs::read(root.join(product)).map_err(|error| {
            miette!(
                help = "`./cassata test` builds it first",
                "cannot read the hypervisor with its checks, {product}: {error}"
            )
        });
        file.map(|file| &*file.leak())
    };
    let gic_v2 = read("build/el2-checked-gicv2.elf")?;
    Ok(Builds { gic_v2, ..Builds::one(read("build/el2-checked.elf")?, true) })
}
