//! How late the RTOS is, under what Linux does.

use super::point::{Experiment, Linux, Stage};
use super::run::Measurement;
use super::{Lhp, policies_of};
use crate::dataset::{Dataset, Unit};
use crate::machine::VirtualTime;
use crate::observe::{Distribution, Lateness};
use crate::report::Plot;
use crate::results::{Check, Goal};
use std::collections::BTreeMap;

/// Microseconds of a tick.
const US: f64 = 1e6 / VirtualTime::COUNTER_HZ as f64;
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
#[derive(Clone, Copy, Debug)]
pub(super) struct Latency {
    name: &'static str,
    title: &'static str,
    of: fn(&Lateness) -> &Distribution,
}

/// Until the interrupt handler runs, and until the task runs.
pub(super) const LATENCIES: [Latency; 2] = [
    Latency { name: "response", title: "Interrupt response time", of: |late| &late.response },
    Latency { name: "dispatch", title: "Dispatch latency", of: |late| &late.dispatch },
];

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

    pub(super) fn latency_checks(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        if !self.plans(Experiment::Latency) {
            return checks;
        }
        for (linux, doing) in &LOADS {
            for (permille, which) in [(999, "p99.9"), (1_000, "max")] {
                let of = |policy| {
                    let dispatch = &self.latency(policy, linux, true)?.dispatch;
                    dispatch.percentile(permille).map(f64::from)
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

    /// What is looked at of each run, with its distribution.
    fn each_latency(&self) -> Vec<(&Measurement, &Lateness, Latency)> {
        let both = |(m, lateness)| LATENCIES.map(|latency| (m, lateness, latency));
        self.latencies().flat_map(both).collect()
    }

    /// Every distribution that was measured, summed up.
    pub(super) fn latency_data(&self) -> Dataset {
        Dataset::of("latency", "Latencies of the RTOS", self.each_latency())
            .name("run", |(m, _, latency)| {
                let [policy, doing, separation] = names(m);
                format!("{policy}, {doing}, {separation}: {}", latency.name)
            })
            .head("")
            .for_people()
            .name("policy", |(m, ..)| names(m)[0].clone())
            .for_programs()
            .name("linux", |(m, ..)| names(m)[1].clone())
            .for_programs()
            .name("separation", |(m, ..)| names(m)[2].clone())
            .for_programs()
            .name("latency", |(.., latency)| latency.name)
            .for_programs()
            .name("activations", |(_, lateness, _)| lateness.activations)
            .for_programs()
            .name("missed", |(_, lateness, _)| lateness.missed)
            .for_programs()
            .summary(Unit::Microseconds, |_| US, |(_, lateness, l)| Some((l.of)(lateness)))
            .done()
    }

    /// How often which latency occurred.
    pub(super) fn latency_histogram(&self) -> Dataset {
        let bins = self.each_latency().into_iter().flat_map(|(m, lateness, latency)| {
            (latency.of)(lateness).iter().map(move |bin| (names(m), latency, bin))
        });
        Dataset::of("latency-histogram", "", bins)
            .name("policy", |(names, ..)| names[0].clone())
            .name("linux", |(names, ..)| names[1].clone())
            .name("separation", |(names, ..)| names[2].clone())
            .name("latency", |(_, latency, _)| latency.name)
            .column("latency", Unit::Nanoseconds, |(.., (ticks, _))| f64::from(*ticks) * US * 1e3)
            .name("activations", |(.., (_, count))| *count)
            .done()
    }

    /// A plot for each of what Linux does, with separation and without: what of the
    /// latencies, and under which policies. Each with its title and the name of its file.
    pub(super) fn latency_plots(
        &self,
        histogram: &Dataset,
        latency: Latency,
        policies: &[&'static str],
    ) -> Vec<(String, String, Plot)> {
        let one = |doing: &str, word: &str| {
            let some = histogram.only("latency", &[latency.name]).only("linux", &[doing]);
            let some = some.only("separation", &[word]).only("policy", policies);
            let title = format!("{} under {doing}, {word}", latency.title);
            let file = format!("{}-{doing}-{word}", latency.name).replace(' ', "-");
            let plot = Plot::histogram(&some, "latency_ns", "activations").by("policy");
            (!some.is_empty()).then_some((title, file, plot))
        };
        let all = LOADS.iter().flat_map(|(_, doing)| SEPARATIONS.map(|(_, word)| (doing, word)));
        all.filter_map(|(doing, word)| one(doing, word)).collect()
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
                let max = lateness.and_then(|l| l.dispatch.max());
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

/// Returns the policy, what Linux does, and whether there is separation, in words.
fn names(m: &Measurement) -> [String; 3] {
    let doing = LOADS.iter().find(|(linux, _)| *linux == m.point.linux);
    let word = SEPARATIONS.iter().find(|(on, _)| *on == m.point.separation);
    let (doing, word) = (doing.map_or("?", |(_, name)| name), word.map_or("?", |(_, name)| name));
    [m.point.stage.name(), doing.into(), word.into()]
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
        let all = of(2_200);
        let histogram = all.latency_histogram();
        let plots = all.latency_plots(&histogram, super::LATENCIES[1], &super::DRAWN);
        let files: Vec<_> = plots.iter().map(|(_, file, _)| file.as_str()).collect();
        assert_eq!(files, ["dispatch-hackbench-separation"], "nothing else was measured");
        assert!(all.other_policies().is_empty());
        let csv = String::from_utf8(histogram.csv().unwrap()).unwrap();
        assert!(csv.contains("on-demand,hackbench,separation,dispatch,2200,10\n"), "{csv}");
        assert_eq!(all.latency_data().json()[3]["max_us"], 2.2);
    }
}
