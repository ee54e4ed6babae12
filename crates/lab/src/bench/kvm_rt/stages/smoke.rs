//! Parts of the bench as a machine test, without Linux: all marks are found in the order of the stages, and
//! the stages' sum is the response that FreeRTOS measures itself.

use super::case::{Case, Load, Route};
use super::fold::Found;
use super::machine::FINE_QUANTUM_NS;
use super::run;
use crate::bench::campaign::room;
use crate::bench::store::Case as _;
use crate::results::Outcome;
use crate::suite::{Bench, Scenario};
use miette::{Result, ensure};
use serde_json::json;

/// Activations of each.
const ACTIVATIONS: u32 = 40;

/// Returns the scenario.
pub fn scenarios() -> Vec<Scenario> {
    let about = "the stages of an interrupt's way sum up to what FreeRTOS measures";
    vec![Scenario::new("kvm-rt", about, measure).shipped()]
}

fn measure(bench: &Bench) -> Result<()> {
    let mut outcome = Outcome::new("kvm-rt");
    for (route, load, found, switched) in [
        (Route::NoSwitch, Load::Alone, Some(Found::Guest(1)), Some(false)),
        (Route::Idle, Load::Alone, Some(Found::Idle), Some(false)),
        (Route::Kernel, Load::Spin, Some(Found::Guest(1)), Some(true)),
        (Route::Advance, Load::Spin, None, None),
        (Route::Core, Load::Spin, None, None),
        (Route::Device, Load::Spin, None, None),
    ] {
        let case = Case { route, load, activations: ACTIVATIONS };
        let name = case.name();
        let seen = run::run(&case, &room(bench, &name)?, &mut |_| {})?;
        outcome.figure(&name, json!({ "kinds": seen.kinds, "off_ns": seen.off_ns }));
        let count: u64 = seen.kinds.iter().map(|kind| kind.response.count()).sum();
        ensure!(count == u64::from(ACTIVATIONS), "{name}: {count} activations were taken apart");
        let most_ns = if route.is_raised_elsewhere() { FINE_QUANTUM_NS } else { 0 };
        let off_ns = seen.off_ns;
        ensure!(off_ns <= most_ns, "{name}: the stages are off by {off_ns} ns");
        // The first finds no vCPU that has run.
        let usual = seen.kinds.iter().max_by_key(|kind| kind.response.count());
        let usual = usual.map(|kind| (kind.found, kind.switched));
        let is_wanted = usual.is_some_and(|(place, switch)| {
            found.is_none_or(|found| found == place)
                && switched.is_none_or(|wanted| wanted == switch)
        });
        ensure!(is_wanted, "{name}: mostly {usual:?}");
    }
    bench.keep(&outcome)
}
