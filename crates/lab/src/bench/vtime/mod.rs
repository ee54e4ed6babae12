//! Whether virtual time is what it should be: repeatable, exact, and not too
//! dear.
//!
//! | module | story |
//! | --- | --- |
//! | [`case`] | one run of a machine |
//! | [`matrix`] | all runs |
//! | [`run`], [`busy`] | running one, beside other work if need be |
//! | [`figures`] | what a guest found |
//! | [`basis`] | what measurements depend on |
//! | [`checks`], [`hackbench`] | what must hold |
//! | [`tables`], [`report`] | for people |
//! | [`repeats`] | the same in short, as a test |

pub mod basis;
mod busy;
pub mod case;
mod checks;
pub mod figures;
mod hackbench;
pub mod matrix;
mod repeats;
mod report;
pub mod run;
mod tables;

use super::Extent;
use super::campaign::{Campaign, make};
use super::store::{Named, Store};
use crate::progress::Progress;
use crate::results::Outcome;
use crate::suite::Bench;
use basis::Basis;
use case::Case;
use miette::Result;
pub use repeats::scenario;
use run::Measurement;
use serde_json::json;

/// Everything that was measured.
#[derive(Debug)]
pub struct Vtime {
    planned: Vec<Case>,
    measurements: Vec<Measurement>,
    /// Cases that brought nothing, and why.
    failures: Vec<(Case, String)>,
    basis: Option<Basis>,
}

/// Measures: some minutes if quick, else an hour or so on two processors.
/// Cases that an earlier bench has measured, on the same QEMU with the same
/// instrument and guests, are not measured again unless `fresh`.
///
/// # Errors
/// When files cannot be read or written, and on Ctrl-C. A case that fails is no
/// error: its goals are not met.
pub fn measure(
    extent: Extent,
    fresh: bool,
    bench: &Bench,
    progress: &mut Progress,
) -> Result<Vtime> {
    let directory = bench.directory.join("cases");
    make(&directory)?;
    let store = Store::new(directory, Basis::of(bench)?);
    let planned = matrix::cases(extent);
    // Real time is measured as well: nothing runs beside.
    let interrupt = &bench.interrupt;
    let campaign = Campaign { store: &store, fresh, side_by_side: 1, interrupt };
    let found = campaign
        .run(&planned, progress, |case: &Case, logs, tell| run::run(case, bench, logs, tell))?;
    let mut vtime = Vtime::of(planned, found.measurements);
    vtime.failures = found.failures;
    vtime.basis = Some(Basis::of(bench)?);
    Ok(vtime)
}

impl Vtime {
    fn of(planned: Vec<Case>, measurements: Vec<Measurement>) -> Self {
        Self { planned, measurements, failures: Vec::new(), basis: None }
    }

    /// Figures and checks.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let mut outcome = Outcome::new("vtime");
        if let Some(basis) = &self.basis {
            basis.common.record(&mut outcome);
            outcome.parameter("metronome_crc32", basis.metronome.clone());
        }
        let host_cores = std::thread::available_parallelism().map_or(0, usize::from);
        outcome.parameter("host_cores", host_cores);
        outcome.parameter("cases", self.planned.len());
        let failures = self.failures.iter();
        let failures = failures.map(|(case, why)| json!({ "case": case.name(), "why": why }));
        outcome.figure("failures", failures.collect::<Vec<_>>());
        let cases = self.measurements.iter().map(|m| (m.case.name(), json!(m)));
        outcome.figure("cases", cases.collect::<serde_json::Map<_, _>>());
        self.checks().into_iter().for_each(|check| outcome.check(check));
        outcome
    }
}
