//! What becomes of Linux when the RTOS preempts the holder of a lock, and what
//! each policy does about it: the experiments of the papers, in virtual time.
//!
//! | module | story |
//! | --- | --- |
//! | [`policy`] | what is compared: all that the scheduler knows |
//! | [`point`], [`plan`] | one run of a machine, all of them |
//! | [`description`] | a point's system |
//! | [`run`] | running it |
//! | [`basis`] | what measurements depend on |
//! | [`throughput`], [`latency`], [`migration`], [`overhead`], [`seen`] | the figures |
//! | [`report`] | for people, beside what the papers say |
//! | [`short`] | one point as a test |

pub mod basis;
pub mod description;
pub mod latency;
pub mod migration;
pub mod overhead;
pub mod plan;
pub mod point;
pub mod policy;
mod report;
pub mod run;
pub mod seen;
mod short;
pub mod throughput;

use super::Extent;
use super::campaign::{Campaign, make};
use super::store::{Named, Store};
use crate::progress::Progress;
use crate::report::alone;
use crate::results::{Check, Outcome};
use crate::suite::Bench;
use basis::Basis;
use latency::{DRAWN, Latency};
use miette::{Result, miette};
use point::{Experiment, Point};
use policy::Policy;
use run::Measurement;
use serde_json::{Value, json};
pub use short::scenario;
use std::collections::BTreeMap;

/// Machines at the same time, where the host has two processors: cores take
/// turns, so one machine uses little more than one.
const SIDE_BY_SIDE: usize = 2;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Request {
    /// How thoroughly.
    pub extent: Extent,
    /// What is known, too.
    pub fresh: bool,
    /// Only points whose names begin so; none: all.
    pub only: Option<String>,
}

impl Request {
    /// Whether there is something to measure.
    ///
    /// # Errors
    /// When no point is called so; names those that are there.
    pub fn check(&self) -> Result<()> {
        asked(plan::points(self.extent, &Policy::all()), self).map(drop)
    }
}

/// Everything that was measured.
#[derive(Debug)]
pub struct Lhp {
    planned: Vec<Point>,
    measurements: Vec<Measurement>,
    /// Points that brought nothing, and why.
    failures: Vec<(Point, String)>,
    basis: Option<Basis>,
    /// How many points a whole run of this extent has.
    all: usize,
}

/// Measures; what an earlier bench has measured with the same QEMU,
/// instrument, hypervisor and guests, told the same, is not measured again.
///
/// # Errors
/// When there is no such point, files cannot be read or written, and on Ctrl-C.
/// A point that fails is no error: its goals are not met.
pub fn measure(request: &Request, bench: &Bench, progress: &mut Progress) -> Result<Lhp> {
    let directory = bench.directory.join("points");
    make(&directory)?;
    let basis = Basis::of(bench)?;
    let store = Store::new(directory, basis.clone());
    let points = plan::points(request.extent, &Policy::all());
    let all = points.len();
    let (planned, others) = asked(points, request)?;
    let host = std::thread::available_parallelism().map_or(1, usize::from);
    let campaign = Campaign {
        store: &store,
        fresh: request.fresh,
        side_by_side: SIDE_BY_SIDE.min(host),
        interrupt: &bench.interrupt,
    };
    let found = campaign
        .run(&planned, progress, |point: &Point, logs, tell| run::run(point, bench, logs, tell))?;
    // What is known of the others is shown too: a point is compared with them.
    let known: Vec<Measurement> = others.iter().filter_map(|point| store.find(point)).collect();
    let planned = known.iter().map(|m| m.point.clone()).chain(planned).collect();
    let measurements = known.into_iter().chain(found.measurements).collect();
    Ok(Lhp { planned, measurements, failures: found.failures, basis: Some(basis), all })
}

/// The points that were asked for, and all others.
fn asked(points: Vec<Point>, request: &Request) -> Result<(Vec<Point>, Vec<Point>)> {
    let Some(only) = &request.only else { return Ok((points, Vec::new())) };
    let (asked, others): (Vec<_>, Vec<_>) =
        points.into_iter().partition(|point| point.name().starts_with(only.as_str()));
    if asked.is_empty() {
        let names: Vec<_> = others.iter().map(Point::name).collect();
        return Err(miette!(help = names_like(only, &names), "no point is called `{only}`"));
    }
    Ok((asked, others))
}

/// Which points there are: all of the experiment that was asked for, or one of each.
fn names_like(only: &str, names: &[String]) -> String {
    let experiment = |name: &str| name.split('-').next().unwrap_or_default().to_owned();
    let (mut of_wanted, mut one_of_each) = (String::new(), BTreeMap::new());
    for name in names {
        if experiment(name) == experiment(only) {
            of_wanted += &format!("\n  {name}");
        }
        one_of_each.entry(experiment(name)).or_insert(name);
    }
    if of_wanted.is_empty() {
        let example = |(of, name)| format!("\n  {of}-, for example {name}");
        of_wanted = one_of_each.into_iter().map(example).collect();
    }
    format!("these are there, and the beginning of a name is enough:{of_wanted}")
}

/// The policies of these points, in the order of the table.
fn policies_of(points: &[&Point]) -> Vec<Policy> {
    let there = |policy: &Policy| points.iter().any(|p| p.stage.policy() == Some(*policy));
    Policy::all().into_iter().filter(there).collect()
}

impl Lhp {
    fn of(&self, experiment: Experiment) -> impl Iterator<Item = &Measurement> {
        self.measurements.iter().filter(move |m| m.point.experiment == experiment)
    }

    fn checks(&self) -> Vec<Check> {
        let parts = [
            self.throughput().checks(),
            self.latency_checks(),
            self.migration_checks(),
            self.overhead_checks(),
            self.kernel_checks(),
        ];
        let mut checks: Vec<_> = parts.into_iter().flatten().collect();
        if self.planned.len() < self.all {
            // Goals that need points nobody asked for are not missed.
            checks.retain(|check| check.value.is_some());
        }
        checks.push(Check::done("every point asked for was measured", self.failures.is_empty()));
        checks
    }

    /// Figures and checks.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let mut outcome = Outcome::new("lhp");
        if let Some(basis) = &self.basis {
            basis.common.record(&mut outcome);
            outcome.parameter("hypervisor_crc32", basis.hypervisor.clone());
            outcome.parameter("rtos_crc32", basis.rtos.clone());
        }
        outcome.parameter("points", self.planned.len());
        let failures = self.failures.iter();
        let failures = failures.map(|(point, why)| json!({ "point": point.name(), "why": why }));
        outcome.figure("failures", failures.collect::<Vec<_>>());
        outcome.figure("throughput", self.throughput().json());
        outcome.figure("latency", self.latency_json());
        outcome.figure("migration", self.migration_json());
        outcome.figure("overhead", self.overhead_json());
        outcome.figure("lock_holder_preemption", self.seen_json());
        outcome.figure("kernel_instructions_by_core", self.kernel_json());
        let real = self.measurements.iter().map(|m| (m.point.name(), Value::from(m.real_s)));
        outcome.figure("real_s", Value::Object(real.collect()));
        self.checks().into_iter().for_each(|check| outcome.check(check));
        outcome
    }

    /// Files for other programs, with their names: what was measured of each
    /// experiment, and what is drawn of it.
    #[must_use]
    pub fn files(&self) -> Vec<(String, String)> {
        let throughput = self.throughput();
        let mut files = vec![
            ("throughput.csv".into(), throughput.csv()),
            ("latency.csv".into(), self.latency_csv()),
            ("migration.csv".into(), self.migration_csv()),
            ("overhead.csv".into(), self.overhead_csv()),
            ("spinning.csv".into(), self.seen_csv()),
            ("kernel.csv".into(), self.kernel_csv()),
        ];
        let latencies = Latency::ALL.map(|latency| self.latency_figures(latency, &DRAWN));
        let latencies = latencies.into_iter().flatten().map(|one| (one.file, one.drawing));
        let seen = self.seen_figures().map(|(_, file, drawing)| (file.into(), drawing));
        let curves = self.of(Experiment::Throughput).next().map(|_| throughput.chart().draw());
        let others = [
            ("throughput.svg".into(), curves.unwrap_or_default()),
            ("migration.svg".into(), self.migration_figure()),
            ("overhead.svg".into(), self.overhead_figure()),
        ];
        let drawings = latencies.chain(others).chain(seen);
        files.extend(drawings.filter_map(|(file, drawing)| Some((file, alone(&drawing)?))));
        files
    }
}

#[cfg(test)]
mod tests {
    use super::run::Lateness;
    use super::*;
    use crate::bench::sample::Sample;

    fn plan() -> Vec<Point> {
        plan::points(Extent::Full, &Policy::all()[..4])
    }

    /// All points are planned, these were measured.
    pub fn lhp(measurements: Vec<Measurement>) -> Lhp {
        let planned = plan();
        let all = planned.len();
        Lhp { planned, measurements, failures: Vec::new(), basis: None, all }
    }

    /// The planned point whose name begins so, with the times of its runs.
    pub fn measured(name: &str, seconds: &[f64]) -> Measurement {
        let all = plan::points(Extent::Full, &Policy::all());
        let point = all.into_iter().find(|point| point.name().starts_with(name)).unwrap();
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
        }
    }

    /// The same with dispatch latencies, ns, and how often each occurred.
    pub fn late(name: &str, dispatch: &[(u32, u64)]) -> Measurement {
        let dispatch: BTreeMap<_, _> = dispatch.iter().copied().collect();
        let activations = dispatch.values().sum();
        let rtos = Lateness { activations, missed: 0, response: dispatch.clone(), dispatch };
        Measurement { rtos: Some(rtos), ..measured(name, &[]) }
    }

    #[test]
    fn who_asks_for_a_point_has_the_goals_that_it_decides() {
        let one = || vec![measured("throughput-on-demand-f5", &[0.1, 0.1])];
        let names = |lhp: &Lhp| lhp.checks().into_iter().map(|c| c.name).collect::<Vec<_>>();
        let whole = lhp(one());
        let more = whole.all + 1;
        let part = Lhp { all: more, ..lhp(one()) };
        assert!(names(&whole).iter().any(|name| name.starts_with("on-demand, f = 0.5")));
        assert_eq!(
            names(&part),
            ["every point asked for was measured"],
            "the ideal line is not known"
        );
        let alone = ["throughput-alone-3", "throughput-alone-4"];
        let known = alone.map(|name| measured(name, &[0.1, 0.1]));
        let part = Lhp { all: more, ..lhp(one().into_iter().chain(known).collect()) };
        let expected =
            ["on-demand, f = 0.5: above the ideal line", "every point asked for was measured"];
        assert_eq!(names(&part), expected);
    }

    #[test]
    fn a_point_is_found_by_the_beginning_of_its_name() {
        let request =
            |only: &str| Request { extent: Extent::Full, fresh: false, only: Some(only.into()) };
        let (found, others) = asked(plan(), &request("throughput-none-f5")).unwrap();
        assert_eq!((found.len(), found.len() + others.len()), (1, plan().len()));
        let help =
            |only: &str| asked(plan(), &request(only)).unwrap_err().help().unwrap().to_string();
        let of_experiment = help("throughput-nobody");
        assert!(of_experiment.contains("throughput-none-f5"), "{of_experiment}");
        assert!(!of_experiment.contains("latency-none"), "{of_experiment}");
        let experiments = help("thruput");
        assert!(experiments.contains("  latency-, for example latency-"), "{experiments}");
        assert!(experiments.lines().count() < 10, "{experiments}");
    }

    #[test]
    fn what_was_not_measured_meets_no_goal_and_still_makes_a_page() {
        let nothing = lhp(Vec::new());
        let outcome = nothing.outcome();
        let failing = outcome.checks().iter().filter(|check| !check.holds()).count();
        assert_eq!(failing, outcome.checks().len() - 1, "but the last: nothing failed");
        let page = nothing.report(&outcome).render(&outcome);
        assert!(!page.contains("PECCS"), "a paper is quoted beside what we have");
        assert!(!nothing.summary(&outcome).is_empty());
        let one = lhp(vec![measured("throughput-on-demand-f5", &[0.1, 0.1])]);
        let page = one.report(&one.outcome()).render(&one.outcome());
        assert!(page.contains("PECCS (Figure 1)") && !page.contains("PECCS (Figure 10)"));
    }
}
