//! `cassata bench` and `cassata demo`.

use super::{interrupt, publish, say};
use crate::cli::{Asked, Common};
use crate::messages::note;
use crate::place;
use lab::bench::{Conduct, Points};
use lab::interrupt::{EXIT_CODE, Interrupt};
use lab::qemu::Qemu;
use lab::results::Directory;
use lab::suite::Bench;
use miette::{IntoDiagnostic, Result, miette};
use serde::Serialize;
use std::path::{self, Path, PathBuf};

/// Conducts an experiment, and compares what it answers with goals; or does a part of that.
pub fn bench(asked: &Asked) -> Result<u8> {
    let Asked { experiment, options, answer: wanted, part } = asked;
    experiment.check(options)?;
    let (interrupt, results) = (interrupt()?, results(&wanted.common)?);
    let name = experiment.directory(options);
    if part.list_points {
        let bench = room(&results.join(name), interrupt)?;
        return list(*experiment, experiment.points(options, &bench)?);
    }
    if let Some(point) = &part.run_point {
        let directory = Directory::share(&results, name)?;
        let bench = room(directory.path(), interrupt.clone())?;
        return Ok(match ended(&interrupt, experiment.measure(options, point, &bench))? {
            None => EXIT_CODE,
            Some(None) => 0,
            Some(Some(why)) => {
                note(&format!("{point} brought nothing: {why}"));
                1
            }
        });
    }
    let directory = Directory::create(&results, name)?;
    let bench = room(directory.path(), interrupt.clone())?;
    let conduct = if part.merge { Conduct::merge } else { Conduct::conduct };
    let Some(answer) = ended(&interrupt, conduct(*experiment, options, &bench))? else {
        return Ok(EXIT_CODE);
    };
    publish(&answer, &format!("\n{}", answer.summary()), &directory)?;
    if wanted.write_docs && !interrupt.requested() {
        let documents = answer.write_documents(&bench.root)?;
        documents.iter().for_each(|document| say(&document.display().to_string()));
    }
    Ok(answer.outcome.exit_code(wanted.common.report_only))
}

/// Returns what came of it, or `None`, and says so, if Ctrl-C has ended it.
fn ended<T>(interrupt: &Interrupt, result: Result<T>) -> Result<Option<T>> {
    if result.is_err() && interrupt.requested() {
        note("interrupted; what has been measured is kept, and another call goes on there");
        return Ok(None);
    }
    result.map(Some)
}

/// Returns the directory of all results, which need not be there.
pub(super) fn results(asked: &Common) -> Result<PathBuf> {
    let Some(results) = &asked.results else { return Ok(place::results()) };
    path::absolute(results).map_err(|error| {
        miette!(help = "name a directory", "--results {}: {error}", results.display())
    })
}

/// Gathers what an experiment runs with.
pub fn room(directory: &Path, interrupt: Interrupt) -> Result<Bench> {
    Ok(Bench {
        root: place::root()?,
        directory: directory.into(),
        hypervisor: crate::HYPERVISOR,
        instrument: place::instrument()?,
        qemu: Qemu::find()?,
        interrupt,
        records: None,
    })
}

/// The points of an experiment, as programs read them.
#[derive(Serialize)]
struct List {
    bench: &'static str,
    /// All of it is one point, which `--merge` runs.
    whole: bool,
    #[serde(flatten)]
    points: Points,
}

fn list(experiment: &dyn Conduct, points: Option<Points>) -> Result<u8> {
    let (bench, whole) = (experiment.label().name, points.is_none());
    let points = points.unwrap_or(Points { alone: true, points: Vec::new() });
    let list = List { bench, whole, points };
    say(&serde_json::to_string_pretty(&list).into_diagnostic()?);
    Ok(0)
}
