//! What the hypervisor costs: instructions for each visit to EL2, lines, bytes.

mod events;
mod migration;
mod separation;
mod size;
mod visits;

use crate::figures;
use crate::machine::VirtualTime;
use crate::observe::Distribution;
use crate::progress::Progress;
use crate::quantity::{bytes, count};
use crate::report::{Bar, Report, Series, bars as drawn, figure, histogram};
use crate::results::{Check, Goal, Outcome};
use crate::suite::Bench;
use crate::table::Table;
use events::{EVENTS, Kind, PROVOKED};
use miette::Result;
use migration::Migration;
use separation::Latencies;
use serde_json::json;
use size::Size;

/// Most bytes of the image, guests not included.
const MOST_BYTES: u64 = 128 << 10;
/// Most lines of source, tests not included.
const MOST_LINES: u64 = 8_000;

/// Everything that was measured.
#[derive(Debug)]
pub struct El2 {
    kinds: Vec<(Kind, Distribution)>,
    size: Size,
    migration: Migration,
    separation: [(&'static str, Latencies); 2],
}

/// Measures; some tens of seconds.
///
/// # Errors
/// When a machine fails or a guest does not do its work.
pub fn measure(bench: &Bench, progress: &mut Progress) -> Result<El2> {
    let size = size::measure(bench.hypervisor, &bench.root.join("crates/el2/src"))?;
    let mut kinds = Vec::new();
    for provoked in &PROVOKED {
        let counted = events::count(provoked, bench, progress)?;
        kinds.extend(provoked.kinds.iter().copied().zip(counted));
    }
    let migration = migration::measure(bench, progress)?;
    let on = separation::measure(true, bench, progress)?;
    let off = separation::measure(false, bench, progress)?;
    Ok(El2 { kinds, size, migration, separation: [("on", on), ("off", off)] })
}

impl El2 {
    /// Figures and checks.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let mut outcome = Outcome::new("el2");
        outcome.parameter("events", EVENTS);
        for (kind, visits) in &self.kinds {
            outcome.figure(kind.key, visits_json(visits));
            let (name, goal) = (format!("{}, median", kind.name), f64::from(kind.goal));
            let median = visits.percentile(500).map(f64::from);
            outcome.check(Check::new(&name, median, "instructions", Goal::AtMost(goal)));
            // Else something that happens as often was counted with it.
            let (name, events) = (format!("{}, visits counted", kind.name), as_f64(EVENTS));
            let few = Goal::Between(events, events * 1.01);
            outcome.check(Check::new(&name, as_f64(visits.count()), "visits", few));
        }
        self.migration.judge(&mut outcome);
        for (word, latencies) in &self.separation {
            outcome.figure(&format!("separation_{word}"), latencies_json(latencies));
        }
        let Size { image, lines } = self.size;
        outcome.figure("image_bytes", image);
        outcome.figure("source_lines", lines);
        let most = |most: u64| Goal::AtMost(as_f64(most - 1));
        let (name, unit) = ("image without guests", "bytes");
        outcome.check(Check::new(name, as_f64(image), unit, most(MOST_BYTES)));
        outcome.check(Check::new("source without tests", as_f64(lines), "lines", most(MOST_LINES)));
        outcome
    }

    /// The summary for a terminal.
    #[must_use]
    pub fn summary(&self, outcome: &Outcome) -> String {
        let (visits, migration) = (self.visits(), self.migration.table());
        format!("{visits}\n{migration}\n{}\n{}", self.latencies(), figures::checks(outcome))
    }

    /// The page.
    #[must_use]
    pub fn report(&self) -> Report {
        let lead = "How many instructions the hypervisor executes each time it is entered, how \
                    large it is, and what interrupt priority separation is worth. Time is \
                    virtual: an instruction is a nanosecond.";
        let mut report = Report::new("What the hypervisor costs", lead);
        for (kind, visits) in &self.kinds {
            let median = visits.percentile(500).map_or_else(|| "-".into(), |n| n.to_string());
            report.tile(median, kind.name);
        }
        report.tile(bytes_short(self.size.image), "image without guests");
        let caption = format!(
            "Median of {0} visits; the line is the goal. Each event was provoked {0} and {1} \
             times; counted are the visits that the second run has more than the first. A vCPU \
             that its timer wakes takes an interrupt and a switch in one visit.",
            count(EVENTS),
            count(2 * EVENTS)
        );
        let bars: Vec<_> = self.kinds.iter().map(bar).collect();
        report.section("How long are visits to EL2?", figure(&drawn(&bars), &caption));
        report.table(&self.visits());
        report.section("What does a migration cost?", maud::html! { p { (Migration::caption()) } });
        report.table(&self.migration.table());
        let names = [ON, OFF];
        let series: Vec<_> = names
            .iter()
            .zip(&self.separation)
            .map(|(name, (_, latencies))| Series { name, values: &latencies.response })
            .collect();
        let caption = "Interrupt response time of FreeRTOS while Linux, which shares its core, \
                       boots and runs hackbench. Separation keeps Linux's interrupts pending \
                       while FreeRTOS runs.";
        let drawing = histogram(&series, VirtualTime::COUNTER_HZ);
        report.section("What is priority separation worth?", figure(&drawing, caption));
        report.table(&self.latencies());
        report
    }

    fn visits(&self) -> Table {
        let head = ["", "visits", "min", "mode", "median", "p99.9", "max", "goal"];
        let mut table = Table::new("Instructions at EL2", head);
        for (kind, visits) in &self.kinds {
            let number = |n: Option<u32>| n.map_or_else(|| "-".into(), |n| count(n.into()));
            table.row([
                kind.name.into(),
                count(visits.count()),
                number(visits.min()),
                number(visits.mode()),
                number(visits.percentile(500)),
                number(visits.percentile(999)),
                number(visits.max()),
                format!("<= {}", kind.goal),
            ]);
        }
        table
    }

    fn latencies(&self) -> Table {
        let mut table =
            figures::latency_table("Interrupt priority separation, latencies of the RTOS");
        for (word, Latencies { response, dispatch }) in &self.separation {
            for (what, values) in
                [("interrupt response time", response), ("dispatch latency", dispatch)]
            {
                let name = format!("{word}: {what}");
                table.rows.extend(figures::latency_row(&name, values, VirtualTime::COUNTER_HZ));
            }
        }
        table
    }
}

const ON: &str = "priority separation on";
const OFF: &str = "priority separation off";

fn bar((kind, visits): &(Kind, Distribution)) -> Bar<'static> {
    let value = visits.percentile(500).map(f64::from);
    Bar { name: kind.name, value, goal: kind.goal.into(), unit: "instructions" }
}

fn visits_json(visits: &Distribution) -> serde_json::Value {
    json!({
        "visits": visits.count(), "min": visits.min(), "mode": visits.mode(),
        "mean": visits.mean(), "p50": visits.percentile(500), "p99.9": visits.percentile(999),
        "max": visits.max(), "unit": "instructions",
    })
}

fn latencies_json(latencies: &Latencies) -> serde_json::Value {
    let us = 1e6 / as_f64(VirtualTime::COUNTER_HZ);
    json!({
        "response_us": figures::latency(&latencies.response, us),
        "dispatch_us": figures::latency(&latencies.dispatch, us),
    })
}

fn bytes_short(size: u64) -> String {
    bytes(size.next_multiple_of(1 << 10))
}

#[allow(clippy::cast_precision_loss)] // counts
fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn el2(median: u32, image: u64) -> El2 {
        let mut visits = Distribution::default();
        visits.record_many(median, EVENTS);
        let kinds = PROVOKED.iter().flat_map(|provoked| provoked.kinds);
        let latencies = Latencies { response: visits.clone(), dispatch: visits.clone() };
        El2 {
            kinds: kinds.map(|&kind| (kind, visits.clone())).collect(),
            size: Size { image, lines: 7_999 },
            migration: Migration::example(200, 3_000),
            separation: [("on", latencies.clone()), ("off", latencies)],
        }
    }

    fn failing(el2: &El2) -> usize {
        el2.outcome().checks().iter().filter(|check| !check.holds()).count()
    }

    #[test]
    fn goals_are_goals() {
        assert_eq!(failing(&el2(100, MOST_BYTES - 1)), 0);
        assert_eq!(failing(&el2(101, MOST_BYTES)), 2);
        assert_eq!(failing(&el2(191, 1)), 2);
        assert_eq!(failing(&el2(601, 1)), 3);
        assert_eq!(failing(&el2(791, 1)), 4);
    }

    #[test]
    fn visits_that_are_not_the_event_are_noticed() {
        let mut el2 = el2(100, 1);
        el2.kinds[0].1.record_many(90, EVENTS / 10);
        assert_eq!(failing(&el2), 1);
    }

    #[test]
    fn people_see_every_kind_and_both_settings() {
        let el2 = el2(100, 1);
        let (page, summary) = (el2.report().render(&el2.outcome()), el2.summary(&el2.outcome()));
        for text in [
            "null hypercall",
            "no switch",
            "goes to sleep",
            "beyond the wake",
            "off: dispatch latency",
        ] {
            assert!(page.contains(text) && summary.contains(text), "{text}");
        }
        assert_eq!(page.matches("<svg").count(), 1);
    }
}
