//! Tables and plots of the papers' techniques.

use super::super::Lhp;
use super::super::latency::counted;
use super::super::plan::{CORES, SHORT_PERIOD_US};
use super::super::point::Linux;
use super::super::run::Measurement;
use super::super::throughput::{TOLD, ideal, ms, share, timed, told};
use super::{COLUMNS_EVERYWHERE, Column, FEW_LOADS, FIXED, Figure, Kernel, LOADS, ROWS, Row};
use crate::dataset::{Dataset, Unit};
use crate::observe::Distribution;
use crate::report::Plot;

impl Lhp {
    /// Each run, for programs.
    pub(in super::super) fn technique_data(&self) -> Dataset {
        let all = Kernel::ALL
            .into_iter()
            .flat_map(|kernel| self.techniques(kernel).map(move |(m, column)| (kernel, column, m)));
        let dispatch =
            |m: &Measurement, of: fn(&Distribution) -> Option<f64>| of(&m.rtos.as_ref()?.dispatch);
        Dataset::of("techniques", "The papers' techniques", all)
            .name("kernel", |(kernel, ..)| kernel.name())
            .name("column", |(_, column, _)| column.name())
            .name("stage", |(.., m)| m.point.stage.name())
            .name("f", |(.., m)| m.point.rtos.map(|rtos| share(rtos.load_permille)))
            .name("linux", |(.., m)| {
                if m.point.linux == Linux::BusyHackbench {
                    "endless hackbench"
                } else {
                    "hackbench"
                }
            })
            .column("runs", Unit::Seconds, |(.., m)| m.runs.steady().0.clone())
            .column("mean", Unit::Seconds, |(.., m)| {
                (m.point.linux != Linux::BusyHackbench).then(|| m.runs.steady().mean())
            })
            .name("yielded", |(.., m)| m.locks.as_ref().map(|locks| locks.yielded))
            .name("cancelled", |(.., m)| m.locks.as_ref().and_then(|locks| locks.cancelled))
            .column("dispatch_mean", Unit::Nanoseconds, |(.., m)| dispatch(m, Distribution::mean))
            .column("dispatch_max", Unit::Nanoseconds, |(.., m)| {
                dispatch(m, |all| all.max().map(f64::from))
            })
            .done()
    }

    /// Returns what the book quotes: times of hackbench with either kernel, and latencies.
    pub(in super::super) fn quoted_techniques(&self) -> Vec<Dataset> {
        let measured = |kernel: &Kernel| self.techniques(*kernel).next().is_some();
        let kernels = Kernel::ALL.into_iter().filter(measured);
        let mut tables: Vec<Dataset> = kernels.map(|kernel| self.quoted_times(kernel)).collect();
        tables.push(self.quoted_technique_latencies());
        if self.at_other_moments().next().is_some() {
            tables.push(self.moments_data());
        }
        tables
    }

    /// Returns the times with a kernel, a row for each technique at each load.
    fn quoted_times(&self, kernel: Kernel) -> Dataset {
        let runs = |place: usize, column, (row, load): &(&Row, u32)| {
            self.technique(kernel, column, row.policies[place]?, *load)
        };
        let columns = || Column::ALL.into_iter().enumerate();
        let is_measured = |spot: &(&Row, u32)| {
            columns().any(|(place, column)| runs(place, column, spot).is_some())
        };
        let spots = ROWS.iter().flat_map(|row| LOADS.map(|load| (row, load)));
        let spots: Vec<_> = spots.filter(is_measured).collect();
        let title = format!("hackbench beside the RTOS, {TOLD}: {}", kernel.about());
        let line = |load: u32| {
            let [four, three] = [CORES, CORES - 1].map(|cores| self.technique_alone(kernel, cores));
            Some(ms(ideal(share(load), four?, three?)))
        };
        let mut all = Dataset::of("techniques", &title, spots.iter().copied())
            .name("technique", |(row, load)| format!("{}, f = {}", row.name, share(*load)))
            .head("")
            .name("ideal", |(_, load)| line(*load));
        for (place, column) in columns() {
            let cell = |spot: &(&Row, u32)| runs(place, column, spot).as_ref().map(told);
            if spots.iter().any(|spot| cell(spot).is_some()) {
                all = all.name(column.name(), cell).head(column.head());
            }
        }
        all.done()
    }

    /// Returns the latencies with the port, a row for each technique.
    fn quoted_technique_latencies(&self) -> Dataset {
        let title = format!(
            "Dispatch latency under hackbench each {SHORT_PERIOD_US} µs: {}",
            Kernel::Own.about()
        );
        let columns = || Column::ALL.into_iter().enumerate().take(COLUMNS_EVERYWHERE);
        let dispatch =
            |place: usize, column, row: &Row| self.technique_late(column, row.policies[place]?);
        let counts = |row: &Row| {
            let all = columns().filter_map(|(place, column)| dispatch(place, column, row));
            counted(all.map(Distribution::count))
        };
        let late = ROWS.iter().filter(|row| counts(row).is_some());
        let mut all = Dataset::of("late", &title, late)
            .name("technique", |row| row.name)
            .head("")
            .name("n", |row| counts(row));
        for (place, column) in columns() {
            let figures: [(&str, Figure); 2] =
                [("mean", Distribution::mean), ("max", |all| all.max().map(f64::from))];
            for (name, figure) in figures {
                let of = |row: &&Row| figure(dispatch(place, column, row)?);
                let key = format!("{}_{name}", column.name());
                let head = format!("{}, {name}", column.head());
                all = all.column(&key, Unit::Nanoseconds, of).head(&head);
            }
        }
        all.done()
    }

    /// When a vCPU that spins yields, beside the default of either kernel.
    pub(in super::super) fn moments_data(&self) -> Dataset {
        let by_default = Kernel::ALL.into_iter().flat_map(|kernel| {
            let all = self.techniques(kernel).filter(|(m, column)| {
                let at = m.point.rtos.is_some_and(|rtos| rtos.load_permille == FEW_LOADS[0]);
                let fixed = m.point.stage.name() == FIXED && m.point.linux != Linux::BusyHackbench;
                at && fixed && column.is_papers()
            });
            all.map(move |(m, column)| {
                (m, kernel, if column.yields() { "by default".into() } else { "never".into() })
            })
        });
        let others = self.at_other_moments().map(|(m, kernel, when)| (m, kernel, when.name()));
        let title = format!(
            "hackbench beside the RTOS at f = {}, on-demand as in the papers, by when Linux yields",
            share(FEW_LOADS[0])
        );
        Dataset::of("yields", &title, by_default.chain(others))
            .name("kernel", |(_, kernel, _)| kernel.name())
            .name("yields", |(.., when): &(_, _, String)| when.clone())
            .column("mean", Unit::Milliseconds, |(m, ..)| 1e3 * m.runs.steady().mean())
            .digits(1)
            .column("interval", Unit::Milliseconds, |(m, ..)| {
                Some(1e3 * timed(&m.runs.steady()).half).filter(|half| half.is_finite())
            })
            .head("95 % interval, ±")
            .digits(1)
            .name("n", |(m, ..)| m.runs.steady().0.len())
            .name("yielded", |(m, ..)| m.locks.as_ref().map(|locks| locks.yielded))
            .done()
    }

    /// hackbench with a kernel, a curve for each technique in each column.
    pub(in super::super) fn technique_plots(&self) -> Vec<(&'static str, &'static str, Plot)> {
        let with_points = |kernel: &Kernel| self.techniques(*kernel).next().is_some();
        let plot = |kernel: Kernel| {
            let columns = || Column::ALL.into_iter().enumerate();
            let curves = ROWS.iter().flat_map(|row| {
                columns()
                    .filter_map(move |(place, column)| Some((row, column, row.policies[place]?)))
            });
            let spots = curves.flat_map(|(row, column, policy)| {
                LOADS.into_iter().filter_map(move |load| {
                    let mean = self.technique(kernel, column, policy, load)?.mean();
                    Some((format!("{}: {}", row.name, column.head()), load, mean))
                })
            });
            let data = Dataset::of("curves", "", spots)
                .name("technique", |(name, ..): &(String, _, _)| name.clone())
                .name("f", |(_, load, _)| share(*load))
                .head("f, the share of core 0 that the RTOS burns")
                .column("hackbench", Unit::Milliseconds, |(.., mean)| 1e3 * mean)
                .digits(1)
                .done();
            (kernel.name(), kernel.about(), Plot::lines(&data, "f", "hackbench_ms").by("technique"))
        };
        Kernel::ALL.into_iter().filter(with_points).map(plot).collect()
    }
}
