//! What the book quotes: the few figures of each experiment that its text is about.

use super::Lhp;
use super::latency::{self, LOADS, NATIVE, Setting};
use super::lock_holder_preemption::WAITED;
use super::overhead::{ALONE, TICKING};
use super::plan::{self, ADVANCES_US, DEDICATED, LONG_PERIOD_US, SHORT_PERIOD_US};
use super::point::{Experiment, Point, Stage, Wake};
use super::policy::Policy;
use super::throughput::{TOLD, ms, share, told};
use crate::bench::experiment::Extent;
use crate::bench::vtime::case::Work;
use crate::dataset::{Dataset, Unit};
use crate::observe::Distribution;
use crate::results::Check;
use crate::table::Table;

/// Policies whose throughput the text compares.
const POLICIES: [&str; 6] =
    ["on-demand", "trap-based", "none", "balance", "safe-unsafe", "partition"];
/// The others, which are measured at few loads.
const FEW: [&str; 4] = ["coscheduling", "rt-vcpu", "trap-based-deferred", "trap-based-eager"];
/// What of latencies it compares.
const LATE: [&str; 5] = [NATIVE, "partition", "none", "on-demand", "trap-based"];
/// Policies whose lock holders it compares.
const COMPARED: [&str; 2] = ["none", "on-demand"];
/// Rows of the table of a migration's parts.
const PARTS: [&str; 2] = ["departure, before the RTOS runs", "round trip, both ends"];

/// A figure of a distribution, nanoseconds.
type Figure = fn(&Distribution) -> Option<f64>;

/// A block of the book: what some experiments found, and what is demanded and stated of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Throughput,
    Latency,
    Cost,
    /// Only `--paper` has its points.
    Builds,
    Techniques,
}

impl Part {
    const ALL: [Self; 5] =
        [Self::Throughput, Self::Latency, Self::Cost, Self::Builds, Self::Techniques];

    /// What stands in the block's marks.
    const fn block(self) -> &'static str {
        match self {
            Self::Throughput => "bench lhp",
            Self::Latency => "bench lhp latency",
            Self::Cost => "bench lhp cost",
            Self::Builds => "bench lhp builds",
            Self::Techniques => "bench lhp techniques",
        }
    }

    fn has(self, point: &Point) -> bool {
        use Experiment::{
            Kernel, Latency, Migration, Overhead, Realtime, Spinning, Technique, Throughput,
            ThroughputJitter,
        };
        self == match point.experiment {
            Throughput | ThroughputJitter => Self::Throughput,
            Latency | Realtime => Self::Latency,
            Overhead if point.builds() => Self::Builds,
            Migration | Overhead | Spinning | Kernel => Self::Cost,
            Technique => Self::Techniques,
        }
    }

    /// Returns the points that a block is about.
    fn points(self) -> Vec<Point> {
        let extent = if self == Self::Builds { Extent::Paper } else { Extent::Full };
        let mut points = plan::points(extent, &Policy::all());
        points.retain(|point| self.has(point));
        points
    }
}

impl Lhp {
    /// Judges everything.
    pub(super) fn checks(&self) -> Vec<Check> {
        Part::ALL.into_iter().flat_map(|part| self.checks_of(part)).collect()
    }

    fn checks_of(&self, part: Part) -> Vec<Check> {
        let checks = match part {
            Part::Throughput => {
                vec![self.throughput().checks(), self.jitter_checks(), self.adaptive_times()]
            }
            Part::Latency => {
                vec![self.latency_checks(), self.adaptive_latencies(), self.realtime_checks()]
            }
            Part::Cost => {
                vec![self.migration_checks(), self.overhead_checks(), self.kernel_checks()]
            }
            Part::Builds => vec![self.builds_checks()],
            Part::Techniques => vec![self.technique_checks()],
        };
        checks.concat()
    }

    /// Returns the blocks of the book all of whose points were measured, in Markdown. So a block can be
    /// written when its own experiments are done, without the hours of the others.
    pub(super) fn quoted(&self) -> Vec<(&'static str, String)> {
        let whole = Part::ALL.into_iter().filter(|part| self.covers(&part.points()));
        whole.map(|part| (part.block(), self.quoted_part(part))).collect()
    }

    fn quoted_part(&self, part: Part) -> String {
        let data = match part {
            Part::Throughput => {
                let [dedicated, shared] = self.quoted_throughput();
                let (others, adaptive) = (self.quoted_others(), self.adaptive_data());
                vec![dedicated, shared, others, adaptive, self.jitter_data()]
            }
            Part::Latency => {
                let [short, long] = self.quoted_latency();
                let (separation, realtime) = (self.quoted_separation(), self.realtime_data());
                vec![short, long, self.quoted_unforeseen(), separation, realtime]
            }
            Part::Cost => {
                let parts = self.migration_data().only("part", &PARTS);
                let (overhead, spinning) = (self.quoted_overhead(), self.quoted_spinning());
                vec![parts, overhead, spinning, self.kernel_data()]
            }
            Part::Builds => vec![self.builds_data()],
            Part::Techniques => self.quoted_techniques(),
        };
        let some = data.iter().filter(|data| !data.is_empty());
        let tables = some.map(|data| data.table().titled_markdown());
        let checks = self.checks_of(part);
        tables.chain(quoted_checks(&checks)).collect::<Vec<_>>().join("\n")
    }

    fn quoted_throughput(&self) -> [Dataset; 2] {
        let found = self.throughput();
        let title = format!("hackbench on dedicated cores, {TOLD}");
        let alone = Dataset::of("alone", &title, DEDICATED)
            .name("cores", |cores| *cores)
            .name("mean", |cores| found.alone_runs(*cores).map(told));
        let title = format!("hackbench beside the RTOS, {TOLD}");
        let mut all = Dataset::of("shared", &title, &found.loads)
            .name("f", |load| share(**load))
            .name("ideal", |load| found.ideal(**load).map(ms))
            .name("papers' ideal", |load| found.papers_ideal(**load).map(ms));
        for policy in POLICIES {
            let named = Policy::named(policy);
            all = all.name(policy, |load| found.at(named?, **load).map(told));
            if policy == POLICIES[0] {
                all = all
                    .column("above ideal", Unit::Change, |load| found.above_ideal(named?, **load))
                    .column("above the papers'", Unit::Change, |load| {
                        found.above_papers_ideal(named?, **load)
                    });
            }
        }
        [alone.done(), all.done()]
    }

    /// Policies that are measured at few loads.
    fn quoted_others(&self) -> Dataset {
        let found = self.throughput();
        let time = |policy: &str, load| found.at(Policy::named(policy)?, load).map(told);
        let loads = found.loads.iter().copied();
        let loads = loads.filter(|load| FEW.iter().any(|policy| time(policy, *load).is_some()));
        let title = format!("hackbench under other policies, {TOLD}");
        let mut all = Dataset::of("others", &title, loads).name("f", |load| share(*load));
        for policy in FEW {
            all = all.name(policy, |load| time(policy, *load));
        }
        all.done()
    }

    /// vlk's Figures 5 and 6: the longest latencies.
    fn quoted_separation(&self) -> Dataset {
        let title = format!(
            "Longest dispatch latency each {LONG_PERIOD_US} µs, no advance, by separation of priorities"
        );
        Dataset::of("separation", &title, &LOADS)
            .name("linux", |(_, name)| *name)
            .head("")
            .name("n", |(load, _)| self.separated_activations(load))
            .column("without", Unit::Nanoseconds, |(load, _)| Some(self.separated(load)?[0]))
            .column("with", Unit::Nanoseconds, |(load, _)| Some(self.separated(load)?[1]))
            .done()
    }

    /// With the short period, with and without an advance; with the long one.
    fn quoted_latency(&self) -> [Dataset; 2] {
        [SHORT_PERIOD_US, LONG_PERIOD_US].map(|period_us| {
            let title = format!(
                "Dispatch latency under hackbench, with separation of priorities, each {period_us} µs"
            );
            let activations = |policy: &&str| {
                let settings = ADVANCES_US.map(|advance_us| Setting::hackbench(period_us, advance_us));
                let late = settings.iter().filter_map(|setting| self.late(policy, setting));
                latency::counted(late.map(|late| late.dispatch.count()))
            };
            let mut all = Dataset::of("latency", &title, LATE)
                .name("policy", |policy| *policy)
                .head("")
                .name("n", activations);
            for (advance_us, how) in [(0, "no advance"), (4, "advance 4 µs")] {
                let setting = Setting::hackbench(period_us, advance_us);
                let figures: [(&str, Figure); 3] = [
                    ("mean", Distribution::mean),
                    ("p99.9", |all| all.told_percentile(999).map(f64::from)),
                    ("max", |all| all.max().map(f64::from)),
                ];
                for (name, figure) in figures {
                    let of = |policy: &&str| self.dispatch(policy, &setting, figure);
                    let key = format!("{name}_advance{advance_us}");
                    all = all.column(&key, Unit::Nanoseconds, of).head(&format!("{name}, {how}"));
                }
            }
            all.done()
        })
    }

    /// By what wakes the RTOS; the bare board has no mutexes between VMs.
    fn quoted_unforeseen(&self) -> Dataset {
        let title = "Dispatch latency under hackbench, interrupts at random times";
        let rows = Wake::UNFORESEEN.into_iter().flat_map(|wake| {
            let policies = LATE.into_iter();
            let there =
                policies.filter(move |policy| *policy != NATIVE || wake.is_on_the_bare_board());
            there.map(move |policy| (wake, policy))
        });
        let mut all = Dataset::of("unforeseen", title, rows)
            .name("interrupt", |(wake, policy)| format!("{}, {policy}", wake.about()))
            .head("")
            .name("n", |(wake, policy)| {
                Some(self.late(policy, &Setting::unforeseen(*wake))?.dispatch.count())
            });
        let figures: [(&str, Figure); 3] = [
            ("mean", Distribution::mean),
            ("p99", |all| all.told_percentile(990).map(f64::from)),
            ("max", |all| all.max().map(f64::from)),
        ];
        for (name, figure) in figures {
            let of = |(wake, policy): &(Wake, &str)| {
                self.dispatch(policy, &Setting::unforeseen(*wake), figure)
            };
            all = all.column(name, Unit::Nanoseconds, of);
        }
        all.done()
    }

    fn quoted_overhead(&self) -> Dataset {
        let works = [(Work::Cpu, "computing"), (Work::Calls, "system calls")];
        let mut all = Dataset::of("overhead", "What Linux loses against the bare board", works)
            .name("work", |(_, name)| *name)
            .head("");
        for (place, head) in [(ALONE, "under Cassata alone"), (TICKING, TICKING)] {
            let lost = |(work, _): &(Work, _)| self.lost(*work, place);
            all = all.column(place, Unit::Change, lost).head(head).digits(2);
        }
        all.done()
    }

    fn quoted_spinning(&self) -> Dataset {
        let measured = |policy: &str| {
            let stage = Stage::Shared { policy: policy.into() };
            self.of(Experiment::Spinning).find(|m| m.point.stage == stage)
        };
        Dataset::of("spinning", "Lock holders, at f = 0.8", COMPARED)
            .name("policy", |policy| *policy)
            .head("")
            .name("preempted in the kernel", |policy| Some(measured(policy)?.kernel_preempted().0))
            .column("for", Unit::Milliseconds, |policy| {
                Some(1e3 * measured(policy)?.kernel_preempted().1)
            })
            .column("waited", Unit::Percent, |policy| Some(measured(policy)?.spun_percent()))
            .head(WAITED)
            .done()
    }
}

/// What is demanded of us; then what the papers say. Neither, where there is none.
fn quoted_checks(checks: &[Check]) -> impl Iterator<Item = String> {
    let (stated, demanded): (Vec<_>, Vec<_>) =
        checks.iter().partition(|check| check.is_statement());
    let titles = ["What is demanded", "What the papers say, and what we want to know"];
    let tables = titles.into_iter().zip([demanded, stated]).map(|(title, checks)| {
        let mut table = Table::new(title, Check::HEAD);
        checks.into_iter().for_each(|check| table.row(check.row()));
        table
    });
    tables.filter(|table| !table.rows.is_empty()).map(|table| table.titled_markdown())
}

#[cfg(test)]
mod tests {
    use super::super::migration::tests::counted;
    use super::super::run::Measurement;
    use super::*;
    use crate::bench::sample::Sample;
    use crate::documents;
    use crate::guests::{Build, Wakes};
    use crate::results::NOT_MEASURED;

    /// Every point, measured.
    fn everything(extent: Extent) -> Lhp {
        all_measured(plan::points(extent, &Policy::all()))
    }

    fn all_measured(planned: Vec<Point>) -> Lhp {
        let measured = |point| Measurement {
            point,
            runs: Sample(vec![1.0; 3]),
            kernel: vec![0, 7],
            builds: vec![Build { seconds: 1.0, user: 1.0, system: 1.0 }; 3],
            wakes: Some(Wakes { count: 9, min_ns: 1, mean_ns: 2, max_ns: 3 }),
            ..counted("migration-on-demand", 1_000, 200, [5_000, 700])
        };
        let measurements = planned.iter().cloned().map(measured).collect();
        Lhp { all: planned.len(), planned, measurements, failures: Vec::new() }
    }

    /// Returns the head of each table in some Markdown, and the first cell of each of its rows.
    fn keys(markdown: &str) -> Vec<String> {
        let (mut keys, mut inside) = (Vec::new(), false);
        for line in markdown.lines() {
            let first = || line.split('|').nth(1).unwrap_or_default().trim().to_owned();
            match (line.starts_with('|'), inside) {
                (true, false) => keys.push(line.to_owned()),
                (true, true) => keys.push(first()),
                _ => {}
            }
            inside = line.starts_with('|');
        }
        keys
    }

    #[test]
    fn the_book_has_the_tables_that_are_written() {
        let root = crate::testing::root();
        let everything = all_measured(Part::ALL.into_iter().flat_map(Part::points).collect());
        let blocks = everything.quoted();
        assert_eq!(blocks.len(), Part::ALL.len());
        for (block, written) in blocks {
            let book = documents::content(root, block).unwrap();
            assert_eq!(keys(&book), keys(&written), "{block}: {written}");
            // Not every technique is in every column, and native loses nothing against itself.
            let has_gaps = [Part::Techniques, Part::Builds].map(Part::block).contains(&block);
            assert!(has_gaps || !written.contains("| - |"), "all of it was measured: {written}");
        }
    }

    /// A statement on points that are not planned could only say that it was not measured.
    #[test]
    fn what_is_demanded_or_stated_is_planned() {
        for extent in [Extent::Full, Extent::Quick, Extent::Paper] {
            let everything = everything(extent);
            let checks = everything.checks();
            let unknown = checks.iter().filter(|check| check.value.is_none());
            let unknown: Vec<_> = unknown.map(|check| &check.name).collect();
            assert!(unknown.is_empty() && checks.len() > 10, "{extent:?}: {unknown:#?}");
        }
    }

    #[test]
    fn what_is_planned_and_not_measured_neither_agrees_nor_differs() {
        let nothing = Lhp { measurements: Vec::new(), ..everything(Extent::Full) };
        let checks = nothing.checks();
        assert_eq!(checks.len(), everything(Extent::Full).checks().len());
        let text = quoted_checks(&checks).collect::<String>();
        for check in checks {
            assert_eq!((check.verdict(), check.value_text()), (NOT_MEASURED, NOT_MEASURED.into()));
            assert!(check.fails() || check.is_statement(), "{}", check.name);
        }
        assert!(!["agrees", "differs", "FAILS", "holds"].iter().any(|word| text.contains(word)));
    }
}
