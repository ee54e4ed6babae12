//! The bench in short, as a test: one point of each end of the table.

use super::plan::PERIOD_US;
use super::point::{Experiment, Linux, Point, Rtos, Stage};
use super::policy::Policy;
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
