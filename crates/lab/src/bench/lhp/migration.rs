//! What a migration costs, in instructions: what happens with it and not
//! without, Linux and the RTOS doing the same.

use super::Lhp;
use super::point::{Experiment, Stage};
use super::run::Measurement;
use crate::bench::el2::{MOST_DEPARTURE, MOST_TRIP_US};
use crate::dataset::{Dataset, Unit};
use crate::quantity::{number, real};
use crate::results::{Check, Goal};

/// Instructions a microsecond, in virtual time.
const PER_US: f64 = 1_000.0;

/// What a round trip costs, in instructions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Of the departure, before the RTOS's task runs: difference of the
    /// medians of its dispatch latency.
    pub departure: f64,
    /// At EL2 of the RTOS's core, departure and return.
    pub base: f64,
    /// At EL2 of all other cores, arrival and sending back.
    pub others: f64,
    /// Round trips that were counted.
    pub round_trips: f64,
}

impl Cost {
    /// Returns what a policy that migrates costs more than `none`.
    fn between(none: &Measurement, moving: &Measurement) -> Option<Self> {
        let migrations = moving.vcpus.iter().map(|vcpu| vcpu.migrations).sum::<u64>();
        let round_trips = real(migrations) / 2.0;
        let median = |m: &Measurement| m.rtos.as_ref()?.dispatch.percentile(500).map(f64::from);
        let at_el2 = |m: &Measurement| -> Option<(f64, f64)> {
            let cores = &m.statistics.as_ref()?.vcpus;
            let each: Option<Vec<u64>> =
                cores.iter().map(|core| Some(core.range.as_ref()?.instructions)).collect();
            let (base, others) = each.as_ref()?.split_first()?;
            Some((real(*base), real(others.iter().sum())))
        };
        let ((base, others), (base_before, others_before)) = (at_el2(moving)?, at_el2(none)?);
        (round_trips > 0.0).then_some(Self {
            departure: median(moving)? - median(none)?,
            base: (base - base_before) / round_trips,
            others: (others - others_before) / round_trips,
            round_trips,
        })
    }

    /// Returns the instructions of both ends, there and back.
    fn round_trip(&self) -> f64 {
        self.base + self.others
    }

    fn parts(&self) -> [(&'static str, f64); 4] {
        [
            ("departure, before the RTOS runs", self.departure),
            ("RTOS's core, departure and return", self.base),
            ("other core, arrival and sending back", self.others),
            ("round trip, both ends", self.round_trip()),
        ]
    }
}

impl Lhp {
    fn migration(&self) -> Option<Cost> {
        let of = |name: &str| {
            let stage = Stage::Shared { policy: name.into() };
            self.of(Experiment::Migration).find(|m| m.point.stage == stage)
        };
        Cost::between(of("none")?, of("on-demand")?)
    }

    pub(super) fn migration_checks(&self) -> Vec<Check> {
        if !self.plans(Experiment::Migration) {
            return Vec::new();
        }
        let cost = self.migration();
        let departure = cost.map(|cost| cost.departure);
        let round_trip = cost.map(|cost| cost.round_trip() / PER_US);
        let name = "departure: instructions before the RTOS runs";
        vec![
            Check::new(name, departure, "", Goal::AtMost(MOST_DEPARTURE)),
            Check::new("round trip, both ends", round_trip, "us", Goal::AtMost(MOST_TRIP_US)),
        ]
    }

    pub(super) fn migration_data(&self) -> Dataset {
        let cost = self.migration();
        let parts = cost.iter().flat_map(|cost| cost.parts().map(|part| (part, cost.round_trips)));
        Dataset::of("migration", "Cost of a migration, mean", parts)
            .name("part", |((part, _), _)| *part)
            .head("")
            .column("mean", Unit::Instructions, |((_, n), _)| *n)
            .head("at EL2")
            .digits(0)
            .column("time", Unit::Microseconds, |((_, n), _)| n / PER_US)
            .head("virtual time")
            .digits(2)
            .name("round_trips", |(_, trips)| *trips)
            .for_programs()
            .done()
    }

    /// Ours beside the paper's.
    pub(super) fn migration_finding(&self) -> String {
        self.migration().map_or("Ours: not measured.".into(), |cost| {
            format!(
                "Ours: {} instructions for a round trip, both ends, mean of {}; the RTOS waits \
                 for {} of them. Instructions are no time on hardware, where caches are cold on \
                 the other core.",
                number(cost.round_trip().round()),
                number(cost.round_trips),
                number(cost.departure)
            )
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::run::Vcpu;
    use super::super::tests::{late, lhp};
    use super::*;
    use serde_json::json;

    /// A point with so much at EL2 of the RTOS's core and of another.
    pub fn counted(name: &str, dispatch: u32, migrations: u64, at_el2: [u64; 2]) -> Measurement {
        let range = |n: u64| json!({ "instructions": n, "visits": 1, "by_entry": {} });
        let statistics = crate::testing::statistics(at_el2.map(|n| (9, range(n))));
        let vcpu = Vcpu {
            name: "linux.0".into(),
            run_s: 1.0,
            stolen_s: 0.0,
            switches: 1,
            migrations,
            kernel_preemptions: 0,
            kernel_preempted_s: 0.0,
        };
        Measurement {
            statistics: Some(statistics),
            vcpus: vec![vcpu],
            ..late(name, &[(dispatch, 1_000)])
        }
    }

    #[test]
    fn a_cost_is_what_there_is_more_of() {
        let of = |dispatch, base: u64| {
            lhp(vec![
                counted("migration-none", 1_000, 0, [5_000, 700]),
                counted("migration-on-demand", dispatch, 200, [5_000 + base, 70_700]),
            ])
        };
        let cost = of(1_200, 230_000).migration().unwrap();
        let expected = Cost { departure: 200.0, base: 2_300.0, others: 700.0, round_trips: 100.0 };
        assert_eq!(cost, expected);
        let holding =
            |lhp: &Lhp| lhp.migration_checks().iter().map(Check::holds).collect::<Vec<_>>();
        let data = of(1_200, 230_000).migration_data().json();
        assert_eq!(
            (&data[3]["mean_instructions"], &data[3]["time_us"]),
            (&json!(3e3), &json!(3.0))
        );
        assert_eq!(holding(&of(1_200, 230_000)), [true, true]);
        assert_eq!(holding(&of(1_201, 230_100)), [false, false]);
    }
}
