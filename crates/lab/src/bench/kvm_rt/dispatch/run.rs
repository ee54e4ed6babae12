//! Runs a case until `cyclictest` has told everything.

use super::super::pair::{CONTROL, LINUX};
use super::super::program::Program;
use super::case::{Case, Place, period_us};
use super::machine;
use crate::bench::store::measured;
use crate::bench::{ProgressView, Tell};
use crate::guests::LinuxProgress;
use crate::machine::Time;
use crate::observe::Distribution;
use crate::session::Session;
use crate::suite::Bench;
use miette::{Result, ensure};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Virtual time for the machine beyond that of the wake-ups: many times what the longest needs.
const LIMIT: Duration = Duration::from_secs(60);
/// How often a machine is held to be judged.
const PERIOD: Duration = Duration::from_millis(5);

/// What a run brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    pub case: Case,
    pub real_s: f64,
    pub virtual_s: f64,
    /// From when the timer was due until the process ran, ns.
    pub latencies: Distribution,
}

measured!(Seen, case: Case, real_s);

impl Seen {
    /// Returns how many periods `cyclictest` slept through: after a late wake-up it goes on with the next that is to come, so
    /// those are in none of the other figures.
    pub fn missed(&self) -> u64 {
        crate::guests::missed_periods(&self.latencies, period_us(self.case.load) * 1_000)
    }
}

/// Runs `case` with its files in the directory of `bench`, and tells how far it is.
///
/// # Errors
/// When the machine fails, a guest does not do its work, or Ctrl-C comes.
pub fn run(case: &Case, bench: &Bench, tell: Tell<'_>) -> Result<Seen> {
    let wakes = Duration::from_micros(u64::from(case.wakes) * u64::from(period_us(case.load)));
    let limit = LIMIT + 2 * wakes;
    let session = match case.place {
        Place::Board => {
            let mut config = machine::board(case, &bench.root);
            config.time = Time::Virtual(bench.virtual_time()?);
            let plain = Session::plain(config, "control", &bench.qemu, &bench.directory);
            plain.interrupted_by(bench.interrupt.clone()).within(limit)
        }
        _ => {
            let system = bench.kept(&machine::description(case, &bench.root))?;
            bench.session(&bench.pack(&system)?, limit)?
        }
    };
    let mut is_early = false;
    let session = session.held_every(PERIOD).shown_by(Box::new(ProgressView(tell)));
    let run = session.run(|now| {
        let of = |vm: usize| now.said.guests.get(vm).map(|guest| &guest.linux);
        let (control, linux) = (of(CONTROL), of(LINUX));
        is_early |= control.is_some_and(|control| control.busy)
            && linux.is_some_and(|linux| !is_at(case.load, linux));
        let over = |guest: &LinuxProgress| guest.failed.is_some();
        is_early
            || control.is_some_and(|guest| guest.done || over(guest))
            || linux.is_some_and(over)
    })?;
    ensure!(!bench.interrupt.requested(), "interrupted");
    ensure!(
        !is_early,
        "cyclictest began before the other Linux had set to work: BEGIN in \
         crates/lab/src/bench/kvm_rt/dispatch/machine.rs is too short for this Linux"
    );
    run.without_faults()?;
    let guests = &run.said.guests;
    let latencies = guests[CONTROL].linux.latencies_ns.clone();
    if latencies.count() != u64::from(case.wakes) {
        let failed = guests.iter().find_map(|guest| guest.linux.failed.clone());
        let failed = failed.map_or_else(String::new, |failed| format!(", {failed}"));
        let count = latencies.count();
        return Err(run.unfinished(&format!("cyclictest told of {count} wake-ups{failed}")));
    }
    Ok(Seen {
        case: *case,
        real_s: run.elapsed.as_secs_f64(),
        virtual_s: run.virtual_time().unwrap_or_default().as_secs_f64(),
        latencies,
    })
}

/// Returns true if the other Linux does what it is to do all the time.
fn is_at(load: Program, linux: &LinuxProgress) -> bool {
    match load {
        Program::Idle => linux.done,
        _ => !load.times_s(linux).is_empty(),
    }
}
