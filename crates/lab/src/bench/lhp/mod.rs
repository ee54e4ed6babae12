//! What becomes of Linux when the RTOS preempts the holder of a lock, and what
//! each policy does about it: the experiments of the papers, in virtual time.
//!
//! | module | story |
//! | --- | --- |
//! | [`policy`] | what is compared: all that the scheduler knows |
//! | [`point`], [`plan`] | one run of a machine, all of them |
//! | [`description`] | a point's system |
//! | [`run`], [`bare_rtos`] | running it; running the RTOS without a hypervisor |
//! | [`throughput`], [`latency`], [`migration`], [`overhead`], [`lock_holder_preemption`] | the figures |
//! | [`jitter`] | whether throughput depends on the phase of Linux's tick |
//! | [`adaptive`] | the adaptive policy beside the best of the others |
//! | [`technique`] | the papers' techniques, with and without yields, and ours |
//! | [`realtime`] | a real-time process of Linux's that is more urgent than the RTOS |
//! | [`report`] | for people, beside what the papers say |
//! | [`quoted`] | what the book quotes |
//! | [`smoke`] | one point as a test |

mod adaptive;
mod bare_rtos;
mod description;
mod jitter;
mod latency;
mod lock_holder_preemption;
mod migration;
mod overhead;
mod plan;
mod point;
mod policy;
mod quoted;
mod realtime;
mod report;
mod run;
mod smoke;
mod technique;
mod throughput;

use super::campaign::Findings;
use super::experiment::Extent;
use super::inputs::Inputs;
use super::sample::{Estimate, estimated};
use super::{Conduct, Label, Tell};
use crate::answer::Answer;
use crate::guests::Images;
use crate::results::{Check, Goal};
use crate::suite::{Bench, Scenario};
use miette::Result;
use point::{Experiment, Point};
use policy::Policy;
use run::Measurement;

/// What is conducted from here.
pub(super) const EXPERIMENTS: &[&dyn Conduct] = &[&LockHolders];

/// The experiment.
#[derive(Clone, Copy, Debug)]
pub struct LockHolders;

impl super::Experiment for LockHolders {
    const LABEL: Label = Label {
        name: "lhp",
        about: "What becomes of Linux when the RTOS preempts a lock holder",
        details: "Runs Linux and FreeRTOS on four cores under each migration policy: hackbench's \
                  time, the RTOS's latencies, what a migration and what the hypervisor cost, how \
                  long lock holders lay preempted. It takes two to three hours, and goes on where \
                  it was stopped; with --quick it takes a quarter of an hour.",
        examples: "  cassata bench lhp --quick\n  \
                   cassata bench lhp --point throughput-on-demand-f5",
    };
    type Options = ();
    type Case = Point;
    type Seen = Measurement;

    fn inputs(&self, bench: &Bench) -> Result<Inputs> {
        let rtos = Images::of(&bench.root).rtos;
        let inputs = Inputs::of(bench)?.linux(bench)?.hypervisor(bench).files("rtos", &[&rtos])?;
        // The launcher builds it for points that run it.
        let own = Images::of(&bench.root).own_kernel;
        let inputs = if own.exists() { inputs.files("linux_own", &[&own])? } else { inputs };
        let kbuild = Images::of(&bench.root).kbuild;
        if kbuild.exists() { inputs.files("kbuild", &[&kbuild]) } else { Ok(inputs) }
    }

    /// Cores take turns, so one machine uses little more than one processor.
    fn side_by_side(&self) -> usize {
        2
    }

    fn cases(&self, extent: Extent, (): &()) -> Vec<Point> {
        plan::points(extent, &Policy::all())
    }

    fn run(&self, point: &Point, bench: &Bench, tell: Tell<'_>) -> Result<Measurement> {
        run::run(point, bench, tell)
    }

    fn answer(&self, found: Findings<Measurement>, _: &Bench) -> Result<Answer> {
        Ok(found.answer())
    }

    fn scenarios(&self) -> Vec<Scenario> {
        vec![smoke::scenario(), smoke::latency_scenario()]
    }
}

/// Compares with `goal` at how many loads a policy is faster than another, in percent of all. `ratios`
/// are its times there, those of the other being 1.
fn faster(name: &str, ratios: Option<Vec<Estimate>>, goal: Goal) -> Check {
    let part = |times: &[Estimate], is_faster: &dyn Fn(&Estimate) -> bool| {
        100.0 * times.iter().filter(|ratio| is_faster(ratio)).count() as f64 / times.len() as f64
    };
    let ratios = ratios.as_deref();
    let value = ratios.map(|all| part(all, &|ratio| ratio.mean < 1.0));
    let check = Check::new(name, value, "%", goal);
    let Some(all) = ratios else { return check };
    let surely = part(all, &|ratio| ratio.range()[1] < 1.0);
    let perhaps = part(all, &|ratio| ratio.range()[0] < 1.0);
    let tell = all.iter().all(|ratio| !ratio.half.is_nan());
    check.within(if tell { [surely, perhaps] } else { [f64::NAN; 2] })
}

/// Everything that was measured.
type Lhp = Findings<Measurement>;

/// The policies of these points, in the order of the table.
fn policies_of(points: &[&Point]) -> Vec<Policy> {
    let there = |policy: &Policy| points.iter().any(|p| p.stage.policy() == Some(*policy));
    Policy::all().into_iter().filter(there).collect()
}

impl Lhp {
    fn of(&self, experiment: Experiment) -> impl Iterator<Item = &Measurement> {
        self.measurements.iter().filter(move |m| m.point.experiment == experiment)
    }

    /// Returns true when a point of this experiment was measured.
    fn has(&self, experiment: Experiment) -> bool {
        self.of(experiment).next().is_some()
    }

    /// Returns true when a point of this experiment is planned.
    fn plans(&self, experiment: Experiment) -> bool {
        self.planned.iter().any(|point| point.experiment == experiment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::sample::Sample;
    use crate::bench::store::Case as _;
    use crate::observe::{Distribution, Lateness};
    use std::collections::BTreeMap;

    fn plan() -> Vec<Point> {
        plan::points(Extent::Full, &Policy::all()[..4])
    }

    /// All points are planned, these were measured.
    pub fn lhp(measurements: Vec<Measurement>) -> Lhp {
        let planned = plan();
        let all = planned.len();
        Lhp { planned, measurements, failures: Vec::new(), all }
    }

    /// These were planned and measured.
    pub fn only(measurements: Vec<Measurement>) -> Lhp {
        let planned: Vec<_> = measurements.iter().map(|m| m.point.clone()).collect();
        let all = planned.len();
        Lhp { planned, measurements, failures: Vec::new(), all }
    }

    /// The planned point whose name begins so, with the times of its runs.
    pub fn measured(name: &str, seconds: &[f64]) -> Measurement {
        let all = [Extent::Full, Extent::Paper].map(|extent| plan::points(extent, &Policy::all()));
        let point = all.into_iter().flatten().find(|point| point.name().starts_with(name)).unwrap();
        Measurement {
            point,
            real_s: 1.0,
            virtual_s: 2.0,
            runs: Sample(seconds.to_vec()),
            rtos: None,
            vcpus: Vec::new(),
            statistics: None,
            spinning: BTreeMap::new(),
            kernel: Vec::new(),
            locks: None,
            builds: Vec::new(),
            wakes: None,
        }
    }

    /// The same with dispatch latencies, ns, and how often each occurred.
    pub fn late(name: &str, dispatch: &[(u32, u64)]) -> Measurement {
        let dispatch = Distribution::from(dispatch.iter().copied().collect::<BTreeMap<_, _>>());
        let activations = dispatch.count();
        let rtos = Lateness { activations, missed: 0, response: dispatch.clone(), dispatch };
        Measurement { rtos: Some(rtos), ..measured(name, &[]) }
    }

    #[test]
    fn one_point_decides_the_goals_for_which_the_rest_is_known() {
        let known = |measurements| {
            let checks = lhp(measurements).checks().into_iter();
            let known = checks.filter(|check| check.value.is_some()).map(|check| check.name);
            known.collect::<Vec<_>>()
        };
        let one = measured("throughput-on-demand-f5", &[0.1, 0.1]);
        assert!(known(vec![one.clone()]).is_empty(), "the ideal line is not known");
        let alone = ["throughput-alone-3", "throughput-alone-4"];
        let [three, four] = alone.map(|name| measured(name, &[0.1, 0.1]));
        assert_eq!(known(vec![one, three, four]), ["on-demand, f = 0.5: above the ideal line"]);
    }

    #[test]
    fn what_was_not_measured_meets_no_goal_and_still_makes_a_page() {
        let nothing = lhp(Vec::new()).answer();
        assert!(nothing.outcome.checks().iter().all(|check| !check.holds()));
        assert!(!nothing.page().contains("PECCS"), "a paper is quoted beside what we have");
        assert!(!nothing.summary().is_empty());
        let one = lhp(vec![measured("throughput-on-demand-f5", &[0.1, 0.1])]).answer();
        let page = one.page();
        assert!(page.contains("PECCS (Figure 1)") && !page.contains("PECCS (Figure 10)"));
    }
}
