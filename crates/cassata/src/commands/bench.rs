//! `cassata bench`.

use super::{interrupt, say, write_results};
use crate::cli::{Bench as Arguments, Subject};
use crate::place;
use lab::bench::el2;
use lab::bench::{Extent, lhp, vtime};
use lab::interrupt::{EXIT_CODE, Interrupt};
use lab::progress::Progress;
use lab::qemu::Qemu;
use lab::results::Directory;
use lab::suite::Bench;
use miette::{Result, miette};

/// Measures, and compares with goals.
pub fn bench(arguments: &Arguments) -> Result<u8> {
    let interrupt = interrupt()?;
    let result = match arguments.subject {
        Subject::El2 => bench_el2(arguments, &interrupt),
        Subject::Lhp => bench_lhp(arguments, &interrupt),
        Subject::Vtime => bench_vtime(arguments, &interrupt),
    };
    if !interrupt.requested() {
        return result;
    }
    if !matches!(arguments.subject, Subject::El2) {
        eprintln!("interrupted; what has been measured is kept, and another call goes on there");
    }
    Ok(EXIT_CODE)
}

fn bench_el2(arguments: &Arguments, interrupt: &Interrupt) -> Result<u8> {
    if arguments.quick || arguments.fresh {
        return Err(miette!(
            "`--quick` and `--fresh` are for `cassata bench lhp` and `vtime`; leave them out"
        ));
    }
    no_point(arguments)?;
    let directory = Directory::create(&place::results(), "el2")?;
    let bench = room(&directory, interrupt)?;
    let mut progress = Progress::new("bench el2");
    let el2 = el2::measure(&bench, &mut progress)?;
    drop(progress);
    let mut outcome = el2.outcome();
    outcome.parameter("cassata", env!("CARGO_PKG_VERSION"));
    outcome.parameter("qemu", bench.qemu.version().to_string());
    say(&el2.summary(&outcome));
    write_results(&directory, &outcome, &el2.report())?;
    Ok(outcome.exit_code(arguments.report_only))
}

/// Points have names in one bench only.
fn no_point(arguments: &Arguments) -> Result<()> {
    if arguments.point.is_some() {
        return Err(miette!("`--point` is for `cassata bench lhp`; leave it out"));
    }
    Ok(())
}

fn bench_lhp(arguments: &Arguments, interrupt: &Interrupt) -> Result<u8> {
    let extent = extent(arguments);
    let request = lhp::Request { extent, fresh: arguments.fresh, only: arguments.point.clone() };
    request.check()?;
    let directory = Directory::create(&place::results(), "lhp")?;
    let bench = room(&directory, interrupt)?;
    let mut progress = Progress::new("bench lhp");
    let lhp = lhp::measure(&request, &bench, &mut progress)?;
    drop(progress);
    let mut outcome = lhp.outcome();
    outcome.parameter("cassata", env!("CARGO_PKG_VERSION"));
    say(&lhp.summary(&outcome));
    let files = lhp.files();
    // Of another extent, or of another hypervisor.
    directory.clear_of("svg", |name| files.iter().any(|(kept, _)| kept == name))?;
    for (name, content) in &files {
        directory.write(name, content.as_bytes())?;
    }
    write_results(&directory, &outcome, &lhp.report(&outcome))?;
    Ok(outcome.exit_code(arguments.report_only))
}

fn extent(arguments: &Arguments) -> Extent {
    if arguments.quick { Extent::Quick } else { Extent::Full }
}

fn bench_vtime(arguments: &Arguments, interrupt: &Interrupt) -> Result<u8> {
    no_point(arguments)?;
    let directory = Directory::create(&place::results(), "vtime")?;
    let bench = room(&directory, interrupt)?;
    let mut progress = Progress::new("bench vtime");
    let vtime = vtime::measure(extent(arguments), arguments.fresh, &bench, &mut progress)?;
    drop(progress);
    let mut outcome = vtime.outcome();
    outcome.parameter("cassata", env!("CARGO_PKG_VERSION"));
    say(&vtime.summary(&outcome));
    write_results(&directory, &outcome, &vtime.report(&outcome))?;
    Ok(outcome.exit_code(arguments.report_only))
}

/// What a bench runs with; its machines' files go to `directory`.
fn room(directory: &Directory, interrupt: &Interrupt) -> Result<Bench> {
    Ok(Bench {
        root: place::root()?,
        directory: directory.path().into(),
        hypervisor: crate::HYPERVISOR,
        instrument: place::instrument()?,
        qemu: Qemu::find()?,
        interrupt: interrupt.clone(),
    })
}
