//! `cassata bench` and `cassata demo`.

use super::{interrupt, publish, say};
use crate::cli::Asked;
use crate::messages::note;
use crate::place;
use lab::interrupt::EXIT_CODE;
use lab::qemu::Qemu;
use lab::results::Directory;
use lab::suite::Bench;
use miette::Result;

/// Conducts an experiment, and compares what it answers with goals.
pub fn bench(Asked { experiment, options, answer: asked }: &Asked) -> Result<u8> {
    experiment.check(options)?;
    let interrupt = interrupt()?;
    let directory = Directory::create(&place::results(), experiment.label().name)?;
    let room = Bench {
        root: place::root()?,
        directory: directory.path().into(),
        hypervisor: crate::HYPERVISOR,
        instrument: place::instrument()?,
        qemu: Qemu::find()?,
        interrupt: interrupt.clone(),
        records: None,
    };
    let answer = match experiment.conduct(options, &room) {
        Err(_) if interrupt.requested() => {
            note("interrupted; what has been measured is kept, and another call goes on there");
            return Ok(EXIT_CODE);
        }
        answer => answer?,
    };
    publish(&answer, &format!("\n{}", answer.summary()), &directory)?;
    if asked.write_docs && !interrupt.requested() {
        let documents = answer.write_documents(&room.root)?;
        documents.iter().for_each(|document| say(&document.display().to_string()));
    }
    Ok(answer.outcome.exit_code(asked.report_only))
}
