//! Runs a case, and reads what its guests say.

use super::case::{Case, Load, Measure};
use super::system::System;
use super::{bao, machine};
use crate::bench::sample::Sample;
use crate::bench::store::measured;
use crate::bench::{ProgressView, Tell};
use crate::guests::{Guest, LinuxProgress, WakerProgress};
use crate::observe::Distribution;
use crate::suite::Bench;
use miette::{Result, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a run brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    pub case: Case,
    pub real_s: f64,
    pub virtual_s: f64,
    /// What the guest measured, nanoseconds, by what it calls it.
    pub values_ns: BTreeMap<String, Distribution>,
    /// Periods in which the guest did not wake in time.
    pub missed: u64,
    /// What Linux's work took, seconds, in the order of the runs.
    pub runs: Sample,
    /// Bytes of the hypervisor's own code and data, where it was built for the run.
    #[serde(default)]
    pub own_bytes: Option<u64>,
}

measured!(Seen, case: Case, real_s);

/// Runs `case` with its files in the directory of `bench`, and tells how far it is.
///
/// # Errors
/// When the machine fails, a guest does not do its work, or Ctrl-C comes.
pub fn run(case: &Case, bench: &Bench, tell: Tell<'_>) -> Result<Seen> {
    let session = machine::session(case, bench)?.shown_by(Box::new(ProgressView(tell)));
    let mut is_early = false;
    let run = session.run(|now| {
        let (linux, waker) = guests(&now.said.guests);
        is_early |= begins_early(case, linux, waker);
        is_early || is_over(case, linux, waker)
    })?;
    ensure!(!bench.interrupt.requested(), "interrupted");
    ensure!(
        !is_early,
        "the guest began before Linux had set to work: `begin_ms` in \
         crates/lab/src/bench/peers/machine.rs is too short for this Linux"
    );
    let (linux, waker) = guests(&run.said.guests);
    let (runs, values_ns, missed) =
        found(case, linux, waker).map_err(|why| run.unfinished(&why))?;
    let faults = run.hypervisor_faults();
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    bao::tidy(&bench.directory);
    Ok(Seen {
        case: case.clone(),
        real_s: run.elapsed.as_secs_f64(),
        virtual_s: run.virtual_time().unwrap_or_default().as_secs_f64(),
        values_ns,
        missed,
        runs,
        own_bytes: bao::own_bytes(&bench.directory),
    })
}

/// Returns what Linux has said, and the guest. Of a peer both are on one console.
fn guests(guests: &[Guest]) -> (&LinuxProgress, &WakerProgress) {
    let last = guests.len() - 1;
    (&guests[0].linux, &guests[last].waker)
}

/// Returns true if the guest begins before Linux does what it is to do meanwhile.
fn begins_early(case: &Case, linux: &LinuxProgress, waker: &WakerProgress) -> bool {
    let is_set = match case.measure {
        _ if case.system == System::Board => true,
        Measure::Wake { load, .. } | Measure::Woken { load, .. } => is_at(load, linux),
        Measure::Call { .. } => is_at(Load::Idle, linux),
        Measure::Taken { .. } | Measure::Hackbench { .. } => true,
    };
    waker.has_begun && !is_set
}

/// Returns true if Linux does what it is to do all the time.
fn is_at(load: Load, linux: &LinuxProgress) -> bool {
    match load {
        Load::Idle => linux.done,
        Load::Compute => !linux.work_s.is_empty() || (linux.busy && linux.done),
        Load::Hackbench => linux.busy,
    }
}

fn is_over(case: &Case, linux: &LinuxProgress, waker: &WakerProgress) -> bool {
    let is_done = match case.measure {
        Measure::Wake { .. } | Measure::Woken { .. } | Measure::Call { .. } => waker.is_done,
        Measure::Taken { .. } | Measure::Hackbench { .. } => linux.done,
    };
    is_done || linux.failed.is_some() || waker.has_faulted
}

/// What the guests have told: Linux's runs, the guest's values and the periods that it missed.
type Told = (Sample, BTreeMap<String, Distribution>, u64);

/// Returns what the guests found, or says what is missing.
fn found(case: &Case, linux: &LinuxProgress, waker: &WakerProgress) -> Result<Told, String> {
    if let Some(why) = &linux.failed {
        return Err(format!("Linux gave up: {why}"));
    }
    if waker.has_faulted {
        return Err("the guest met an exception".into());
    }
    let runs = runs(case.measure, linux)?;
    let values = &waker.values_ns;
    let count = |name: &str| values.get(name).map_or(0, Distribution::count);
    let missed = waker.missed.unwrap_or(0);
    match case.measure {
        Measure::Wake { periods, .. } => {
            let seen = count("wake") + missed;
            if !waker.is_done || seen != u64::from(periods) {
                return Err(format!("the guest told of {seen} of {periods} periods"));
            }
        }
        Measure::Woken { interrupts, .. } => {
            let seen = count("woken");
            if !waker.is_done || seen != u64::from(interrupts) {
                return Err(format!("the guest told of {seen} of {interrupts} interrupts"));
            }
        }
        Measure::Call { repetitions } => {
            if let Some(name) =
                super::CALLS.iter().find(|call| count(call.0) != u64::from(repetitions))
            {
                let seen = count(name.0);
                return Err(format!("the guest told of {seen} of {repetitions} times {}", name.1));
            }
        }
        Measure::Taken { is_awake, .. } if waker.has_begun != is_awake => {
            return Err(format!("the guest was to be awake: {is_awake}, and was not"));
        }
        Measure::Hackbench { burn_percent: Some(_), .. } if !waker.has_begun => {
            return Err("the guest never began".into());
        }
        Measure::Taken { .. } | Measure::Hackbench { .. } => {}
    }
    Ok((runs, values.clone(), missed))
}

/// Returns the times of Linux's runs; all that were asked for, or why they are not there.
fn runs(measure: Measure, linux: &LinuxProgress) -> Result<Sample, String> {
    let (seconds, wanted) = match measure {
        Measure::Wake { .. } | Measure::Woken { .. } | Measure::Call { .. } => {
            return Ok(Sample::default());
        }
        Measure::Taken { runs, .. } => (&linux.work_s, runs),
        Measure::Hackbench { runs, .. } => (&linux.hackbench_s, runs),
    };
    if !linux.done || seconds.len() != wanted as usize {
        return Err(format!("Linux finished {} of {wanted} runs", seconds.len()));
    }
    Ok(Sample(seconds.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(lines: &[&str]) -> (LinuxProgress, WakerProgress) {
        let (mut linux, mut waker) = (LinuxProgress::default(), WakerProgress::default());
        for line in lines {
            linux.hear(line);
            waker.hear(line);
        }
        (linux, waker)
    }

    fn wake(load: Load) -> Case {
        Case::new(System::KVM, 1, Measure::Wake { load, periods: 2 })
    }

    #[test]
    fn periods_are_counted_whether_the_guest_woke_or_not() {
        let found = |lines: &[&str]| {
            let (linux, waker) = said(lines);
            found(&wake(Load::Idle), &linux, &waker)
        };
        let (_, values, missed) =
            found(&["waker: wake 9", "waker: missed 1", "waker: done"]).unwrap();
        assert_eq!((values["wake"].count(), missed), (1, 1));
        let short = found(&["waker: wake 9", "waker: missed 0", "waker: done"]).unwrap_err();
        assert_eq!(short, "the guest told of 1 of 2 periods");
        assert!(found(&["waker: wake 9", "waker: wake 9"]).is_err(), "it is not done");
        assert!(found(&["waker: fault"]).unwrap_err().contains("exception"));
        let failed = found(&["cassata: linux failed: tune credit2 0"]).unwrap_err();
        assert_eq!(failed, "Linux gave up: tune credit2 0");
    }

    #[test]
    fn a_guest_that_begins_before_linux_works_is_noticed() {
        let begins = |load, lines: &[&str]| {
            let (linux, waker) = said(lines);
            begins_early(&wake(load), &linux, &waker)
        };
        assert!(begins(Load::Compute, &["waker: begin"]));
        assert!(!begins(Load::Compute, &["cassata: work run=1 ns=5", "waker: begin"]));
        let busy = ["cassata: busy work=cpu", "cassata: linux done", "waker: begin"];
        assert!(!begins(Load::Compute, &busy) && begins(Load::Compute, &[busy[0], busy[2]]));
        assert!(begins(Load::Hackbench, &["cassata: linux ready uptime=1", "waker: begin"]));
        assert!(!begins(Load::Hackbench, &["cassata: busy work=hackbench", "waker: begin"]));
        assert!(!begins(Load::Idle, &["cassata: linux done", "waker: begin"]));
        assert!(!begins(Load::Idle, &["cassata: linux ready uptime=1"]));
    }

    #[test]
    fn what_sleeps_must_sleep_and_what_wakes_must_wake() {
        let found = |is_awake, lines: &[&str]| {
            let (linux, waker) = said(lines);
            let case = Case::new(System::KVM, 1, Measure::Taken { is_awake, runs: 1 });
            found(&case, &linux, &waker).is_ok()
        };
        let work = ["cassata: work run=1 ns=5", "cassata: linux done"];
        let begun = [&work[..], &["waker: begin"]].concat();
        assert!(found(true, &begun) && found(false, &work));
        assert!(!found(false, &begun) && !found(true, &work) && !found(false, &work[..1]));
    }
}
