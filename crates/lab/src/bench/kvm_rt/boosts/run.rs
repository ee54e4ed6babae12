//! Runs a case until both guests have told enough.

use super::super::pair::{CONTROL, LINUX};
use super::super::program::Program;
use super::case::{Case, Control};
use super::machine;
use crate::bench::sample::Sample;
use crate::bench::store::measured;
use crate::bench::{ProgressView, Tell};
use crate::guests::{LinuxProgress, Wakes};
use crate::observe::{Observer, Rises};
use crate::suite::Bench;
use miette::{Result, ensure};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Virtual time for the machine: several times what the longest needs.
const LIMIT: Duration = Duration::from_secs(90);
/// How often a machine is held to be judged.
const PERIOD: Duration = Duration::from_millis(5);

/// What a run brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    pub case: Case,
    pub real_s: f64,
    pub virtual_s: f64,
    /// How late the real-time process was.
    pub wakes: Wakes,
    /// When its longest latency rose, ns.
    pub rises: Rises,
    /// Periods in which it did not begin. FreeRTOS makes up for them. Linux does not, and tells no more than its longest
    /// latency of each [`machine::wakes_at_once`]: it missed those, and maybe others where it missed any.
    pub missed: u64,
    /// Time of each run of the other guest's program but the first, seconds.
    pub runs: Sample,
}

measured!(Seen, case: Case, real_s);

/// Runs `case` with its files in the directory of `bench`, and tells how far it is.
///
/// # Errors
/// When the machine fails, a guest does not do its work, or Ctrl-C comes.
pub fn run(case: &Case, bench: &Bench, tell: Tell<'_>) -> Result<Seen> {
    let system = bench.kept(&machine::description(case, &bench.root))?;
    let bundle = bench.pack(&system)?;
    let session = bench.session(&bundle, LIMIT)?.held_every(PERIOD);
    let session = session.with_qemu_arguments(case.program.qemu_arguments());
    let mut is_early = false;
    let run = session.shown_by(Box::new(ProgressView(tell))).run(|now| {
        let of = |vm: usize| now.said.guests.get(vm).map(|guest| &guest.linux);
        let (Some(control), Some(linux)) = (of(CONTROL), of(LINUX)) else { return false };
        let wakes = wakes(case, control, now.observer);
        let is_awake = control.busy || wakes.is_some();
        is_early |= !runs(case, linux).0.is_empty() && !is_awake;
        is_early |= case.program == Program::Idle && !linux.done && wakes.is_some();
        let has_failed = |guest: &LinuxProgress| guest.failed.is_some();
        is_early || has_failed(control) || has_failed(linux) || has_enough(case, wakes, linux)
    })?;
    ensure!(!bench.interrupt.requested(), "interrupted");
    ensure!(
        !is_early,
        "the program and the real-time process began in the wrong order: BEGIN or START_MS in \
         crates/lab/src/bench/kvm_rt/boosts/machine.rs is too short for this Linux"
    );
    run.without_faults()?;
    let guests = &run.said.guests;
    let (control, linux) = (&guests[CONTROL].linux, &guests[LINUX].linux);
    let wakes = wakes(case, control, &run.observer);
    let wakes = wakes.filter(|_| has_enough(case, wakes, linux)).ok_or_else(|| {
        let failed = control.failed.as_ref().or(linux.failed.as_ref());
        let failed = failed.map_or_else(String::new, |failed| format!(", {failed}"));
        run.unfinished(&format!("the guests did not do their work{failed}"))
    })?;
    Ok(Seen {
        case: *case,
        real_s: run.elapsed.as_secs_f64(),
        virtual_s: run.virtual_time().unwrap_or_default().as_secs_f64(),
        wakes,
        rises: rises(case, control, &run.observer),
        missed: missed(case, control, &run.observer),
        runs: counted(case, linux),
    })
}

fn runs(case: &Case, linux: &LinuxProgress) -> Sample {
    Sample(case.program.times_s(linux).to_vec())
}

/// Returns the times that count: as many as were asked for, however long the machine ran on.
fn counted(case: &Case, linux: &LinuxProgress) -> Sample {
    Sample(runs(case, linux).steady().0.into_iter().take(case.runs as usize).collect())
}

fn has_enough(case: &Case, wakes: Option<Wakes>, linux: &LinuxProgress) -> bool {
    let wakes = wakes.map_or(0, |wakes| wakes.count);
    let has_run =
        case.program == Program::Idle || counted(case, linux).0.len() == case.runs as usize;
    has_run && wakes >= case.wakes
}

/// Returns how late the real-time process was: from when its timer was due until it ran.
fn wakes(case: &Case, linux: &LinuxProgress, observer: &Observer) -> Option<Wakes> {
    match case.control {
        Control::Linux => linux.all_wakes(),
        Control::Freertos => {
            let dispatch = &observer.reports(CONTROL)?.dispatch;
            Some(Wakes {
                count: dispatch.count(),
                min_ns: dispatch.min()?.into(),
                mean_ns: dispatch.mean()?.round() as u64,
                max_ns: dispatch.max()?.into(),
            })
        }
    }
}

/// Returns when the longest latency of the real-time process rose; a Linux tells of many wake-ups at once.
fn rises(case: &Case, linux: &LinuxProgress, observer: &Observer) -> Rises {
    match case.control {
        Control::Linux => {
            let mut rises = Rises::default();
            linux.wakes.iter().for_each(|wakes| rises.record_many(wakes.count, wakes.max_ns));
            rises
        }
        Control::Freertos => {
            let reports = observer.reports(CONTROL);
            reports.map(|reports| reports.dispatch_rises.clone()).unwrap_or_default()
        }
    }
}

/// Returns in how many periods the real-time process did not begin, of Linux at least.
fn missed(case: &Case, linux: &LinuxProgress, observer: &Observer) -> u64 {
    match case.control {
        Control::Linux => linux.wakes.iter().map(periods_missed).sum(),
        Control::Freertos => {
            let header = observer.reports(CONTROL).and_then(|reports| reports.header);
            header.map_or(0, |header| header.missed)
        }
    }
}

/// Returns how many periods passed in the longest latency of a run of `cyclictest`, which goes on with the next.
fn periods_missed(wakes: &Wakes) -> u64 {
    wakes.max_ns / (u64::from(machine::PERIOD_US) * 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_of_many_periods_misses_as_many() {
        let missed = |max_ns| {
            let wakes = Wakes { count: 250, min_ns: 5_000, mean_ns: 6_000, max_ns };
            periods_missed(&wakes)
        };
        assert_eq!([1_008_999, 1_009_000, 99_100_000].map(missed), [0, 1, 98]);
    }
}
