//! Runs a case, and reads what its guests say.

use super::boot::Boot;
use super::case::{Case, Load, Measure};
use super::system::System;
use super::{bao, cyclictest, machine};
use crate::bench::sample::Sample;
use crate::bench::store::measured;
use crate::bench::{ProgressView, Tell};
use crate::guests::{Guest, Lateness, LinuxProgress, missed_periods};
use crate::observe::Distribution;
use crate::suite::Bench;
use miette::{Result, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

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
    /// How late FreeRTOS was.
    pub lateness: Option<Lateness>,
    /// How soon both guests were up.
    pub boot: Option<Boot>,
}

measured!(Seen, case: Case, real_s);

/// Runs `case` with its files in the directory of `bench`, and tells how far it is.
///
/// # Errors
/// When the machine fails, a guest does not do its work, or Ctrl-C comes.
pub fn run(case: &Case, bench: &Bench, tell: Tell<'_>) -> Result<Seen> {
    let session = machine::session(case, bench)?.shown_by(Box::new(ProgressView(tell)));
    let mut up = Up::default();
    let mut is_early = false;
    let run = session.run(|now| {
        let (linux, guest) = guests(&now.said.guests);
        let at = now.virtual_time.unwrap_or_default();
        up.note(linux, guest, at);
        is_early |= begins_early(case, linux, guest, up.since(at));
        is_early || is_over(case, linux, guest)
    })?;
    ensure!(!bench.interrupt.requested(), "interrupted");
    ensure!(
        !is_early,
        "the guest began before Linux had set to work: when it begins, in \
         crates/lab/src/bench/peers/{}, is too early for this Linux",
        match case.measure {
            Measure::Cyclictest { .. } => "cyclictest.rs",
            _ => "machine.rs",
        }
    );
    let (linux, guest) = guests(&run.said.guests);
    let (runs, values_ns, missed) =
        found(case, linux, guest).map_err(|why| run.unfinished(&why))?;
    let lateness = guest.freertos.lateness;
    run.without_faults()?;
    bao::tidy(&bench.directory);
    Ok(Seen {
        case: case.clone(),
        real_s: run.elapsed.as_secs_f64(),
        virtual_s: run.virtual_time().unwrap_or_default().as_secs_f64(),
        values_ns,
        missed,
        runs,
        lateness,
        boot: Boot::of(case, bench, [up.linux, up.guest])?,
    })
}

/// Virtual time at which each guest was up.
#[derive(Clone, Copy, Debug, Default)]
struct Up {
    linux: Option<Duration>,
    guest: Option<Duration>,
}

impl Up {
    fn note(&mut self, linux: &LinuxProgress, guest: &Guest, at: Duration) {
        if linux.boot_s.is_some() {
            self.linux.get_or_insert(at);
        }
        if guest.waker.has_begun || guest.freertos.is_ready || guest.cyclictest.is_ready {
            self.guest.get_or_insert(at);
        }
    }

    /// Returns for how long the guest has been up at most: it is looked at now and then.
    fn since(&self, at: Duration) -> Option<Duration> {
        Some(at + machine::PERIOD - self.guest?)
    }
}

/// Returns what Linux has said, and the guest. Of a peer both are on one console.
fn guests(guests: &[Guest]) -> (&LinuxProgress, &Guest) {
    let last = guests.len() - 1;
    (&guests[0].linux, &guests[last])
}

/// Returns true if the guest, which has been up for so long, begins before Linux does what it is to do meanwhile.
fn begins_early(
    case: &Case,
    linux: &LinuxProgress,
    guest: &Guest,
    is_up: Option<Duration>,
) -> bool {
    if case.system == System::Board {
        return false;
    }
    let start = Duration::from_millis(machine::begin_ms(case.system));
    match case.measure {
        Measure::Wake { load, .. } | Measure::Woken { load, .. } => {
            guest.waker.has_begun && !is_at(load, linux)
        }
        Measure::Call { .. } => guest.waker.has_begun && !is_at(Load::Idle, linux),
        Measure::Freertos { load, .. } => {
            is_up.is_some_and(|since| since >= start) && !is_at(load, linux)
        }
        Measure::Cyclictest { load, .. } => guest.cyclictest.has_begun && !is_at(load, linux),
        Measure::Taken { .. } | Measure::Hackbench { .. } | Measure::Boot => false,
    }
}

/// Returns true if Linux does what it is to do all the time.
fn is_at(load: Load, linux: &LinuxProgress) -> bool {
    match load {
        Load::Idle => linux.done,
        Load::Compute => !linux.work_s.is_empty() || (linux.busy && linux.done),
        Load::Hackbench => linux.busy,
    }
}

fn is_over(case: &Case, linux: &LinuxProgress, guest: &Guest) -> bool {
    let is_done = match case.measure {
        Measure::Wake { .. } | Measure::Woken { .. } | Measure::Call { .. } => guest.waker.is_done,
        Measure::Taken { .. } | Measure::Hackbench { .. } => linux.done,
        Measure::Freertos { .. } => guest.freertos.lateness.is_some(),
        Measure::Cyclictest { .. } => guest.cyclictest.is_done,
        Measure::Boot => guest.waker.has_begun && linux.boot_s.is_some(),
    };
    is_done || gave_up(linux, guest).is_some()
}

/// Returns which guest gave up, and why.
fn gave_up(linux: &LinuxProgress, guest: &Guest) -> Option<String> {
    if let Some(why) = &linux.failed {
        return Some(format!("Linux gave up: {why}"));
    }
    if guest.waker.has_faulted {
        return Some("the guest met an exception".into());
    }
    let why = guest.freertos.failed.as_ref().or(guest.cyclictest.failed.as_ref())?;
    Some(format!("the guest gave up: {why}"))
}

/// What the guests have told: Linux's runs, the guest's values and the periods that it missed.
type Told = (Sample, BTreeMap<String, Distribution>, u64);

/// Returns what the guests found, or says what is missing.
fn found(case: &Case, linux: &LinuxProgress, guest: &Guest) -> Result<Told, String> {
    if let Some(why) = gave_up(linux, guest) {
        return Err(why);
    }
    let waker = &guest.waker;
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
        Measure::Freertos { activations, .. } => {
            let (seen, lateness) = (guest.freertos.activations, guest.freertos.lateness);
            let missed = lateness.filter(|_| seen == Some(activations.into()));
            return missed
                .map(|of| (runs, BTreeMap::new(), of.missed))
                .ok_or_else(|| format!("FreeRTOS told of {seen:?} of {activations} activations"));
        }
        Measure::Cyclictest { wakes, .. } => {
            let latencies = &guest.cyclictest.latencies_ns;
            let seen = latencies.count();
            if !guest.cyclictest.is_done || seen != u64::from(wakes) {
                return Err(format!("cyclictest told of {seen} of {wakes} wake-ups"));
            }
            let values = BTreeMap::from([(cyclictest::NAME.to_owned(), latencies.clone())]);
            return Ok((runs, values, missed_periods(latencies, cyclictest::PERIOD_NS)));
        }
        Measure::Boot if linux.boot_s.is_none() || !waker.has_begun => {
            return Err("a guest is not up".into());
        }
        // What the guest measures in its only period is not asked for.
        Measure::Boot => return Ok((runs, BTreeMap::new(), 0)),
        Measure::Taken { .. } | Measure::Hackbench { .. } => {}
    }
    Ok((runs, values.clone(), missed))
}

/// Returns the times of Linux's runs; all that were asked for, or why they are not there.
fn runs(measure: Measure, linux: &LinuxProgress) -> Result<Sample, String> {
    let (seconds, wanted) = match measure {
        Measure::Taken { runs, .. } => (&linux.work_s, runs),
        Measure::Hackbench { runs, .. } => (&linux.hackbench_s, runs),
        Measure::Wake { .. }
        | Measure::Woken { .. }
        | Measure::Call { .. }
        | Measure::Freertos { .. }
        | Measure::Cyclictest { .. }
        | Measure::Boot => return Ok(Sample::default()),
    };
    if !linux.done || seconds.len() != wanted as usize {
        return Err(format!("Linux finished {} of {wanted} runs", seconds.len()));
    }
    Ok(Sample(seconds.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(lines: &[&str]) -> (LinuxProgress, Guest) {
        let (mut linux, mut guest) = (LinuxProgress::default(), Guest::default());
        for line in lines {
            linux.hear(line);
            guest.waker.hear(line);
            guest.freertos.hear(line);
            guest.cyclictest.hear(line);
        }
        (linux, guest)
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
            begins_early(&wake(load), &linux, &waker, None)
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
    fn freertos_begins_when_it_has_slept_and_tells_of_all_activations() {
        let measure = Measure::Freertos { load: Load::Idle, activations: 2 };
        let case = Case::new(System::KVM, 1, measure);
        let ready = "freertos: period 1000 us, load 0 per mille, activations 2";
        let (linux, guest) = said(&[ready]);
        let mut up = Up::default();
        let at = Duration::from_millis;
        up.note(&linux, &guest, at(300));
        up.note(&linux, &guest, at(310));
        let begins = |ms, linux| begins_early(&case, linux, &guest, up.since(at(ms)));
        // It sleeps for a second, and may have begun 10 ms before it was looked at.
        assert!(!begins(1_289, &linux) && begins(1_290, &linux));
        let (at_work, _) = said(&["cassata: linux done"]);
        assert!(!begins(1_290, &at_work) && !is_over(&case, &at_work, &guest));
        let spread = "min=1 mean=2 max=3";
        let summary = |count| {
            format!(
                "freertos: summary activations={count} missed=1 response_ns {spread} dispatch_ns {spread}"
            )
        };
        let found = |count| {
            let (linux, guest) = said(&[ready, &summary(count)]);
            assert!(is_over(&case, &linux, &guest));
            found(&case, &linux, &guest)
        };
        assert_eq!(found(2).unwrap().2, 1);
        assert!(found(1).is_err());
        let (linux, faulted) = said(&["freertos: fault: assertion at x.c:1"]);
        assert_eq!(gave_up(&linux, &faulted).unwrap(), "the guest gave up: assertion at x.c:1");
    }

    #[test]
    fn cyclictest_tells_of_all_wake_ups_and_begins_after_the_other_linux() {
        let case = Case::new(System::KVM, 1, Measure::Cyclictest { load: Load::Idle, wakes: 3 });
        let (linux, guest) = said(&["cyclic: ready", "cyclic: begin"]);
        assert!(begins_early(&case, &linux, &guest, None) && !is_over(&case, &linux, &guest));
        let lines = ["cyclic: late 500 2", "cyclic: late 900 1", "cyclic: done"];
        let (linux, guest) = said(&lines);
        let (_, values, missed) = found(&case, &linux, &guest).unwrap();
        assert_eq!((values[cyclictest::NAME].max(), missed), (Some(900), 0));
        let (linux, guest) =
            said(&["cyclic: late 500 2", "cyclic: late 2018001 1", "cyclic: done"]);
        assert_eq!(found(&case, &linux, &guest).unwrap().2, 2, "periods that it slept through");
        let (linux, guest) = said(&lines[1..]);
        let short = found(&case, &linux, &guest).unwrap_err();
        assert_eq!(short, "cyclictest told of 1 of 3 wake-ups");
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
