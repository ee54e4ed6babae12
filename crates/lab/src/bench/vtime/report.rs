//! For people: the summary and the page.

use super::Vtime;
use super::case::{Case, Guest, Mode};
use super::checks::distance;
use super::figures::Histogram;
use super::tables::mode;
use crate::bench::sample::Sample;
use crate::figures;
use crate::observe::Distribution;
use crate::report::{Bar, Group, Report, Series, bars, dots, figure, histogram};
use crate::results::{Check, Goal, Outcome};
use std::collections::BTreeSet;
use vtime::options::Options;

/// Cyclictest's bins are microseconds.
const CYCLICTEST_HZ: u64 = 1_000_000;

impl Vtime {
    /// The summary for a terminal.
    #[must_use]
    pub fn summary(&self, outcome: &Outcome) -> String {
        let mut text = String::new();
        for table in self.tables() {
            text += &format!("{table}\n");
        }
        text + &figures::checks(outcome).to_string()
    }

    /// The page.
    #[must_use]
    pub fn report(&self, outcome: &Outcome) -> Report {
        let lead = "Whether virtual time is repeatable, exact, and not too dear: stock Debian \
                    Linux and a bare-metal guest on an emulated board whose cores advance in \
                    lockstep, an instruction a nanosecond.";
        let mut report = Report::new("Virtual time", lead);
        self.hackbench_figure(&mut report);
        self.cyclictest_figure(&mut report);
        self.cost_figure(&mut report);
        for (unit, heading) in [("%", "How much do runs differ?"), ("ns", "How exact is time?")] {
            let same_unit = outcome.checks().iter().filter(|check| check.unit == unit);
            let drawn: Vec<_> = same_unit.filter_map(bar).collect();
            if !drawn.is_empty() {
                report.section(heading, figure(&bars(&drawn), "The line is the goal."));
            }
        }
        self.tables().iter().for_each(|table| report.table(table));
        report
    }

    fn hackbench_figure(&self, report: &mut Report) {
        let default = |case: &&Case| case.quantum_ns == Options::DEFAULT_QUANTUM_NS;
        let cores: BTreeSet<u32> = self.hackbenches().map(|(case, _)| case.cores).collect();
        let kinds = [
            (mode(Mode::Turns), Mode::Turns, false),
            ("in turns, busy host", Mode::Turns, true),
            (mode(Mode::Parallel), Mode::Parallel, false),
        ];
        let groups = kinds.map(|(name, mode, busy_host)| {
            let of = |(case, sample): (&Case, &Sample)| {
                let same = (case.mode, case.busy_host) == (mode, busy_host);
                let place = cores.iter().position(|&c| c == case.cores)?;
                let ms = sample.steady().0.iter().map(|s| 1e3 * s).collect();
                (same && default(&case)).then_some((place, ms))
            };
            Group { name, columns: self.hackbenches().filter_map(of).collect() }
        });
        let boots = |(place, &cores): (usize, &u32)| {
            (place, self.over_boots(cores).0.iter().map(|s| 1e3 * s).collect())
        };
        let columns = cores.iter().enumerate().map(boots).collect();
        let boots = Group { name: "one run of each boot", columns };
        let groups: Vec<_> = std::iter::once(boots).chain(groups).collect();
        let places: Vec<_> = cores.iter().map(|cores| format!("{cores} cores")).collect();
        let caption = "Each dot is a run of hackbench -g 1 -l 100, in virtual time, in the order \
                       of the runs; the dash is their mean. The first run of each boot, in which \
                       Linux's caches fill, is left out. The first column has the second run of \
                       several boots, the others have all further runs of one boot.";
        let drawing = dots(&groups, &places, "ms");
        report.section("How do hackbench's runs agree?", figure(&drawing, caption));
    }

    fn cyclictest_figure(&self, report: &mut Report) {
        let histograms = self.histograms();
        let Some((first, rest)) = histograms.split_first() else { return };
        let farthest = rest.iter().max_by_key(|other| distance(first, other));
        let distribution = |h: &Histogram| {
            let mut distribution = Distribution::default();
            h.iter().for_each(|(&us, &count)| distribution.record_many(us, count));
            distribution
        };
        let (first, other) = (distribution(first), farthest.map(|h| distribution(h)));
        let mut series = vec![Series { name: "first run", values: &first }];
        series.extend(other.iter().map(|values| Series { name: "the most different", values }));
        let caption = "Latencies of cyclictest on four otherwise idle cores, all cores together.";
        let drawing = histogram(&series, CYCLICTEST_HZ);
        report.section("Do cyclictest's runs agree?", figure(&drawing, caption));
    }

    fn cost_figure(&self, report: &mut Report) {
        let is_boot = |case: &Case| case.guest == Guest::Boot;
        let is_hackbench = |case: &Case| case.guest.several_steady_runs();
        let plainly = |case: &Case| {
            let default = case.quantum_ns == Options::DEFAULT_QUANTUM_NS;
            default && case.mode == Mode::Turns && !case.busy_host
        };
        let all = || self.measurements.iter().filter(|m| plainly(&m.case));
        let shown = all().filter(|m| is_boot(&m.case) || is_hackbench(&m.case));
        let cores: BTreeSet<u32> = shown.map(|m| m.case.cores).collect();
        let group = |name, kind: &dyn Fn(&Case) -> bool| {
            let column = |(place, &cores): (usize, &u32)| {
                let here = all().filter(|m| kind(&m.case) && m.case.cores == cores);
                (place, here.filter_map(|m| Some(m.processor_s() / m.virtual_s()?)).collect())
            };
            Group { name, columns: cores.iter().enumerate().map(column).collect() }
        };
        let groups = [group("boot", &is_boot), group("boot and hackbench", &is_hackbench)];
        let places: Vec<_> = cores.iter().map(|cores| format!("{cores} cores")).collect();
        let caption = "Processor time of all of QEMU's threads for a second of virtual time, \
                       cores in turns. A dot is a machine.";
        let drawing = dots(&groups, &places, "s");
        report.section("What does a virtual second cost?", figure(&drawing, caption));
    }
}

/// A check that some figure is not too large, drawn.
fn bar(check: &Check) -> Option<Bar<'_>> {
    let Goal::AtMost(goal) = check.goal else { return None };
    Some(Bar { name: &check.name, value: check.value, goal, unit: &check.unit })
}
