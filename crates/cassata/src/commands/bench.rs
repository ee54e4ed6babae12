//! `cassata bench`.

use super::{interrupt, say, write_results};
use crate::cli::{Bench as Arguments, Subject};
use crate::place;
use lab::bench::el2;
use lab::interrupt::{EXIT_CODE, Interrupt};
use lab::progress::Progress;
use lab::qemu::Qemu;
use lab::results::Directory;
use lab::suite::Bench;
use miette::Result;

/// Measures, and compares with goals.
pub fn bench(arguments: &Arguments) -> Result<u8> {
    let interrupt = interrupt()?;
    let result = match arguments.subject {
        Subject::El2 => bench_el2(arguments, &interrupt),
    };
    if interrupt.requested() { Ok(EXIT_CODE) } else { result }
}

fn bench_el2(arguments: &Arguments, interrupt: &Interrupt) -> Result<u8> {
    let (qemu, instrument) = (Qemu::find()?, place::instrument()?);
    let directory = Directory::create(&place::results(), "el2")?;
    let bench = Bench {
        root: place::root()?,
        directory: directory.path().into(),
        hypervisor: crate::HYPERVISOR,
        instrument,
        qemu: qemu.clone(),
        interrupt: interrupt.clone(),
    };
    let mut progress = Progress::new("bench el2");
    let el2 = el2::measure(&bench, &mut progress)?;
    drop(progress);
    let mut outcome = el2.outcome();
    outcome.parameter("cassata", env!("CARGO_PKG_VERSION"));
    outcome.parameter("qemu", qemu.version().to_string());
    say(&el2.summary(&outcome));
    write_results(&directory, &outcome, &el2.report())?;
    Ok(outcome.exit_code(arguments.report_only))
}
