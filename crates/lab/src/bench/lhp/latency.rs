//! How late the RTOS is, under what Linux does.

use super::point::{Experiment, Linux, Stage};
use super::run::{Lateness, Measurement, distribution};
use super::{Lhp, policies_of};
use crate::figures;
use crate::machine::VirtualTime;
use crate::observe::Distribution;
use crate::report::{Series, histogram};
use crate::results::{Check, Goal};
use crate::table::Table;
use maud::Markup;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Most that on-demand may be later than `partition`, that being 1.
const LATER: f64 = 1.1;

/// What Linux does meanwhile, with its name.
pub(super) const LOADS: [(Linux, &str); 2] =
    [(Linux::BusyHackbench, "hackbench"), (Linux::BusyWrite, "file writes")];
/// Separation of interrupt priorities, with its name.
const SEPARATIONS: [(bool, &str); 2] = [(true, "separation"), (false, "no separation")];
/// What is drawn first: more curves would hide each other.
pub(super) const DRAWN: [&str; 3] = ["partition", "none", "on-demand"];

/// What of an activation is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Latency {
    /// Until the interrupt handler runs.
    Response,
    /// Until the task runs.
    Dispatch,
}

impl Latency {
    pub(super) const ALL: [Self; 2] = [Self::Response, Self::Dispatch];

    fn name(self) -> &'static str {
        match self {
            Self::Response => "response",
            Self::Dispatch => "dispatch",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Response => "Interrupt response time",
            Self::Dispatch => "Dispatch latency",
        }
    }

    fn of(self, lateness: &Lateness) -> &BTreeMap<u32, u64> {
        match self {
            Self::Response => &lateness.response,
            Self::Dispatch => &lateness.dispatch,
        }
    }
}

/// A histogram for the page, and the name of its file.
pub(super) struct Drawing {
    pub(super) title: String,
    pub(super) file: String,
    pub(super) drawing: Markup,
}

impl Lhp {
    pub(super) fn latency(
        &self,
        policy: &str,
        linux: &Linux,
        separation: bool,
    ) -> Option<&Lateness> {
        let here = |m: &&Measurement| {
            let stage = m.point.stage == Stage::Shared { policy: policy.into() };
            stage && m.point.linux == *linux && m.point.separation == separation
        };
        self.of(Experiment::Latency).find(here)?.rtos.as_ref()
    }

    /// The goals.
    pub(super) fn latency_checks(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        if !self.planned.iter().any(|point| point.experiment == Experiment::Latency) {
            return checks;
        }
        for (linux, doing) in &LOADS {
            for (permille, which) in [(999, "p99.9"), (1_000, "max")] {
                let of = |policy| {
                    let dispatch = &self.latency(policy, linux, true)?.dispatch;
                    distribution(dispatch).percentile(permille).map(f64::from)
                };
                let ratio = of("on-demand").zip(of("partition")).map(|(a, b)| a / b);
                let name = format!(
                    "on-demand under {doing}: dispatch latency, {which}, partition's being 1"
                );
                checks.push(Check::new(&name, ratio, "", Goal::AtMost(LATER)));
            }
        }
        checks
    }

    /// Every distribution that was measured.
    pub(super) fn latency_table(&self) -> Table {
        let mut table = figures::latency_table("Latencies of the RTOS");
        for (m, lateness) in self.latencies() {
            let name = latency_name(m);
            for latency in Latency::ALL {
                let (what, counts) = (latency.name(), latency.of(lateness));
                let row = figures::latency_row(
                    &format!("{name}: {what}"),
                    &distribution(counts),
                    VirtualTime::COUNTER_HZ,
                );
                table.rows.extend(row);
            }
        }
        table
    }

    /// For programs.
    pub(super) fn latency_json(&self) -> Value {
        let us = 1e6 / f64::from(u32::try_from(VirtualTime::COUNTER_HZ).unwrap_or(u32::MAX));
        let one = |(m, lateness): (&Measurement, &Lateness)| {
            let of = |counts| figures::latency(&distribution(counts), us);
            let value = json!({
                "activations": lateness.activations, "missed": lateness.missed,
                "response_us": of(&lateness.response), "dispatch_us": of(&lateness.dispatch),
            });
            (latency_name(m), value)
        };
        Value::Object(self.latencies().map(one).collect::<Map<_, _>>())
    }

    /// The histograms, one line for each bin.
    pub(super) fn latency_csv(&self) -> String {
        let mut text = String::from("policy,linux,separation,latency,ns,activations\n");
        for (m, lateness) in self.latencies() {
            let name = latency_name(m).replace(", ", ",");
            for latency in Latency::ALL {
                for (ns, count) in latency.of(lateness) {
                    let _ = writeln!(text, "{name},{},{ns},{count}", latency.name());
                }
            }
        }
        text
    }

    /// A drawing for each of what Linux does, with separation and without: what of the
    /// latencies, and under which policies.
    pub(super) fn latency_figures(
        &self,
        latency: Latency,
        policies: &[&'static str],
    ) -> Vec<Drawing> {
        let mut drawn = Vec::new();
        for (linux, doing) in &LOADS {
            for (separation, word) in SEPARATIONS {
                let of = |&name: &&'static str| {
                    let lateness = self.latency(name, linux, separation)?;
                    Some((name, distribution(latency.of(lateness))))
                };
                let known: Vec<(&str, Distribution)> = policies.iter().filter_map(of).collect();
                let series: Vec<_> =
                    known.iter().map(|(name, values)| Series { name, values }).collect();
                if !series.is_empty() {
                    let title = format!("{} under {doing}, {word}", latency.title());
                    let file = format!("{}, {doing}, {word}", latency.name());
                    let file = file.replace(", ", "-").replace(' ', "-") + ".svg";
                    let drawing = histogram(&series, VirtualTime::COUNTER_HZ);
                    drawn.push(Drawing { title, file, drawing });
                }
            }
        }
        drawn
    }

    /// The policies that are not [`DRAWN`] together, a few at a time.
    pub(super) fn other_policies(&self) -> Vec<Vec<&'static str>> {
        let measured: Vec<_> = self.latencies().map(|(m, _)| &m.point).collect();
        let names = policies_of(&measured).into_iter().map(|policy| policy.name);
        let others: Vec<_> = names.filter(|name| !DRAWN.contains(name)).collect();
        others.chunks(DRAWN.len()).map(<[_]>::to_vec).collect()
    }

    /// Greatest dispatch latency of each kind of run, for the text.
    pub(super) fn latency_finding(&self) -> String {
        let mut most: BTreeMap<&str, u32> = BTreeMap::new();
        for (policy, separation, name) in [
            ("partition", true, "partition"),
            ("on-demand", true, "on-demand"),
            ("none", true, "none"),
            ("none", false, "none without separation"),
        ] {
            for (linux, _) in &LOADS {
                let lateness = self.latency(policy, linux, separation);
                let max = lateness.and_then(|l| l.dispatch.keys().max().copied());
                let known = most.get(name).copied();
                most.extend(max.max(known).map(|max| (name, max)));
            }
        }
        let each = most.iter().map(|(name, ns)| format!("{name} {:.2} µs", f64::from(*ns) / 1e3));
        format!("Ours, the longest of all: {}.", each.collect::<Vec<_>>().join(", "))
    }

    fn latencies(&self) -> impl Iterator<Item = (&Measurement, &Lateness)> {
        self.of(Experiment::Latency).filter_map(|m| Some((m, m.rtos.as_ref()?)))
    }
}

/// Policy, what Linux does, separation.
fn latency_name(m: &Measurement) -> String {
    let doing = LOADS.iter().find(|(linux, _)| *linux == m.point.linux);
    let doing = doing.map_or("?", |(_, doing)| doing);
    let word = SEPARATIONS.iter().find(|(on, _)| *on == m.point.separation);
    let word = word.map_or("?", |(_, word)| word);
    format!("{}, {doing}, {word}", m.point.stage.name())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{late, lhp};

    #[test]
    fn on_demand_is_compared_with_partition() {
        let of = |on_demand| {
            lhp(vec![
                late("latency-partition-hackbench-apart", &[(1_000, 9_990), (2_000, 10)]),
                late("latency-on-demand-hackbench-apart", &[(1_050, 9_990), (on_demand, 10)]),
            ])
        };
        let holding = |on_demand| {
            let checks = of(on_demand).latency_checks();
            checks.iter().map(crate::results::Check::holds).collect::<Vec<_>>()
        };
        // p99.9 and max under hackbench; nothing was measured under writes.
        assert_eq!(holding(2_200), [true, true, false, false]);
        assert_eq!(holding(2_201), [true, false, false, false]);
        let drawn = of(2_200).latency_figures(super::Latency::Dispatch, &super::DRAWN);
        let files: Vec<_> = drawn.iter().map(|drawing| drawing.file.as_str()).collect();
        assert_eq!(files, ["dispatch-hackbench-separation.svg"], "nothing else was measured");
        assert!(of(2_200).other_policies().is_empty());
        let csv = of(2_200).latency_csv();
        assert!(csv.contains("on-demand,hackbench,separation,dispatch,2200,10\n"), "{csv}");
    }
}
