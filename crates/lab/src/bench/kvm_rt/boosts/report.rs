//! What was found, for people and programs.

use super::super::program::Program;
use super::super::verdicts;
use super::All;
use super::case::{Control, Tuning, cases};
use super::run::Seen;
use crate::answer::Answer;
use crate::bench::Extent;
use crate::bench::sample::Estimate;
use crate::dataset::{Dataset, Unit};
use crate::quantity::real;

impl All {
    /// Returns what was found of a case.
    pub fn at(&self, control: Control, tuning: Tuning, program: Program) -> Option<&Seen> {
        let wanted = (control, tuning, program);
        let is_it =
            |seen: &&Seen| (seen.case.control, seen.case.tuning, seen.case.program) == wanted;
        self.measurements.iter().find(is_it)
    }

    /// Adds what was found, and for the documents if it is all that there is.
    pub fn add_to(&self, answer: &mut Answer) {
        if self.measurements.is_empty() {
            return;
        }
        let data = self.data();
        answer.data(&data);
        if self.covers(&cases(Extent::Full)) {
            let table = data.table().titled_markdown();
            answer.document("bench kvm-rt boosts", table + &verdicts(self.checks()));
        }
    }

    fn data(&self) -> Dataset {
        let title = "A guest with a real-time process on core 1, and a Linux with a program on cores 0 and 1";
        Dataset::of("boosts", title, &self.measurements)
            .name("guest", |seen| seen.case.control.words())
            .name("program", |seen| seen.case.program.name())
            .name("tuning", |seen| seen.case.tuning.words())
            .head("the guest is")
            .name("wakes", |seen| seen.wakes.count)
            .head("process: n")
            .name("missed", |seen| seen.missed)
            .column("process_min", Unit::Nanoseconds, |seen| Some(real(seen.wakes.min_ns)))
            .head("min")
            .column("process_mean", Unit::Nanoseconds, |seen| Some(real(seen.wakes.mean_ns)))
            .head("mean")
            .column("process_max", Unit::Nanoseconds, |seen| Some(real(seen.wakes.max_ns)))
            .head("max")
            .column("time", Unit::Seconds, |seen| Some(seen.runs.mean()))
            .head("program: time")
            .shown_in(Unit::Milliseconds, 1)
            .column("interval", Unit::Seconds, |seen| Some(seen.runs.interval()))
            .head("95 % interval, ±")
            .shown_in(Unit::Milliseconds, 1)
            .name("runs", |seen| seen.runs.0.len())
            .head("program: n")
            .done()
    }

    /// Returns the time of the other guest's program.
    pub fn time(&self, control: Control, tuning: Tuning, program: Program) -> Option<Estimate> {
        Some(self.at(control, tuning, program)?.runs.estimate())
    }
}
