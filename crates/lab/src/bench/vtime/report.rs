//! The answer: datasets, plots, and what must hold.

use super::Vtime;
use crate::answer::Answer;
use crate::dataset::{Dataset, Unit};
use crate::report::Plot;
use crate::results::{Check, Goal};

impl Vtime {
    pub(super) fn answer(&self) -> Answer {
        let lead = "Whether virtual time is repeatable, exact, and not too dear: stock Debian \
                    Linux and a bare-metal guest on an emulated board whose cores advance in \
                    lockstep, an instruction a nanosecond.";
        let mut answer = Answer::new("vtime", "Virtual time", lead);
        let checks = self.checks();
        let runs = Plot::dots(&self.runs_data(), "cores", "time_ms").by("mode");
        let caption = "Each dot is a run of hackbench, a dash the mean. The first run of each \
                       boot, in which Linux's caches fill, is left out. One run of each boot is \
                       the second of several boots; the others are all further runs of one boot.";
        let plot = answer.plot("hackbench", &runs, caption);
        answer.section("How do hackbench's runs agree?", plot);
        let cyclictest = self.cyclictest_data();
        if !cyclictest.is_empty() {
            let caption =
                "Latencies of cyclictest on four otherwise idle cores, all cores together.";
            let plot = Plot::histogram(&cyclictest, "latency_us", "wake_ups").by("run");
            let plot = answer.plot("cyclictest", &plot, caption);
            answer.section("Do cyclictest's runs agree?", plot);
        }
        let caption = "Processor time of all of QEMU's threads for a second of virtual time, \
                       cores in turns. A dot is a machine.";
        let second = Plot::dots(&self.second_data(), "cores", "processor_time_s").by("guest");
        let plot = answer.plot("virtual-second", &second, caption);
        answer.section("What does a virtual second cost?", plot);
        for (unit, file, heading) in [
            (Unit::Percent, "differences", "How much do runs differ?"),
            (Unit::Nanoseconds, "exactness", "How exact is time?"),
        ] {
            let bars = limits(&checks, unit);
            if !bars.is_empty() {
                let plot = Plot::bars(&bars, "check", &format!("value{}", unit.suffix()));
                let plot = plot.goal(&format!("goal{}", unit.suffix()));
                let plot = answer.plot(file, &plot, "The line is the goal.");
                answer.section(heading, plot);
            }
        }
        answer.data(&self.hackbench_data());
        answer.data(&self.cost_data());
        answer.data(&self.ladder());
        answer.data(&self.repetition_data());
        answer.csv(&cyclictest);
        checks.into_iter().for_each(|check| answer.outcome.check(check));
        if let Some(quoted) = self.quoted(&answer.outcome) {
            answer.document("bench vtime", quoted);
        }
        answer
    }
}

/// The checks in this unit that some figure is not too large.
fn limits(checks: &[Check], unit: Unit) -> Dataset {
    let limited = checks.iter().filter(|check| check.unit == unit.sign());
    let limited = limited.filter_map(|check| match check.goal {
        Goal::AtMost(goal) => Some((check, goal)),
        _ => None,
    });
    Dataset::of("limits", "", limited)
        .name("check", |(check, _)| check.name.clone())
        .column("value", unit, |(check, _)| check.value)
        .column("goal", unit, |(_, goal)| *goal)
        .done()
}
