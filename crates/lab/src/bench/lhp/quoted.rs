//! What the book quotes: the few figures of each experiment that its text is about.

use super::Lhp;
use super::latency::{NATIVE, Setting};
use super::overhead::{ALONE, TICKING};
use super::plan::{DEDICATED, LONG_PERIOD_US, SHORT_PERIOD_US};
use super::point::{Experiment, Stage, Wake};
use super::policy::Policy;
use super::throughput::{ms, share};
use crate::bench::vtime::case::Work;
use crate::dataset::{Dataset, Unit};
use crate::observe::Distribution;

/// Policies whose throughput the text compares.
const POLICIES: [&str; 6] =
    ["on-demand", "trap-based", "none", "balance", "safe-unsafe", "partition"];
/// What of latencies it compares.
const LATE: [&str; 5] = [NATIVE, "partition", "none", "on-demand", "trap-based"];
/// Policies whose lock holders it compares.
const COMPARED: [&str; 2] = ["none", "on-demand"];
/// Rows of the table of a migration's parts.
const PARTS: [&str; 2] = ["departure, before the RTOS runs", "round trip, both ends"];

/// A figure of a distribution, nanoseconds.
type Figure = fn(&Distribution) -> Option<f64>;

impl Lhp {
    /// Returns the tables, in Markdown.
    pub(super) fn quoted(&self) -> String {
        let [dedicated, shared] = self.quoted_throughput();
        let parts = self.migration_data().only("part", &PARTS);
        let ([advances, periods], spinning) = (self.quoted_latency(), self.quoted_spinning());
        let (overhead, kernel) = (self.quoted_overhead(), self.kernel_data());
        let unforeseen = self.quoted_unforeseen();
        let all =
            [dedicated, shared, advances, periods, unforeseen, parts, overhead, spinning, kernel];
        all.map(|data| data.table().titled_markdown()).join("\n")
    }

    fn quoted_throughput(&self) -> [Dataset; 2] {
        let found = self.throughput();
        let title = "hackbench on dedicated cores, ms";
        let alone = Dataset::of("alone", title, DEDICATED)
            .name("cores", |cores| *cores)
            .name("mean", |cores| found.alone(*cores).map(ms));
        let mut all = Dataset::of("shared", "hackbench beside the RTOS, ms", &found.loads)
            .name("f", |load| share(**load))
            .name("ideal", |load| found.ideal(**load).map(ms))
            .name("papers' ideal", |load| found.papers_ideal(**load).map(ms));
        for policy in POLICIES {
            let named = Policy::named(policy);
            let mean = |load: &&u32| Some(ms(found.at(named?, **load)?.mean()));
            all = all.name(policy, mean);
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

    /// With the short period, with and without an advance; with the long one.
    fn quoted_latency(&self) -> [Dataset; 2] {
        [SHORT_PERIOD_US, LONG_PERIOD_US].map(|period_us| {
            let title = format!(
                "Dispatch latency under hackbench, with separation of priorities, each {period_us} µs"
            );
            let mut all = Dataset::of("latency", &title, LATE).name("policy", |policy| *policy).head("");
            for (advance_us, how) in [(0, "no advance"), (4, "advance 4 µs")] {
                let setting = Setting::hackbench(period_us, advance_us);
                let figures: [(&str, Figure); 3] = [
                    ("mean", Distribution::mean),
                    ("p99.9", |all| all.percentile(999).map(f64::from)),
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
            .head("");
        let figures: [(&str, Figure); 3] = [
            ("mean", Distribution::mean),
            ("p99", |all| all.percentile(990).map(f64::from)),
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
            .column("instructions that only waited", Unit::Percent, |policy| {
                Some(measured(policy)?.spun_percent())
            })
            .done()
    }
}

#[cfg(test)]
mod tests {
    use super::super::migration::tests::counted;
    use super::super::plan;
    use super::super::run::Measurement;
    use super::*;
    use crate::bench::experiment::Extent;
    use crate::bench::sample::Sample;
    use crate::documents;

    /// Every point, measured.
    fn everything() -> Lhp {
        let planned = plan::points(Extent::Full, &Policy::all());
        let measured = |point| Measurement {
            point,
            runs: Sample(vec![1.0; 3]),
            kernel: vec![0, 7],
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
        let (book, written) = (documents::content(root, "bench lhp").unwrap(), everything());
        let written = written.quoted();
        assert_eq!(keys(&book), keys(&written), "{written}");
        assert!(!written.contains("| - |"), "all of it was measured: {written}");
    }
}
