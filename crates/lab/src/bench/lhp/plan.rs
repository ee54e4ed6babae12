//! All points of a run of the bench.

use super::jitter;
use super::latency;
use super::point::{Experiment, Linux, Point, Rtos, Stage, Wake};
use super::policy::{NONE, Policy};
use super::realtime;
use super::technique;
use super::throughput::{self, Judged};
use crate::bench::Extent;
use crate::bench::vtime::case::Work;

/// Period of the RTOS in the experiments on throughput. The papers' period is
/// 500 ms, several of which pass in a run of hackbench; here a run takes a tenth
/// of a second, and ten periods pass.
pub const PERIOD_US: u32 = 10_000;
/// The papers' period, for which a run of hackbench has to be longer.
pub const PAPERS_PERIOD_US: u32 = 500_000;
/// Messages of each sender of hackbench to each receiver, with the period above, and with the
/// papers'.
pub const LOOPS: u32 = 100;
pub const LONG_LOOPS: u32 = 2_000;
/// What the RTOS runs of each period, thousandths.
const ALL_LOADS: [u32; 10] = [0, 100, 200, 300, 400, 500, 600, 700, 800, 900];
/// With `--paper` only, these meet all of them. Two are far from all others, and two stand there so that
/// rules are compared.
const SPARSE: [&str; 4] = ["coscheduling", "rt-vcpu", "trap-based-deferred", YARDSTICK];
const SPARSE_LOADS: [u32; 5] = [0, 300, 500, 800, 900];
/// How many runs, which loads, and which policies there are with the papers' period.
const LONG_RUNS: u32 = 4;
const LONG_LOADS: [u32; 5] = [0, 300, 500, 800, 900];
const LONG_COMPARED: [&str; 8] = [
    NONE,
    "on-demand",
    "adaptive",
    "on-demand-fixed",
    "trap-based-deferred",
    "trap-based-paper",
    "delayed-call",
    "delayed-page",
];
/// Periods of the RTOS with which policies that may wait or migrate are compared, besides
/// [`PERIOD_US`]: between the shortest, in which a migration to and fro hardly fits, and the papers'.
/// None divides Linux's tick but the first.
const PERIODS_US: [u32; 4] = [40, SHORT_PERIOD_US, 211, LONG_PERIOD_US];
/// Which loads and policies there are with these, and the runs.
const PERIODS_LOADS: [u32; 4] = [0, 300, 500, 800];
const PERIODS_COMPARED: [&str; 3] = [NONE, "on-demand", "adaptive"];
const PERIODS_RUNS: Runs = (5, 3);
/// Periods where not all is measured.
const FEW_PERIODS_US: [u32; 2] = [40, LONG_PERIOD_US];
const FEW_PERIODS_LOADS: [u32; 1] = [500];
const FEW_PERIODS_RUNS: Runs = (3, 1);
/// What the RTOS runs of [`LONG_PERIOD_US`] where it is measured whether long activations are later
/// than short ones, thousandths.
pub const LONG_LOAD: u32 = 500;
/// On how many cores of its own Linux is measured alone.
pub const DEDICATED: [u32; 4] = [4, 3, 2, 1];
/// Period of the RTOS where its latency is measured. With the papers' 1 ms,
/// 100,000 activations would be 100 s of virtual time, more than an hour for
/// each point.
pub const SHORT_PERIOD_US: u32 = 97;
/// Period of the RTOS that is about as long as the papers'. Neither divides Linux's tick, 4 ms: a
/// period that does meets the same phases of it for ever.
pub const LONG_PERIOD_US: u32 = 997;
/// Mean time between interrupts that no clock foretells.
pub const MEAN_US: u32 = 1_000;
/// How much of these periods a release comes early or late at most, percent.
pub const JITTER_PERCENT: u32 = 10;
/// Timer advances with which latency is measured: none, and the default where the RTOS shares its
/// core, microseconds.
pub const ADVANCES_US: [u32; 2] = [0, 4];
/// How often a part of Linux is built; the first time is not counted.
const BUILDS: u32 = 4;
/// Period of a tick that has nothing else to do, as the paper's.
const TICK_US: u32 = 1_000;

/// Period of the RTOS where migrations are counted.
const MIGRATION_PERIOD_US: u32 = 200;
/// Least time that Linux needs for a KiB of `sha256sum`, microseconds.
const HASH_US_PER_KIB: u32 = 50;

/// What Linux hashes before the RTOS begins, and a little more.
const BEFORE_KIB: u32 = 10_240;

/// Whose latencies are compared in all settings, and whose there are goals for.
const LATE: [&str; 5] = [NONE, "partition", "on-demand", "adaptive", "trap-based"];
const LATE_JUDGED: [&str; 3] = [NONE, "partition", "on-demand"];

/// Whose throughput there are goals for.
pub const COMPARED: [&str; 3] = [NONE, "on-demand", "trap-based"];
/// What is compared where two policies tell the most.
const KEY: [&str; 2] = [NONE, "on-demand"];

/// Under which spinning is counted where there is no room for all: those that leave Linux's vCPUs where they
/// are, or migrate them, by different rules. Under the others, with `--paper` only, the RTOS preempts no
/// vCPU of Linux's, its siblings stop, or what happens is as under one of these.
const SPUN: [&str; 6] =
    [NONE, "on-demand", "adaptive", "trap-based", "trap-based-deferred", "safe-unsafe"];

/// There only so that others are compared with it, and only their throughput:
/// with `trap-based-deferred`, which lacks the interrupt rule, and `trap-based`,
/// which returns later.
const YARDSTICK: &str = "trap-based-eager";

/// The RTOS where spinning is counted: it burns much, so that it shows.
const BURNING: Rtos = Rtos::new(800, PERIOD_US, 0);

/// Cores of the board.
pub const CORES: u32 = 4;

/// The points, in this order.
pub fn points(extent: Extent, policies: &[Policy]) -> Vec<Point> {
    let sizes = match extent {
        Extent::Paper | Extent::Full => Sizes {
            loads: &ALL_LOADS,
            runs: (5, 3),
            close_runs: (9, 3),
            others: &ALL_LOADS,
            others_runs: if extent == Extent::Paper { (5, 3) } else { (3, 1) },
            activations: match extent {
                Extent::Paper => Activations {
                    judged: 100_000,
                    others: 100_000,
                    long: 10_000,
                    unforeseen: 10_000,
                },
                _ => Activations { judged: 30_000, others: 5_000, long: 1_000, unforeseen: 500 },
            },
            migrations: 4_000,
            timed_runs: 4,
            late: &LATE,
            surprised: &LATE,
            thorough: extent == Extent::Paper,
            all: true,
        },
        Extent::Quick => Sizes {
            loads: &[300, 500, 800],
            runs: (3, 1),
            close_runs: (3, 1),
            others: &[800],
            others_runs: (2, 1),
            activations: Activations { judged: 1_500, others: 1_500, long: 0, unforeseen: 80 },
            migrations: 1_000,
            timed_runs: 2,
            late: &LATE[..3],
            surprised: &KEY[1..],
            thorough: false,
            all: false,
        },
    };
    let mut points = sizes.throughput(policies);
    points.extend(sizes.throughput_by_period(policies));
    points.extend(sizes.long_throughput(policies));
    points.extend(jitter::points(extent, policies));
    let policies: Vec<_> = policies.iter().copied().filter(|p| p.name != YARDSTICK).collect();
    points.extend(sizes.latency(&policies));
    points.extend(sizes.unforeseen(&policies));
    points.extend(sizes.overhead());
    points.extend(sizes.migration(&policies));
    points.extend(sizes.kernel(&policies));
    points.extend(sizes.spinning(&policies));
    points.extend(technique::points(extent));
    points.extend(realtime::points(extent));
    // Points that the goals are about come first: a run that is cut short has
    // said the most then.
    points.sort_by_key(|point| !has_goal(point));
    points
}

/// Returns true if a goal is about this point.
fn has_goal(point: &Point) -> bool {
    let policy = point.stage.policy();
    let is = |names: &[&str]| policy.is_some_and(|policy| names.contains(&policy.name));
    match point.experiment {
        Experiment::Throughput if is_long(point) || has_other_period(point) => false,
        Experiment::Throughput => policy.is_none_or(|policy| {
            let load_permille = point.rtos.map_or(0, |rtos| rtos.load_permille);
            throughput::judged(policy.name, load_permille).is_some()
        }),
        Experiment::Latency => point.stage == Stage::Native || point.separation && is(&LATE_JUDGED),
        Experiment::Migration | Experiment::Overhead | Experiment::Kernel => true,
        Experiment::Realtime => true,
        Experiment::Spinning | Experiment::Technique | Experiment::ThroughputJitter => false,
    }
}

/// Returns true for a run of hackbench in which several of the papers' periods pass.
fn is_long(point: &Point) -> bool {
    matches!(point.linux, Linux::Hackbench { loops: LONG_LOOPS, .. })
}

/// Returns true for a run of hackbench beside an RTOS with one of [`PERIODS_US`].
pub fn has_other_period(point: &Point) -> bool {
    point.rtos.is_some_and(|rtos| PERIODS_US.contains(&rtos.period_us))
}

/// Linux and this RTOS under a policy, with separation.
fn beside(rtos: Rtos, experiment: Experiment, linux: &Linux, policy: &Policy) -> Point {
    Point::new(experiment, linux, Stage::shared(*policy), Some(rtos))
}

/// How often the RTOS is activated where its latency is measured.
struct Activations {
    /// With the short period, where there is a goal.
    judged: u32,
    /// With the short period, elsewhere.
    others: u32,
    /// With the long period; 0: that is not measured.
    long: u32,
    /// By interrupts that no clock foretells.
    unforeseen: u32,
}

/// Runs of hackbench in a machine, the first of which is not counted, and how many machines there
/// are, each with another seed.
type Runs = (u32, u32);

struct Sizes {
    /// Thousandths of the period.
    loads: &'static [u32],
    /// They differ by 5 % each, and goals are about 5 %, or about which of two is shorter.
    runs: Runs,
    /// The same where the two are close to each other.
    close_runs: Runs,
    /// The same where there is no goal.
    others: &'static [u32],
    others_runs: Runs,
    activations: Activations,
    migrations: u32,
    timed_runs: u32,
    /// Whose latencies are measured in all settings, and by interrupts that no clock foretells.
    late: &'static [&'static str],
    surprised: &'static [&'static str],
    /// All policies in all settings of the latency, as the papers.
    thorough: bool,
    /// All policies where spinning is counted, and latency without an advance.
    all: bool,
}

impl Sizes {
    fn throughput(&self, policies: &[Policy]) -> Vec<Point> {
        let point = |stage: &Stage, rtos, (runs, seeds): Runs| {
            let linux = Linux::Hackbench { loops: LOOPS, runs };
            let point = Point::new(Experiment::Throughput, &linux, stage.clone(), rtos);
            (1..=seeds).map(move |seed| Point { seed, ..point.clone() })
        };
        let alone = |cores| point(&Stage::Alone { cores }, None, self.runs);
        let mut points: Vec<_> = DEDICATED.into_iter().flat_map(alone).collect();
        for &load_permille in self.loads {
            let rtos = Rtos::new(load_permille, PERIOD_US, 0);
            for &policy in policies {
                let compared = COMPARED.contains(&policy.name);
                let runs = match throughput::judged(policy.name, load_permille) {
                    Some(Judged::Closely) => self.close_runs,
                    Some(Judged::Clearly) => self.runs,
                    None => self.others_runs,
                };
                let is_sparse = !self.thorough && SPARSE.contains(&policy.name);
                let is_met = self.others.contains(&load_permille)
                    && (!is_sparse || SPARSE_LOADS.contains(&load_permille));
                if compared || is_met {
                    points.extend(point(&Stage::shared(policy), Some(rtos), runs));
                }
            }
        }
        points
    }

    /// Returns the points with other periods.
    fn throughput_by_period(&self, policies: &[Policy]) -> Vec<Point> {
        if !self.all {
            return Vec::new();
        }
        let all: (&[u32], &[u32], Runs) = (&PERIODS_US, &PERIODS_LOADS, PERIODS_RUNS);
        let few: (&[u32], &[u32], Runs) = (&FEW_PERIODS_US, &FEW_PERIODS_LOADS, FEW_PERIODS_RUNS);
        let (periods, loads, (runs, seeds)) = if self.thorough { all } else { few };
        let linux = Linux::Hackbench { loops: LOOPS, runs };
        let compared = || policies.iter().filter(|p| PERIODS_COMPARED.contains(&p.name));
        let mut points = Vec::new();
        for (period_us, load) in
            periods.iter().flat_map(|period| loads.iter().map(move |load| (*period, *load)))
        {
            let rtos = Rtos::new(load, period_us, 0);
            let point = |policy| beside(rtos, Experiment::Throughput, &linux, policy);
            let seeded =
                |point: Point| (1..=seeds).map(move |seed| Point { seed, ..point.clone() });
            points.extend(compared().map(point).flat_map(seeded));
        }
        points
    }

    /// Returns the points with the papers' period. A run has to be as long as several of them.
    fn long_throughput(&self, policies: &[Policy]) -> Vec<Point> {
        if !self.thorough {
            return Vec::new();
        }
        let linux = Linux::Hackbench { loops: LONG_LOOPS, runs: LONG_RUNS };
        let point = |stage, rtos| Point::new(Experiment::Throughput, &linux, stage, rtos);
        let alone = DEDICATED.map(|cores| point(Stage::Alone { cores }, None));
        let shared = policies.iter().filter(|p| LONG_COMPARED.contains(&p.name)).flat_map(|p| {
            let rtos = |load: &u32| Some(Rtos::new(*load, PAPERS_PERIOD_US, 0));
            LONG_LOADS.iter().map(move |load| point(Stage::shared(*p), rtos(load)))
        });
        alone.into_iter().chain(shared).collect()
    }

    /// Native, under Cassata, and under Cassata beside a tick each millisecond.
    fn overhead(&self) -> Vec<Point> {
        let runs = self.timed_runs;
        let tick = Rtos::new(0, TICK_US, 0);

        let stages = [
            (Stage::Native, None),
            (Stage::Alone { cores: CORES }, None),
            (Stage::Shared { policy: NONE.into() }, Some(tick)),
        ];
        let amounts = [(Work::Cpu, 8_192), (Work::Calls, 80_000), (Work::Forks, 80)];
        let timed = amounts.into_iter().map(|(work, count)| Linux::Timed { work, count, runs });
        // A build takes minutes.
        let builds = self.thorough.then_some(Linux::Builds { runs: BUILDS });
        let each = timed.chain(builds).flat_map(|linux| {
            let point = move |(stage, rtos)| Point::new(Experiment::Overhead, &linux, stage, rtos);
            stages.clone().map(point)
        });
        each.collect()
    }

    /// Every vCPU of Linux computes, so that each departure is that of a
    /// running one. Linux works longer than the RTOS and switches off after it,
    /// so that a run ends at the same instruction each time.
    fn migration(&self, policies: &[Policy]) -> Vec<Point> {
        let activations = self.migrations;
        // With a timer advance EL2 would depart before the timer fires, and that is measured.
        let rtos = Rtos::new(0, MIGRATION_PERIOD_US, activations);
        let rtos = Rtos { advance_us: Some(0), ..rtos };
        let count = (activations * MIGRATION_PERIOD_US).div_ceil(HASH_US_PER_KIB) + BEFORE_KIB;
        let linux = Linux::Timed { work: Work::Cpu, count, runs: 1 };
        let moving = policies.iter().filter(|p| KEY.contains(&p.name));
        moving.map(|policy| beside(rtos, Experiment::Migration, &linux, policy)).collect()
    }

    fn spinning(&self, policies: &[Policy]) -> Vec<Point> {
        let linux = Linux::Hackbench { loops: LOOPS, runs: self.others_runs.0.min(3) };
        let point = |policy| beside(BURNING, Experiment::Spinning, &linux, policy);
        let counted = |p: &&Policy| self.thorough || SPUN.contains(&p.name);
        let counted = policies.iter().filter(|p| counted(p) && (self.all || KEY.contains(&p.name)));
        counted.map(point).collect()
    }

    /// Of policies that keep Linux's kernel away from the RTOS's core, and of
    /// none, to see that it is counted. One run: the rest is the same again.
    fn kernel(&self, policies: &[Policy]) -> Vec<Point> {
        let linux = Linux::Hackbench { loops: LOOPS, runs: 1 };
        let point = |policy| beside(BURNING, Experiment::Kernel, &linux, policy);
        policies.iter().filter(|p| p.keeps_kernel_away || p.name == NONE).map(point).collect()
    }

    /// The RTOS's latencies: on the bare board; under hackbench with and without timer advance;
    /// and, with the default advance, what separation of priorities and writes make of them.
    fn latency(&self, policies: &[Policy]) -> Vec<Point> {
        let rtos = |period_us, activations, advance_us| {
            let exact = Rtos::new(0, period_us, activations);
            Rtos { jitter_percent: JITTER_PERCENT, advance_us, ..exact }
        };
        let counts =
            |judged| if judged { self.activations.judged } else { self.activations.others };
        let periods = |judged| {
            let both = [(SHORT_PERIOD_US, counts(judged)), (LONG_PERIOD_US, self.activations.long)];
            both.into_iter().filter(|(_, activations)| *activations > 0)
        };
        let bare = periods(true).map(|(period_us, activations)| {
            let rtos = Some(rtos(period_us, activations, None));
            Point::new(Experiment::Latency, &Linux::Absent, Stage::Native, rtos)
        });
        let mut points: Vec<_> = bare.collect();
        points.extend(self.masked(&rtos));
        for (advance_us, policy) in
            ADVANCES_US.iter().flat_map(|advance| policies.iter().map(move |p| (*advance, p)))
        {
            let compared = self.thorough || self.late.contains(&policy.name);
            let point = |period_us, activations, linux, separation| {
                let rtos = rtos(period_us, activations, Some(advance_us));
                let point = beside(rtos, Experiment::Latency, &linux, policy);
                Point { separation, ..point }
            };
            let judged = LATE_JUDGED.contains(&policy.name);
            for (period_us, activations) in periods(judged) {
                // The papers compare their policies without an advance, which they do not know.
                let all = advance_us == 0 && period_us == SHORT_PERIOD_US;
                if compared || all && (self.all || latency::is_of_peccs(policy.name)) {
                    points.push(point(period_us, activations, Linux::BusyHackbench, true));
                }
            }
            if advance_us == 0 && PERIODS_COMPARED.contains(&policy.name) && self.all {
                // Long activations that nothing foretells: whether they wait for a departure.
                let rtos = rtos(LONG_PERIOD_US, self.activations.long, Some(advance_us));
                let rtos = Rtos { load_permille: LONG_LOAD, ..rtos };
                let linux = Linux::BusyHackbench;
                points.push(beside(rtos, Experiment::Latency, &linux, policy));
            }
            if compared && advance_us > 0 {
                let more = [
                    (Linux::BusyHackbench, false),
                    (Linux::BusyWrite, true),
                    (Linux::BusyWrite, false),
                ];
                let point =
                    |(linux, separation)| point(SHORT_PERIOD_US, counts(false), linux, separation);
                points.extend(more.map(point));
            }
        }
        points
    }
}

impl Sizes {
    /// What a layer without interrupt priorities would make of latencies, and what stands beside that.
    /// Under hackbench the latter is a point of all policies.
    fn masked(&self, rtos: &impl Fn(u32, u32, Option<u32>) -> Rtos) -> Vec<Point> {
        let rtos = rtos(LONG_PERIOD_US, self.activations.long, Some(0));
        if rtos.activations == 0 {
            return Vec::new();
        }
        let point = |linux, policy: &str, separation| {
            let stage = Stage::Shared { policy: policy.into() };
            let point = Point::new(Experiment::Latency, &linux, stage, Some(rtos));
            Point { separation, ..point }
        };
        let (write, hackbench) = (Linux::BusyWrite, Linux::BusyHackbench);
        vec![
            point(write.clone(), latency::MASKED, false),
            point(write, NONE, true),
            point(hackbench, latency::MASKED, false),
        ]
    }

    /// The RTOS woken by what no clock foretells; a policy for real-time VMs would let its second
    /// vCPU make way too, and is left out.
    fn unforeseen(&self, policies: &[Policy]) -> Vec<Point> {
        let mut points = Vec::new();
        for wake in Wake::UNFORESEEN {
            let rtos = Rtos { wake, ..Rtos::new(0, MEAN_US, self.activations.unforeseen) };
            if wake.is_on_the_bare_board() {
                let bare =
                    Point::new(Experiment::Latency, &Linux::Absent, Stage::Native, Some(rtos));
                points.push(bare);
            }
            let asked = |p: &Policy| self.thorough || self.surprised.contains(&p.name);
            let compared = |p: &&Policy| !p.for_rtos && asked(p);
            let point = |policy| beside(rtos, Experiment::Latency, &Linux::BusyHackbench, policy);
            points.extend(policies.iter().filter(compared).map(point));
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::store::Case as _;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn no_two_points_share_a_name() {
        for extent in [Extent::Paper, Extent::Full, Extent::Quick] {
            let points = points(extent, &Policy::all());
            let names: BTreeSet<_> = points.iter().map(Point::name).collect();
            assert_eq!(names.len(), points.len());
        }
    }

    #[test]
    fn points_have_descriptions_of_their_own() {
        let points = points(Extent::Full, &Policy::all());
        let texts: BTreeSet<_> = points.iter().map(Point::config_text).collect();
        // A point of spinning and one of the kernel may be told the same.
        assert!(texts.len() > points.len() * 9 / 10 && !texts.contains(""));
        assert!(texts.iter().any(|text| text.contains("quantum = ")));
    }

    #[test]
    fn points_with_a_goal_have_the_most_runs() {
        let points = points(Extent::Full, &Policy::all());
        let named = |name: &str| points.iter().filter(|p| p.name().starts_with(name)).count();
        assert_eq!(named("throughput-on-demand-f9-l100-x5"), 3);
        assert_eq!(named("throughput-none-f5-l100-x5"), 3);
        assert_eq!(named("throughput-none-f4-l100-x9"), 3);
        assert_eq!(named("throughput-trap-based-f4-l100-x9"), 3);
        assert_eq!(named("throughput-on-demand-f4-l100-x5"), 3);
        assert_eq!(named("throughput-none-f3-l100-x3"), 1);
        assert_eq!(named("throughput-alone-3-l100-x5"), 3);
        assert_eq!(named("throughput-partition-f9-l100-x3"), 1);
    }

    /// An advance hides what a policy does to an activation; without one, all are compared.
    #[test]
    fn no_latency_is_measured_at_a_fixed_phase_of_the_tick_of_linux() {
        const TICK_US: u32 = 4_000;
        let count = |extent, policies: &[Policy]| {
            let points = points(extent, policies);
            let late = points.iter().filter(|p| p.experiment == Experiment::Latency);
            let rtos: Vec<_> = late.filter_map(|p| p.rtos).collect();
            let at_random = |rtos: &&Rtos| rtos.wake != Wake::Timer;
            assert!(
                rtos.iter().all(|rtos| !TICK_US.is_multiple_of(rtos.period_us) || at_random(&rtos))
            );
            let timed = |rtos: &Rtos| rtos.wake == Wake::Timer;
            assert!(rtos.iter().all(|rtos| rtos.jitter_percent == 10 || !timed(rtos)));
            rtos.into_iter().filter(timed).count()
        };
        let all = Policy::all();
        let without_yardstick = all.len() - 1;
        // Two on the bare board; two periods, two advances; three more settings with an advance. Long
        // activations. And three without priorities of interrupts, or beside that.
        let long = PERIODS_COMPARED.len();
        assert_eq!(count(Extent::Paper, &all), 2 + 3 + without_yardstick * (2 * 2 + 3) + long);
        assert!(count(Extent::Full, &all) < count(Extent::Paper, &all));
        let named = |name: &str| points(Extent::Full, &all).iter().any(|p| p.name() == name);
        for policy in all.iter().filter(|policy| policy.name != YARDSTICK) {
            let counted = if LATE_JUDGED.contains(&policy.name) { 30_000 } else { 5_000 };
            let name = format!("latency-{}-hackbench-97us-advance0-apart-{counted}", policy.name);
            assert!(named(&name), "{name}");
        }
        assert!(named("latency-partition-hackbench-997us-advance4-apart-1000"));
        assert!(named("latency-native-rtc-500") && !named("latency-native-grant-500"));
        assert!(named("latency-on-demand-hackbench-grant-apart-500"));
    }

    /// The longest of more activations is longer by chance.
    #[test]
    fn longest_latencies_that_goals_compare_are_of_equally_many_activations() {
        for extent in [Extent::Paper, Extent::Full, Extent::Quick] {
            let points = points(extent, &Policy::all());
            let late = points.iter().filter(|p| p.experiment == Experiment::Latency);
            let compared = late.filter(|p| has_goal(p) && p.separation);
            let mut counts = BTreeMap::new();
            for (linux, rtos) in compared.filter_map(|p| Some((p.linux.clone(), p.rtos?))) {
                // The bare board stands beside hackbench.
                let writes = linux == Linux::BusyWrite;
                let setting = (writes, rtos.period_us, rtos.load_permille, rtos.wake.name());
                counts.entry(setting).or_insert_with(BTreeSet::new).insert(rtos.activations);
            }
            assert!(counts.len() > 2 && counts.values().all(|all| all.len() == 1), "{counts:?}");
        }
    }

    #[test]
    fn points_with_a_goal_come_first() {
        for extent in [Extent::Full, Extent::Quick] {
            let points = points(extent, &Policy::all());
            let goals = points.iter().take_while(|point| has_goal(point)).count();
            assert!(!points[goals..].iter().any(has_goal));
            assert!(points[..3].iter().all(|point| point.stage.policy().is_none()));
            let others = points[goals..].iter().map(|point| point.experiment);
            assert!(others.clone().count() > goals / 4 && goals > 20);
        }
    }

    #[test]
    fn a_quick_run_has_points_for_each_goal() {
        let points = points(Extent::Quick, &Policy::all());
        let has = |name: &str| points.iter().any(|point| point.name().starts_with(name));
        for tenths in [3, 5, 8] {
            assert!(has(&format!("throughput-on-demand-f{tenths}")));
            assert!(has(&format!("throughput-trap-based-f{tenths}")));
        }
        assert!(has("throughput-none-f5") && !has("throughput-balance-f5"));
        assert!(has("throughput-balance-f8") && has("kernel-trap-based-deferred"));
        for (linux, advance, separation) in
            [("hackbench", 0, "apart"), ("write", 4, "apart"), ("write", 4, "together")]
        {
            let name = format!("latency-on-demand-{linux}-97us-advance{advance}-{separation}");
            assert!(has(&name), "each drawing");
        }
        assert!(has("latency-native-97us") && !has("latency-native-997us"));
    }

    /// Hours that two machines side by side need for all.
    fn hours(extent: Extent) -> f64 {
        let seconds = points(extent, &Policy::all()).iter().map(Point::work).sum::<f64>();
        seconds / 2.0 / 3_600.0
    }

    #[test]
    fn no_run_takes_longer_than_was_promised() {
        let (full, quick) = (hours(Extent::Full), hours(Extent::Quick));
        assert!(full < 2.0, "{full}");
        assert!(quick < 0.25, "{quick}");
    }

    /// A few of those that the estimate is fitted to, with seconds measured.
    #[test]
    fn the_estimate_is_near_what_was_measured() {
        let measured = [
            ("on-demand", 100, 12, 79.0),
            ("on-demand", 800, 12, 72.0),
            ("on-demand", 900, 12, 77.0),
            ("none", 800, 12, 73.0),
            ("none", 900, 12, 77.0),
            ("trap-based", 700, 12, 74.0),
            ("trap-based", 900, 12, 100.0),
            ("partition", 0, 3, 30.0),
            ("balance", 0, 3, 29.0),
            ("safe-unsafe", 0, 3, 23.0),
            ("trap-based-deferred", 500, 3, 48.0),
            ("trap-based-eager", 500, 3, 42.0),
        ];
        let estimate = |(name, load_permille, runs): (&str, u32, u32)| {
            let stage = Stage::shared(Policy::named(name).unwrap());
            let rtos = Some(Rtos::new(load_permille, PERIOD_US, 0));
            let linux = Linux::Hackbench { loops: 100, runs };
            Point::new(Experiment::Throughput, &linux, stage, rtos).work()
        };
        let (mut estimates, mut seconds) = (0.0, 0.0);
        for (name, load, runs, real_s) in measured {
            let estimate = estimate((name, load, runs));
            let ratio = real_s / estimate;
            assert!((2.0 / 3.0..1.5).contains(&ratio), "{name}, {load}: {estimate}");
            estimates += estimate;
            seconds += real_s;
        }
        assert!((0.9..1.0).contains(&(seconds / estimates)), "{seconds} of {estimates}");
    }

    #[test]
    fn the_yardstick_is_measured_where_others_are_compared_with_it() {
        let points = points(Extent::Full, &Policy::all());
        let of = |name: &str| {
            let named = |point: &&Point| point.stage.policy().is_some_and(|p| p.name == name);
            points.iter().filter(named).map(|point| point.experiment).collect::<Vec<_>>()
        };
        assert_eq!(of(YARDSTICK), [Experiment::Throughput; SPARSE_LOADS.len()]);
        let long =
            |extent| super::points(extent, &Policy::all()).iter().filter(|p| is_long(p)).count();
        let policies = Policy::all().iter().filter(|p| LONG_COMPARED.contains(&p.name)).count();
        assert_eq!((long(Extent::Paper), long(Extent::Full)), (4 + 5 * policies, 0));
        assert!(of("trap-based-deferred").contains(&Experiment::Latency));
    }

    #[test]
    fn spinning_is_counted_under_all_policies_where_there_is_room() {
        let counted = |extent| {
            let points = points(extent, &Policy::all());
            points.iter().filter(|p| p.experiment == Experiment::Spinning).count()
        };
        assert_eq!(counted(Extent::Paper), Policy::all().len() - 1);
        assert_eq!((counted(Extent::Full), counted(Extent::Quick)), (SPUN.len(), KEY.len()));
    }

    #[test]
    fn every_policy_meets_every_load_but_for_a_few() {
        let points = points(Extent::Full, &Policy::all());
        let papers = super::points(Extent::Paper, &Policy::all());
        let met = |points: &[Point], policy: &Policy| {
            let of = |point: &&Point| {
                point.experiment == Experiment::Throughput && point.stage.policy() == Some(*policy)
            };
            let loads = points.iter().filter(of).filter_map(|point| point.rtos);
            let mut loads: Vec<_> = loads.map(|rtos| rtos.load_permille).collect();
            loads.sort_unstable();
            loads.dedup();
            loads
        };
        for policy in Policy::all() {
            let is_sparse = SPARSE.contains(&policy.name);
            let expected: &[u32] = if is_sparse { &SPARSE_LOADS } else { &ALL_LOADS };
            assert_eq!(met(&points, &policy), expected, "{}", policy.name);
            assert_eq!(met(&papers, &policy), ALL_LOADS, "{}", policy.name);
        }
    }
}
