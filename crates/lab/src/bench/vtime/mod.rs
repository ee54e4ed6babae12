//! Whether virtual time is what it should be: repeatable, exact, and not too
//! dear.
//!
//! | module | story |
//! | --- | --- |
//! | [`case`] | one run of a machine |
//! | [`matrix`] | all runs |
//! | [`run`], [`busy`] | running one, beside other work if need be |
//! | [`figures`], [`sample`] | what a guest found |
//! | [`store`] | what has been measured already |
//! | [`checks`], [`hackbench`] | what must hold |
//! | [`tables`], [`report`] | for people |
//! | [`repeats`] | the same in short, as a test |

mod busy;
pub mod case;
mod checks;
pub mod figures;
mod hackbench;
pub mod matrix;
mod repeats;
mod report;
pub mod run;
pub mod sample;
pub mod store;
mod tables;

use crate::progress::Progress;
use crate::results::Outcome;
use crate::suite::Bench;
use case::Case;
pub use matrix::Extent;
use miette::{IntoDiagnostic, Result, WrapErr};
pub use repeats::scenario;
use run::Measurement;
use serde_json::json;
use std::fs;
use store::{Basis, Store};

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
    let store = Store::new(directory.clone(), Basis::of(bench)?);
    let mut vtime = Vtime::of(extent.cases(), Vec::new());
    for (index, case) in vtime.planned.iter().enumerate() {
        if let Some(known) = store.find(case).filter(|_| !fresh) {
            vtime.measurements.push(known);
            continue;
        }
        let logs = directory.join(case.name());
        make(&logs)?;
        let place = format!("{} of {}", index + 1, vtime.planned.len());
        match run::run(case, bench, &logs, &place, progress) {
            Ok(measurement) => {
                store.keep(&measurement)?;
                progress.line(&format!("{} ... {:.1} s", case.name(), measurement.real_s));
                vtime.measurements.push(measurement);
            }
            Err(error) if bench.interrupt.requested() => return Err(error),
            Err(error) => {
                progress.line(&format!("{} ... FAILED: {error:?}", case.name()));
                vtime.failures.push((*case, format!("{error:?}")));
            }
        }
    }
    vtime.basis = Some(store.basis().clone());
    Ok(vtime)
}

fn make(directory: &std::path::Path) -> Result<()> {
    let made = fs::create_dir_all(directory).into_diagnostic();
    made.wrap_err_with(|| format!("cannot make {}", directory.display()))
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
            outcome.parameter("qemu", basis.qemu.clone());
            outcome.parameter("instrument_crc32", basis.instrument.clone());
            outcome.parameter("linux_crc32", basis.linux.clone());
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
