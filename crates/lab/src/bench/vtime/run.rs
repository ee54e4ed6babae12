//! Runs one case.

use super::busy::Busy;
use super::case::{Case, Mode};
use super::figures::{self, Figures};
use crate::bench::store::Measured;
use crate::console::{ConsoleConfig, Cursor};
use crate::machine::{HostUse, Machine};
use crate::suite::Bench;
use miette::{Result, WrapErr, miette};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::{Duration, Instant};
use vtime::stats::Statistics;

/// How often Ctrl-C is looked for, and what the machine has used.
const LOOK: Duration = Duration::from_millis(100);
/// Real time for one machine: long for the longest on a busy host, short for a
/// hang.
const LIMIT: Duration = Duration::from_secs(3_600);

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

/// Runs `case` with logs in `directory`, which exists, and tells how far it is.
///
/// # Errors
/// When the machine fails, the guest does not do its work, or Ctrl-C comes.
pub fn run(
    case: &Case,
    bench: &Bench,
    directory: &Path,
    tell: &mut dyn FnMut(&str),
) -> Result<Measurement> {
    let config = case.machine(bench, directory)?;
    let consoles = ConsoleConfig::plain("guest", Some(directory.into()));
    let busy = case.busy_host.then(Busy::start);
    let start = Instant::now();
    let mut machine = Machine::start(&bench.qemu, &config, &consoles)?;
    let mut used = HostUse::default();
    while !machine.ended_within(LOOK)? {
        if bench.interrupt.requested() {
            return Err(miette!("interrupted"));
        }
        if start.elapsed() > LIMIT {
            return Err(miette!("it has not come to its end within {} s", LIMIT.as_secs()));
        }
        used = machine.host_use().unwrap_or_default().at_least(used);
        let virtual_s = machine.statistics().map(|counts| seconds(counts.virtual_ns));
        let passed = virtual_s.map_or_else(String::new, |s| format!(" for {s:.2} s"));
        let real_s = start.elapsed().as_secs_f64();
        tell(&format!("{real_s:.0} s{passed}"));
    }
    let real_s = start.elapsed().as_secs_f64();
    drop(busy);
    let lines = machine.consoles().follow(&mut Cursor::default(), Duration::ZERO);
    let console: Vec<_> = lines.into_iter().map(|line| line.text).collect();
    let statistics = machine.statistics().filter(|counts| counts.finished);
    if statistics.is_none() && case.mode != Mode::Plain {
        return Err(miette!("the instrument left no complete statistics"));
    }
    let figures = figures::read(case, &console)
        .wrap_err_with(|| format!("console: {}", directory.join("console-guest.log").display()))?;
    Ok(Measurement {
        case: *case,
        real_s,
        cores_s: used.cores.as_secs_f64(),
        main_loop_s: used.main_loop.as_secs_f64(),
        waited_s: used.waited.as_secs_f64(),
        statistics,
        figures,
    })
}

impl Measured for Measurement {
    type Case = Case;

    fn case(&self) -> &Case {
        &self.case
    }

    fn real_s(&self) -> f64 {
        self.real_s
    }
}

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
