//! Whether throughput depends on where in Linux's tick the RTOS's releases are.
//!
//! The period with which throughput is measured and Linux's tick of 4 ms are both multiples of 2 ms, so
//! releases meet the same two phases of the tick for ever. Here each comes up to a tenth of the period
//! early or late, 1 ms, and all of them meet every phase.

use super::plan::{COMPARED, JITTER_PERCENT, LOOPS, PERIOD_US};
use super::point::{Experiment, Linux, Point, Rtos, Stage};
use super::policy::Policy;
use super::throughput::{share, timed, told};
use super::{Lhp, estimated};
use crate::bench::Extent;
use crate::bench::sample::{Estimate, Sample};
use crate::dataset::{Dataset, Unit};
use crate::results::{Check, Goal};

/// Loads at which it is looked at, thousandths: one where the RTOS does little, one where it does much.
const LOADS: [u32; 2] = [300, 600];
/// Runs of hackbench, the first of which is not counted.
const RUNS: u32 = 5;
/// By how much the time may be another one, if the phase does not matter: as much as the goal of on-demand.
const ANOTHER: f64 = 0.05;

/// Returns the points. There is no room for them in a quick run.
pub fn points(extent: Extent, policies: &[Policy]) -> Vec<Point> {
    if extent == Extent::Quick {
        return Vec::new();
    }
    let linux = Linux::Hackbench { loops: LOOPS, runs: RUNS };
    let compared = || policies.iter().filter(|policy| COMPARED.contains(&policy.name));
    let point = |load, policy: &Policy| {
        let rtos = Rtos { jitter_percent: JITTER_PERCENT, ..Rtos::new(load, PERIOD_US, 0) };
        Point::new(Experiment::ThroughputJitter, &linux, Stage::shared(*policy), Some(rtos))
    };
    LOADS.into_iter().flat_map(|load| compared().map(move |policy| point(load, policy))).collect()
}

/// A policy at a load.
type Spot = (Policy, u32);

impl Lhp {
    fn jittered_spots(&self) -> Vec<Spot> {
        let ours = self.planned.iter().filter(|p| p.experiment == Experiment::ThroughputJitter);
        ours.filter_map(|p| Some((p.stage.policy()?, p.rtos?.load_permille))).collect()
    }

    fn jittered(&self, (policy, load): Spot) -> Option<Sample> {
        let here = |point: &Point| {
            point.stage.policy() == Some(policy)
                && point.rtos.is_some_and(|rtos| rtos.load_permille == load)
        };
        let found = self.of(Experiment::ThroughputJitter).find(|m| here(&m.point))?;
        Some(found.runs.steady())
    }

    /// Returns the time with jitter, that without being 1.
    fn jittered_ratio(&self, spot: Spot) -> Option<Estimate> {
        let fixed = timed(self.throughput().at(spot.0, spot.1)?);
        Some(timed(&self.jittered(spot)?).over(fixed))
    }

    /// Returns whether the phase matters, where that was planned.
    pub(super) fn jitter_checks(&self) -> Vec<Check> {
        let check = |spot: Spot| {
            let (policy, f) = (spot.0.name, share(spot.1));
            let name = format!(
                "{policy}, f = {f}, releases that jitter: time, that at a fixed phase being 1"
            );
            let goal = Goal::Between(1.0 - ANOTHER, 1.0 + ANOTHER);
            estimated(&name, self.jittered_ratio(spot), "", goal).as_statement()
        };
        self.jittered_spots().into_iter().map(check).collect()
    }

    /// Returns the times with and without jitter.
    pub(super) fn jitter_data(&self) -> Dataset {
        let measured = self.jittered_spots().into_iter().filter(|s| self.jittered(*s).is_some());
        let title = format!(
            "hackbench beside an RTOS whose releases jitter by {JITTER_PERCENT} % of the period, \
             mean in ms ± 95 % interval (counted runs)"
        );
        let throughput = self.throughput();
        let fixed = |(policy, load): &Spot| throughput.at(*policy, *load);
        Dataset::of("throughput-jitter", &title, measured)
            .name("policy", |(policy, _)| policy.name)
            .name("f", |(_, load)| share(*load))
            .name("fixed", |spot| fixed(spot).map(told))
            .head("at a fixed phase")
            .for_people()
            .name("jittered", |spot| self.jittered(*spot).as_ref().map(told))
            .head("with jitter")
            .for_people()
            .column("runs", Unit::Seconds, |spot| self.jittered(*spot).map(|runs| runs.0))
            .for_programs()
            .column("mean", Unit::Seconds, |spot| Some(self.jittered(*spot)?.mean()))
            .for_programs()
            .column("fixed_mean", Unit::Seconds, |spot| Some(fixed(spot)?.mean()))
            .for_programs()
            .column("ratio", Unit::None, |spot| Some(self.jittered_ratio(*spot)?.mean))
            .column("interval", Unit::None, |spot| Some(self.jittered_ratio(*spot)?.half))
            .head("95 % interval, ±")
            .done()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{measured, only};
    use super::*;
    use crate::results::{NOT_MEASURED, UNDECIDED};

    #[test]
    fn releases_that_jitter_meet_every_phase_of_the_tick() {
        const TICK_US: u32 = 4_000;
        let mut met = [false; TICK_US as usize];
        for release in 0..2 {
            let jitter = PERIOD_US * JITTER_PERCENT / 100;
            for us in
                release * PERIOD_US + TICK_US - jitter..=release * PERIOD_US + TICK_US + jitter
            {
                met[(us % TICK_US) as usize] = true;
            }
        }
        assert!(met.iter().all(|met| *met));
    }

    #[test]
    fn what_jitter_changes_is_compared_with_a_fixed_phase() {
        let found = only(vec![
            measured("throughput-on-demand-f3-l100-x5", &[9.0, 0.1, 0.1, 0.1]),
            measured("throughput-jitter-on-demand-f3", &[9.0, 0.102, 0.102, 0.102]),
            measured("throughput-none-f6-l100-x5", &[9.0, 0.1, 0.1]),
            measured("throughput-jitter-none-f6", &[9.0, 0.1, 0.2]),
            measured("throughput-trap-based-f6-l100-x5", &[9.0, 0.1, 0.1]),
            measured("throughput-jitter-trap-based-f6", &[9.0, 0.2, 0.2]),
            measured("throughput-jitter-trap-based-f3", &[9.0, 0.2, 0.2]),
        ]);
        let said: Vec<_> = found.jitter_checks().iter().map(Check::verdict).collect();
        assert_eq!(said, ["agrees", UNDECIDED, "differs", NOT_MEASURED]);
        let data = found.jitter_data();
        let ratio = data.json()[0]["ratio"].as_f64().unwrap();
        assert!((ratio - 1.02).abs() < 1e-9, "{ratio}");
        let cells = &data.table().rows[0][2..4];
        assert_eq!(cells, ["100.0 ± 0.5 (3)", "102.0 ± 0.5 (3)"]);
        assert_eq!(only(Vec::new()).jitter_checks(), []);
    }
}
