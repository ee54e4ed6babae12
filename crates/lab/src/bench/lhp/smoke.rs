//! The bench in short, as tests: one point of each end of the table, and some latencies.

use super::plan::{MEAN_US, PERIOD_US, SHORT_PERIOD_US};
use super::point::{Experiment, Linux, Point, Rtos, Stage, Wake};
use super::policy::{NONE, Policy};
use super::run::{self, Measurement};
use crate::bench::campaign::room;
use crate::bench::store::Case as _;
use crate::figures;
use crate::results::Outcome;
use crate::suite::{Bench, Scenario};
use miette::{Result, miette};
use serde_json::json;

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario {
    let about = "a point of bench lhp: hackbench beside an RTOS that burns half of a core, \
                 whose Linux vCPU leaves it under on-demand and stays under none";
    Scenario::new("lhp-point", about, measure).shipped()
}

/// The scenario of latencies on the bare board and of an interrupt that no clock foretells.
#[must_use]
pub fn latency_scenario() -> Scenario {
    let about = "points of bench lhp: the RTOS on the bare board, which its timer, another core and \
                 a device wake, and beside a busy Linux, which the grant of a mutex wakes";
    Scenario::new("lhp-latency", about, measure_latency).shipped()
}

fn measure_latency(bench: &Bench) -> Result<()> {
    const ACTIVATIONS: u32 = 40;
    /// More than the bare board takes, less than any visit to EL2 does, nanoseconds.
    const BARE_RESPONSE_NS: u32 = 50;
    let mut outcome = Outcome::new("lhp-latency");
    let timer = Rtos { jitter_percent: 10, ..Rtos::new(0, SHORT_PERIOD_US, ACTIVATIONS) };
    let woken = |wake| Rtos { wake, ..Rtos::new(0, MEAN_US, ACTIVATIONS) };
    let none = Policy::named(NONE).ok_or_else(|| miette!("there is no policy {NONE}"))?;
    for (stage, linux, rtos) in [
        (Stage::Native, Linux::Absent, timer),
        (Stage::Native, Linux::Absent, woken(Wake::Sgi)),
        (Stage::Native, Linux::Absent, woken(Wake::Device)),
        (Stage::shared(none), Linux::BusyHackbench, woken(Wake::Grant)),
    ] {
        let is_bare = stage == Stage::Native;
        let point = Point::new(Experiment::Latency, &linux, stage, Some(rtos));
        let found = run::run(&point, &room(bench, &point.name())?, &mut |_| {})?;
        let late = found.rtos.ok_or_else(|| miette!("{}: nothing was reported", point.name()))?;
        outcome
            .figure(&point.name(), json!({ "response": late.response, "dispatch": late.dispatch }));
        let (first, last) = (late.response.min().unwrap_or(0), late.response.max().unwrap_or(0));
        let is_sound = late.dispatch.count() == u64::from(ACTIVATIONS)
            && if is_bare { last <= BARE_RESPONSE_NS } else { first > BARE_RESPONSE_NS };
        if !is_sound {
            return Err(miette!(
                "{}: {} activations, response {first} to {last} ns",
                point.name(),
                late.dispatch.count()
            ));
        }
    }
    bench.keep(&outcome)
}

fn measure(bench: &Bench) -> Result<()> {
    let mut outcome = Outcome::new("lhp-point");
    for (name, leaves) in [("none", false), ("on-demand", true)] {
        let policy = Policy::named(name).ok_or_else(|| miette!("there is no policy {name}"))?;
        let found = point(policy, bench)?;
        let counts = found.statistics.as_ref().map(figures::virtual_time);
        let (runs, vcpus) = (&found.runs, &found.vcpus);
        let figures = json!({ "runs": runs, "vcpus": vcpus, "virtual_time": counts });
        outcome.figure(name, figures);
        let migrations = found.vcpus.first().map_or(0, |vcpu| vcpu.migrations);
        let missed = found.rtos.map_or(u64::MAX, |rtos| rtos.missed);
        if found.runs.0.len() != 1 || missed != 0 || (migrations > 0) != leaves {
            let runs = found.runs.0;
            return Err(miette!(
                "{name}: runs {runs:?}, {missed} activations missed, {migrations} migrations"
            ));
        }
    }
    bench.keep(&outcome)
}

fn point(policy: Policy, bench: &Bench) -> Result<Measurement> {
    let linux = Linux::Hackbench { loops: 150, runs: 1 };
    let rtos = Rtos::new(500, PERIOD_US, 0);
    let point = Point::new(Experiment::Throughput, &linux, Stage::shared(policy), Some(rtos));
    run::run(&point, &room(bench, &point.name())?, &mut |_| {})
}
