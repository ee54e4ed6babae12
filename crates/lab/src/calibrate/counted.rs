//! The system in virtual time on QEMU's model of the board.

use super::described::{PROBE, Plan};
use super::paths::{PATHS, Path, acts};
use crate::bench::visits::Visits;
use crate::bench::{ProgressView, Tell};
use crate::guests::Measurement;
use crate::machine::Time;
use crate::session::{Run, Session};
use crate::suite::Bench;
use miette::{Result, miette};
use std::collections::BTreeMap;
use std::time::Duration;
use vtime::stats::Statistics;

/// Virtual time for a machine: the whole measurement needs less than one second.
const LIMIT: Duration = Duration::from_secs(20);
/// How often each path is provoked where its instructions are counted. Each time it takes the same.
const COUNTED: u64 = 200;
/// Instructions at EL2 of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counted {
    /// The mean where all visits are timed, else the median of the longest of each time.
    pub typical: f64,
    /// The longest visit that came more than once.
    pub longest: u64,
}

/// Instructions of each path, by its name.
pub type Counts = BTreeMap<&'static str, Counted>;

/// Measures in virtual time, with all files in the directory of `bench`.
///
/// # Errors
/// When the machine does not run, or the measurement is not whole.
pub fn measure(plan: &Plan, bench: &Bench, tell: Tell<'_>) -> Result<Measurement> {
    let run = boot(plan, "calibrate", bench, tell)?;
    let said = &run.said.guests[PROBE].calibration;
    said.measurement().map_err(|(why, _)| {
        miette!(help = console(bench), "it could not be measured: {why} ({})", run.end.about())
    })
}

/// Counts the instructions of each path, with two machines for each act. `tell` hears which.
///
/// # Errors
/// When a machine does not run, or a path was not seen as often as it was provoked.
pub fn count(plan: &Plan, bench: &Bench, tell: Tell<'_>) -> Result<Counts> {
    let plan = Plan { cold: 0, ..*plan };
    let mut all = Counts::new();
    let acts = acts();
    for (number, act) in acts.iter().enumerate() {
        let mut tell =
            |what: &str| tell(&format!("{act}, {} of {}, {what}", number + 1, acts.len()));
        let mut count = |repetitions| visit(&Plan { repetitions, ..plan }, act, bench, &mut tell);
        let (once, twice) = (count(COUNTED)?, count(2 * COUNTED)?);
        for path in PATHS.iter().filter(|path| path.act == *act) {
            all.insert(path.name, counted(path, &once, &twice)?);
        }
    }
    Ok(all)
}

/// Returns what `twice` has more than `once`: the path, so many times, and nothing that a guest prints or does
/// when it begins.
fn counted(path: &Path, once: &Statistics, twice: &Statistics) -> Result<Counted> {
    let of = |counts| Visits::on(path.pcpu, path.exception, counts);
    let visits = of(twice).beyond(&of(once));
    // Replenishments are fewer, a tenth, and some are as long as what all machines do.
    if visits.count() < COUNTED / 20 {
        return Err(miette!(
            "path `{}` was seen {} times in {COUNTED} repetitions",
            path.name,
            visits.count()
        ));
    }
    // One that came once is none of the path's.
    let longest = visits.iter().filter(|&(_, times)| times > 1).map(|(length, _)| length).max();
    let median = visits.largest_of(path.each_time).unwrap_or_default();
    let typical = visits.mean().filter(|_| path.is_all).unwrap_or_else(|| f64::from(median));
    Ok(Counted { typical, longest: longest.unwrap_or(median).into() })
}

/// Boots a machine whose probe does one act.
fn visit(plan: &Plan, act: &str, bench: &Bench, tell: Tell<'_>) -> Result<Statistics> {
    let run = boot(plan, &format!("calibrate.{act}"), bench, tell)?;
    let passed = run.said.guests[PROBE].probe.passed.contains_key(&format!("calibrate.{act}"));
    run.instrument.filter(|counts| passed && counts.finished).ok_or_else(|| {
        miette!(help = console(bench), "act `{act}` could not be counted: {}", run.end.about())
    })
}

fn boot(plan: &Plan, what: &str, bench: &Bench, tell: Tell<'_>) -> Result<Run> {
    let bundle = bench.pack(&plan.system(what, &bench.hypervisor, &bench.root)?)?;
    let time = Time::Virtual(bench.virtual_time()?);
    let run = Session::of(&bundle, &bench.qemu, &time, &bench.directory)
        .within(LIMIT)
        // What budgets give is looked at elsewhere.
        .held_every(crate::session::PERIOD)
        .interrupted_by(bench.interrupt.clone())
        .shown_by(Box::new(ProgressView(tell)))
        .run(|now| now.observer.is_over(PROBE))?;
    run.without_faults()?;
    std::fs::remove_file(bench.image())
        .map_err(|error| miette!("cannot remove {}: {error}", bench.image().display()))?;
    Ok(run)
}

fn console(bench: &Bench) -> String {
    format!("its console: {}", bench.directory.join("console-calibrate.log").display())
}
