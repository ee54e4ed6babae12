//! What was found, for people and programs.

use super::super::program::Program;
use super::super::verdicts;
use super::All;
use super::case::{Kernel, Place, cases};
use super::run::Seen;
use crate::answer::Answer;
use crate::bench::Extent;
use crate::dataset::{Dataset, Unit};
use crate::observe::Distribution;
use crate::report::Plot;
use maud::html;

impl All {
    /// Returns what was found of a case.
    pub fn at(&self, kernel: Kernel, place: Place, load: Program) -> Option<&Distribution> {
        let wanted = (kernel, place, load);
        let is_it = |seen: &&Seen| (seen.case.kernel, seen.case.place, seen.case.load) == wanted;
        Some(&self.measurements.iter().find(is_it)?.latencies)
    }

    /// Adds what was found, and for the documents if it is all that there is.
    pub fn add_to(&self, answer: &mut Answer) {
        if self.measurements.is_empty() {
            return;
        }
        let (data, histogram) = (self.data(), self.histogram());
        answer.data(&data);
        answer.csv(&histogram);
        let mut plots = Vec::new();
        for kernel in Kernel::ALL {
            let some = histogram.only("kernel", &[kernel.words()]);
            if !some.is_empty() {
                let file = format!("dispatch-{}", kernel.name());
                let plot = Plot::histogram(&some, "latency_ns", "wakes").by("where");
                let caption = format!("Wake-ups of cyclictest in {} Linux.", kernel.words());
                plots.push(answer.plot(&file, &plot, &caption));
            }
        }
        answer.section(
            "How late is a real-time process of Linux's?",
            html! { @for plot in &plots { (plot) } },
        );
        if self.covers(&cases(Extent::Full)) {
            let table = data.table().titled_markdown();
            answer.document("bench kvm-rt dispatch", table + &verdicts(self.checks()));
        }
    }

    fn data(&self) -> Dataset {
        let title =
            "Wake-ups of cyclictest in Linux, from when the timer was due until the process ran";
        let beyond = |seen: &Seen, of: fn(&Distribution) -> Option<f64>| {
            let board = self.at(seen.case.kernel, Place::Board, Program::Idle)?;
            (seen.case.place != Place::Board).then(|| Some(of(&seen.latencies)? - of(board)?))?
        };
        Dataset::of("dispatch", title, &self.measurements)
            .name("kernel", |seen| seen.case.kernel.words())
            .name("where", |seen| seen.case.place.words())
            .name("load", |seen| seen.case.load.name())
            .head("the other Linux")
            .name("wakes", |seen| seen.latencies.count())
            .head("n")
            .name("missed", |seen| seen.missed())
            .column("min", Unit::Nanoseconds, |seen| seen.latencies.min().map(f64::from))
            .column("mean", Unit::Nanoseconds, |seen| seen.latencies.mean())
            .column("p99.9", Unit::Nanoseconds, |seen| {
                seen.latencies.told_percentile(999).map(f64::from)
            })
            .column("max", Unit::Nanoseconds, |seen| seen.latencies.max().map(f64::from))
            .column("mean_beyond", Unit::Nanoseconds, |seen| beyond(seen, Distribution::mean))
            .head("mean, beyond the board's")
            .column("max_beyond", Unit::Nanoseconds, |seen| {
                beyond(seen, |all| all.max().map(f64::from))
            })
            .head("max, beyond the board's")
            .done()
    }

    /// How often which latency occurred.
    fn histogram(&self) -> Dataset {
        let bins = self.measurements.iter().flat_map(|seen| {
            let place = match seen.case.place {
                Place::Board => seen.case.place.words().to_owned(),
                place => format!("{}, {}", place.words(), seen.case.load.name()),
            };
            seen.latencies.iter().map(move |bin| (seen.case.kernel, place.clone(), bin))
        });
        Dataset::of("dispatch-histogram", "", bins)
            .name("kernel", |(kernel, ..)| kernel.words())
            .name("where", |(_, place, _)| place.clone())
            .column("latency", Unit::Nanoseconds, |(.., (ns, _))| f64::from(*ns))
            .name("wakes", |(.., (_, count))| *count)
            .done()
    }
}
