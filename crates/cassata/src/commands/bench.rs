//! `cassata bench`.

use super::{conclude, interrupt};
use crate::cli::Bench as Arguments;
use crate::messages::note;
use crate::place;
use lab::bench::{self, Extent, Request};
use lab::interrupt::EXIT_CODE;
use lab::progress::Progress;
use lab::qemu::Qemu;
use lab::results::Directory;
use lab::suite::Bench;
use miette::{Result, miette};

/// Measures, and compares with goals.
pub fn bench(arguments: &Arguments) -> Result<u8> {
    let name = arguments.subject.as_str();
    let experiment = bench::all().into_iter().find(|one| one.name() == name);
    let experiment = experiment.ok_or_else(|| miette!("there is no bench `{name}`"))?;
    let request = Request {
        extent: if arguments.quick { Extent::Quick } else { Extent::Full },
        fresh: arguments.fresh,
        only: arguments.point.clone(),
    };
    experiment.check(&request)?;
    let interrupt = interrupt()?;
    let directory = Directory::create(&place::results(), name)?;
    let room = Bench {
        root: place::root()?,
        directory: directory.path().into(),
        hypervisor: crate::HYPERVISOR,
        instrument: place::instrument()?,
        qemu: Qemu::find()?,
        interrupt: interrupt.clone(),
    };
    let mut progress = Progress::new(&format!("bench {name}"));
    let answer = experiment.conduct(&request, &room, &mut progress);
    drop(progress);
    if interrupt.requested() {
        note("interrupted; what has been measured is kept, and another call goes on there");
        return Ok(EXIT_CODE);
    }
    let answer = answer?;
    conclude(&answer, &answer.summary(), &directory, arguments.write_docs)?;
    Ok(answer.outcome.exit_code(arguments.report_only))
}
