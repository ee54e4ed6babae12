//! Runs one case.

use super::case::{Case, Mode};
use super::figures::{self, Figures};
use crate::bench::store::measured;
use crate::bench::{ProgressView, Tell};
use crate::session::{End, Session};
use crate::suite::{Bench, Busy};
use miette::{Result, WrapErr, miette};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use vtime::stats::Statistics;

/// Time for one machine, its own: many times what the longest needs.
const LIMIT: Duration = Duration::from_secs(600);
/// How often a machine in virtual time is held, which takes a thousandth of its real time.
const PERIOD: Duration = Duration::from_millis(10);

/// What a run brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The run.
    pub case: Case,
    /// Real time from start to end, in seconds.
    pub real_s: f64,
    /// Processor time of the cores' threads, in seconds.
    pub cores_s: f64,
    /// Processor time of QEMU's main loop, in seconds.
    pub main_loop_s: f64,
    /// How long threads waited for a processor of the host, in seconds.
    pub waited_s: f64,
    /// The instrument's statistics, unless the run was plain.
    pub statistics: Option<Statistics>,
    /// What the guest found.
    pub figures: Figures,
}

/// Runs `case` with logs in the directory of `bench`, and says how far it is.
///
/// # Errors
/// When the machine fails, the guest does not do its work, or Ctrl-C comes.
pub fn run(case: &Case, bench: &Bench, tell: Tell<'_>) -> Result<Measurement> {
    let directory = &bench.directory;
    let session = Session::plain(case.machine(bench, directory)?, "guest", &bench.qemu, directory);
    // It ends itself, and nothing is judged before.
    let session = session.within(LIMIT).held_every(PERIOD).shown_by(Box::new(ProgressView(tell)));
    let busy = case.busy_host.then(Busy::start);
    let run = session.interrupted_by(bench.interrupt.clone()).run(|_| false)?;
    drop(busy);
    if run.end != End::PoweredOff {
        return Err(miette!("{}", run.end.about()));
    }
    let statistics = run.instrument.filter(|counts| counts.finished);
    if statistics.is_none() && case.mode != Mode::Plain {
        return Err(miette!("the instrument left no complete statistics"));
    }
    let figures = figures::read(case, &run.said.guests[0])
        .wrap_err_with(|| format!("console: {}", directory.join("console-guest.log").display()))?;
    let used = run.host.unwrap_or_default();
    Ok(Measurement {
        case: *case,
        real_s: run.elapsed.as_secs_f64(),
        cores_s: used.cores.as_secs_f64(),
        main_loop_s: used.main_loop.as_secs_f64(),
        waited_s: used.waited.as_secs_f64(),
        statistics,
        figures,
    })
}

measured!(Measurement, case: Case, real_s);

impl Measurement {
    /// Processor time of all threads, in seconds.
    #[must_use]
    pub fn processor_s(&self) -> f64 {
        self.cores_s + self.main_loop_s
    }

    /// Virtual time that passed, in seconds; nothing in a plain run.
    #[must_use]
    pub fn virtual_s(&self) -> Option<f64> {
        self.statistics.as_ref().map(|counts| seconds(counts.virtual_ns))
    }

    /// Instructions of all cores; nothing in a plain run.
    #[must_use]
    pub fn instructions(&self) -> Option<u64> {
        let counts = self.statistics.as_ref()?;
        Some(counts.vcpus.iter().map(|vcpu| vcpu.instructions).sum())
    }
}

fn seconds(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64()
}

#[cfg(test)]
impl Measurement {
    /// One that only has `figures` and took `real_s`.
    pub(super) fn bare(case: Case, real_s: f64, figures: Figures) -> Self {
        let (cores_s, main_loop_s, waited_s) = (real_s, 0.0, 0.0);
        Self { case, real_s, cores_s, main_loop_s, waited_s, statistics: None, figures }
    }
}
