//! Stock Linux counts its own cycles by its performance events.

use super::staged::description;
use crate::guests::Cycles;
use crate::results::Outcome;
use crate::suite::{Bench, Scenario};
use miette::Result;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The name, and that of its description.
pub(super) const NAME: &str = "cycles-linux";
/// Virtual time within which Linux boots on half a core and counts.
const LIMIT: Duration = Duration::from_secs(20);
/// The VM that counts.
const LINUX: &str = "linux";
/// Cycles in each nanosecond: QEMU's cores have one, and a neighbour has half of this one.
const RATE: RangeInclusive<f64> = 0.4..=0.6;

/// Returns the scenario.
#[must_use]
pub fn scenario() -> Scenario {
    let about = "Linux counts its own cycles, not those of its neighbour";
    Scenario::new(NAME, about, counts)
}

fn counts(bench: &Bench) -> Result<()> {
    let bundle = bench.pack(&bench.described(&description(NAME), &[])?)?;
    let linux = bundle.layout().vm(LINUX).unwrap_or_default();
    let run = bench.session(&bundle, LIMIT)?.run(|moment| {
        let said = &moment.said.guests[linux].linux;
        said.done || said.failed.is_some()
    })?;
    let said = &run.said.guests[linux].linux;
    let mut objections = Vec::new();
    match said.cycles {
        Some(Cycles { count, ns }) if RATE.contains(&(count as f64 / ns as f64)) => {}
        counted => objections.push(format!("Linux counted {counted:?}, failed: {:?}", said.failed)),
    }
    bench.judge(&run, Outcome::new(NAME), &objections)
}
