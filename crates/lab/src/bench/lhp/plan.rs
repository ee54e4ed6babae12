//! All points of a run of the bench.

use super::point::{Experiment, Linux, Point, Rtos, Stage};
use super::policy::{NONE, Policy};
use crate::bench::Extent;
use crate::bench::vtime::case::Work;

/// Period of the RTOS in the experiments on throughput. The papers' period is
/// 500 ms, several of which pass in a run of hackbench; here a run takes a tenth
/// of a second, and ten periods pass.
pub const PERIOD_US: u32 = 10_000;
/// Period of the RTOS where its latency is measured. With the papers' 1 ms,
/// 100,000 activations would be 100 s of virtual time, more than an hour for
/// each point.
pub const SHORT_PERIOD_US: u32 = 50;
/// Period of a tick that has nothing else to do, as the paper's.
const TICK_US: u32 = 1_000;

/// Period of the RTOS where migrations are counted.
const MIGRATION_PERIOD_US: u32 = 200;
/// Least time that Linux needs for a KiB of `sha256sum`, microseconds.
const HASH_US_PER_KIB: u32 = 50;

/// What Linux hashes before the RTOS begins, and a little more.
const BEFORE_KIB: u32 = 10_240;

/// What is compared where two policies tell the most.
const KEY: [&str; 2] = [NONE, "on-demand"];

/// What the RTOS burns where spinning is counted: much, so that it shows.
const SPINNING_PERMILLE: u32 = 800;

/// Cores of the board.
pub const CORES: u32 = 4;

/// The points, in this order.
#[must_use]
pub fn points(extent: Extent, policies: &[Policy]) -> Vec<Point> {
    let sizes = match extent {
        Extent::Full => Sizes {
            loads: &[0, 100, 200, 300, 400, 500, 600, 700, 800, 900],
            loops: 100,
            runs: 7,
            activations: 100_000,
            migrations: 4_000,
            timed_runs: 4,
            thorough: true,
        },
        Extent::Quick => Sizes {
            loads: &[300, 800],
            loops: 100,
            runs: 4,
            activations: 4_000,
            migrations: 1_000,
            timed_runs: 3,
            thorough: false,
        },
    };
    let mut points = sizes.throughput(policies);
    points.extend(sizes.latency(policies));
    points.extend(sizes.overhead());
    points.extend(sizes.migration(policies));
    points.extend(sizes.spinning(policies));
    points
}

struct Sizes {
    /// Thousandths of the period.
    loads: &'static [u32],
    loops: u32,
    /// The first of which is not counted.
    runs: u32,
    activations: u32,
    migrations: u32,
    timed_runs: u32,
    /// Where not each point is needed for a goal, all policies nevertheless.
    thorough: bool,
}

impl Sizes {
    fn throughput(&self, policies: &[Policy]) -> Vec<Point> {
        let linux = Linux::Hackbench { loops: self.loops, runs: self.runs };
        let point = |stage, rtos| Point {
            experiment: Experiment::Throughput,
            linux: linux.clone(),
            stage,
            rtos,
            separation: true,
        };
        let mut points: Vec<_> = [4, 3, 2].map(|cores| point(Stage::Alone { cores }, None)).into();
        for &load_permille in self.loads {
            let rtos = Rtos { load_permille, period_us: PERIOD_US, activations: 0 };
            points.extend(policies.iter().map(|&policy| point(Stage::shared(policy), Some(rtos))));
        }
        points
    }

    /// Native, under Cassata, and under Cassata beside a tick each millisecond.
    fn overhead(&self) -> Vec<Point> {
        let runs = self.timed_runs;
        let tick = Rtos { load_permille: 0, period_us: TICK_US, activations: 0 };

        let stages = [
            (Stage::Native, None),
            (Stage::Alone { cores: CORES }, None),
            (Stage::Shared { policy: NONE.into() }, Some(tick)),
        ];
        let amounts = [(Work::Cpu, 8_192), (Work::Calls, 80_000), (Work::Forks, 80)];
        let each = amounts.into_iter().flat_map(|(work, count)| {
            let linux = Linux::Timed { work, count, runs };
            stages.clone().map(|(stage, rtos)| Point {
                experiment: Experiment::Overhead,
                linux: linux.clone(),
                stage,
                rtos,
                separation: true,
            })
        });
        each.collect()
    }

    /// Every vCPU of Linux computes, so that each departure is that of a
    /// running one. Linux works longer than the RTOS and switches off after it,
    /// so that a run ends at the same instruction each time.
    fn migration(&self, policies: &[Policy]) -> Vec<Point> {
        let activations = self.migrations;
        let rtos = Rtos { load_permille: 0, period_us: MIGRATION_PERIOD_US, activations };
        let count = (activations * MIGRATION_PERIOD_US).div_ceil(HASH_US_PER_KIB) + BEFORE_KIB;
        let linux = Linux::Timed { work: Work::Cpu, count, runs: 1 };
        let moving = policies.iter().filter(|p| KEY.contains(&p.name));
        let point = |&policy: &Policy| Point {
            experiment: Experiment::Migration,
            linux: linux.clone(),
            stage: Stage::shared(policy),
            rtos: Some(rtos),
            separation: true,
        };
        moving.map(point).collect()
    }

    fn spinning(&self, policies: &[Policy]) -> Vec<Point> {
        let linux = Linux::Hackbench { loops: self.loops, runs: self.runs.min(4) };
        let rtos = Rtos { load_permille: SPINNING_PERMILLE, period_us: PERIOD_US, activations: 0 };
        let point = |&policy: &Policy| Point {
            experiment: Experiment::Spinning,
            linux: linux.clone(),
            stage: Stage::shared(policy),
            rtos: Some(rtos),
            separation: true,
        };
        policies.iter().filter(|p| self.thorough || KEY.contains(&p.name)).map(point).collect()
    }

    fn latency(&self, policies: &[Policy]) -> Vec<Point> {
        let activations = self.activations;
        let rtos = Rtos { load_permille: 0, period_us: SHORT_PERIOD_US, activations };
        let mut points = Vec::new();
        for separation in [true, false] {
            for linux in [Linux::BusyHackbench, Linux::BusyWrite] {
                // Quickly: all policies where there is a goal.
                let asked = |p: &&Policy| {
                    self.thorough
                        || separation && linux == Linux::BusyHackbench
                        || KEY.contains(&p.name)
                        || p.name == "partition"
                };
                points.extend(policies.iter().filter(asked).map(|&policy| Point {
                    experiment: Experiment::Latency,
                    linux: linux.clone(),
                    stage: Stage::shared(policy),
                    rtos: Some(rtos),
                    separation,
                }));
            }
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::super::point::WHOLE;
    use super::*;
    use crate::bench::store::Named;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_points_share_a_name() {
        for extent in [Extent::Full, Extent::Quick] {
            let points = points(extent, &Policy::all());
            let names: BTreeSet<_> = points.iter().map(Point::name).collect();
            assert_eq!(names.len(), points.len());
        }
    }

    #[test]
    fn every_policy_meets_every_load() {
        let points = points(Extent::Full, &Policy::all());
        let met = |policy: &Policy| {
            let of = |point: &&Point| {
                point.experiment == Experiment::Throughput && point.stage.policy() == Some(*policy)
            };
            let loads = points.iter().filter(of).filter_map(|point| point.rtos);
            loads.map(|rtos| rtos.load_permille).collect::<Vec<_>>()
        };
        let tenths: Vec<_> = (0..10).map(|tenth| tenth * WHOLE / 10).collect();
        assert!(Policy::all().iter().all(|policy| met(policy) == tenths));
    }
}
