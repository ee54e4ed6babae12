//! What is demanded of Cassata beside the best of its peers.

use super::Found;
use super::case::{Case, Load, Measure};
use super::plan::{CORES, ON_DEMAND_ADVANCED};
use super::system::{Scheduler, System};
use super::table::Row;
use crate::bench::sample::Sample;
use crate::results::{Check, Goal};

/// The most of the best peer's longest latency, without a timer advance.
const LATENCY: f64 = 1.0 / 15.0;
/// The most of the best peer's instructions.
const INSTRUCTIONS: f64 = 0.5;
/// The most instructions that an activation takes from Linux with a timer advance of what its way takes.
const TAKEN: f64 = 2_000.0;
/// How many times as long hackbench has to take beside Xen's guest.
const AHEAD_OF_XEN: f64 = 1.15;

impl Found {
    pub fn checks(&self) -> Vec<Check> {
        let mut all = self.latency_checks();
        all.extend(Load::ALL.map(|load| self.unforeseen_check(load)));
        all.extend(Row::all().into_iter().map(|row| self.instruction_check(row)));
        all.extend(self.adapted_checks());
        all.extend(self.freertos_checks());
        all.extend(self.cyclictest_checks());
        all.extend(self.loads_percent().into_iter().flat_map(|load| self.throughput_checks(load)));
        all
    }

    /// Returns the least that `of` says of a peer, and of which.
    fn best(&self, of: impl Fn(System) -> Option<f64>) -> Option<(System, f64)> {
        let known = self.peers().into_iter().filter_map(|peer| Some((peer, of(peer)?)));
        known.min_by(|one, other| one.1.total_cmp(&other.1))
    }

    fn latency_checks(&self) -> Vec<Check> {
        let planned = |cores, load| {
            self.plans(|case| {
                let is_it = matches!(case.measure, Measure::Wake { load: l, .. } if l == load);
                is_it && case.cores == cores
            })
        };
        let all = Load::ALL.map(|load| (1, load)).into_iter().chain([(CORES, Load::Hackbench)]);
        let planned = all.filter(|&(cores, load)| planned(cores, load));
        planned.flat_map(|(cores, load)| self.latency_checks_of(cores, load)).collect()
    }

    fn latency_checks_of(&self, cores: u32, load: Load) -> [Check; 2] {
        let most = |system| Some(f64::from(self.wakes(system, cores, load)?.0.max()?));
        let (on, beside) = (if cores == 1 { "one core" } else { "four cores" }, load.words());
        let missed = self.wakes(System::PLAIN, cores, load).map(|(_, missed)| missed as f64);
        let none = format!("periods missed, {on}, {beside}");
        [
            self.latency_check(&format!("{on}, {beside}"), most),
            Check::new(&none, missed, "", Goal::Exactly(0.0)),
        ]
    }

    /// Returns what is demanded of a timer advance that is adapted: little is taken from Linux, and the
    /// guest is as soon.
    fn adapted_checks(&self) -> Vec<Check> {
        let name = "taken from Linux for each activation, adapted timer advance";
        let taken =
            Check::new(name, self.taken(System::ADAPTED), "instructions", Goal::AtMost(TAKEN));
        let most = |system, load| Some(f64::from(self.wakes(system, 1, load)?.0.max()?));
        let late = Load::ALL.map(|load| {
            let part = most(System::ADAPTED, load)
                .zip(most(System::ADVANCED, load))
                .map(|(one, all)| one / all);
            let beside = load.words();
            let name =
                format!("longest latency, one core, {beside}: adapted, part of the default's");
            Check::new(&name, part, "", Goal::AtMost(1.0))
        });
        [taken].into_iter().chain(late).collect()
    }

    fn unforeseen_check(&self, load: Load) -> Check {
        let most = |system| Some(f64::from(self.surprises(system, load)?.max()?));
        self.latency_check(&format!("no clock foretells it, {}", load.words()), most)
    }

    /// Returns what is demanded of a longest latency, which `most` says of each system.
    pub fn latency_check(&self, what: &str, most: impl Fn(System) -> Option<f64>) -> Check {
        self.part_of_best(&format!("longest latency, {what}"), most, LATENCY)
    }

    fn instruction_check(&self, row: Row) -> Check {
        let of = |system| self.instructions(row, system);
        self.part_of_best(&format!("instructions, {}", row.words()), of, INSTRUCTIONS)
    }

    /// Returns what is demanded of a figure, which `of` says of each system: at most so large a part of the best
    /// peer's.
    fn part_of_best(&self, what: &str, of: impl Fn(System) -> Option<f64>, most: f64) -> Check {
        let best = self.best(&of);
        let peer = best.map_or_else(|| "a peer".into(), |(peer, _)| peer.words());
        let part = of(System::PLAIN).zip(best).map(|(ours, (_, best))| ours / best);
        Check::new(&format!("{what}: part of the best ({peer})"), part, "", Goal::AtMost(most))
    }

    /// Returns true if a run of Cassata for which `is_it` holds was asked for.
    pub fn plans(&self, is_it: impl Fn(&Case) -> bool) -> bool {
        self.planned.iter().any(|case| case.system == System::PLAIN && is_it(case))
    }

    /// Returns what is demanded of hackbench beside a guest that burns so much.
    fn throughput_checks(&self, percent: u32) -> Vec<Check> {
        let of = |system| self.hackbench(system, Some(percent));
        let ours = of(ON_DEMAND_ADVANCED);
        let load = format!("hackbench, the guest burns {percent} %");
        let ahead_of = |which: &str, is_one: fn(Scheduler) -> bool| {
            let is_xen = |system: &System| matches!(system, System::Xen(how) if is_one(*how));
            let xens = self.peers().into_iter().filter(is_xen);
            let xens = xens.filter_map(|xen| Some((xen, of(xen)?.mean())));
            let xen = xens.min_by(|one, other| one.1.total_cmp(&other.1));
            let best = xen.map_or_else(|| "Xen".into(), |(xen, _)| xen.words());
            let ahead = xen.zip(ours.as_ref()).map(|((_, xen), ours)| xen / ours.mean());
            let name = format!("{load}: the best Xen{which} ({best}), times as long as on-demand");
            Check::new(&name, ahead, "", Goal::AtLeast(AHEAD_OF_XEN))
        };
        let (part, most) = ours.as_ref().zip(of(System::KVM)).map_or((None, 1.0), |(ours, kvm)| {
            let (part, most) = level(ours, &kvm);
            (Some(part), most)
        });
        vec![
            ahead_of(" that is tuned for its guest", |how| !how.is_for_throughput()),
            ahead_of(", however late its guest is", |_| true),
            Check::new(
                &format!("{load}: on-demand, part of KVM, up to the interval of the difference"),
                part,
                "",
                Goal::AtMost(most),
            ),
        ]
    }
}

/// Returns what part of another mean the first one is, and what it is at most while the two are level:
/// the difference is within its interval of 95 %. Single runs have none.
fn level(ours: &Sample, other: &Sample) -> (f64, f64) {
    let half = ours.interval().hypot(other.interval());
    let half = if half.is_finite() { half } else { 0.0 };
    (ours.mean() / other.mean(), 1.0 + half / other.mean())
}

#[cfg(test)]
mod tests {
    use super::super::boot::Boot;
    use super::super::case::Case;
    use super::super::{Seen, cyclictest, plan};
    use super::*;
    use crate::bench::Extent;
    use crate::guests::{Lateness, Spread};
    use crate::observe::Distribution;
    use std::collections::BTreeMap;

    /// What a run brings in which all that the guest measures takes so long, and Linux's runs so.
    fn seen(case: &Case, ns: u32, seconds: f64) -> Seen {
        let one = |name: &str| {
            let mut values = Distribution::default();
            values.record_many(ns, 100);
            (name.to_owned(), values)
        };
        let values_ns: BTreeMap<_, _> =
            ["wake", "woken", "call", "read", "sgi", "timer", cyclictest::NAME]
                .map(one)
                .into_iter()
                .collect();
        let spread = Spread { min_ns: ns.into(), mean_ns: ns.into(), max_ns: ns.into() };
        let lateness = Lateness { missed: 0, response: spread, dispatch: spread };
        let lateness = matches!(case.measure, Measure::Freertos { .. }).then_some(lateness);
        let boot = Boot { linux_s: 2.0, guest_s: 1.0, hypervisor_bytes: 9, program_bytes: None };
        let boot = (case.measure == Measure::Boot).then_some(boot);
        let runs = Sample(vec![9.0, seconds, seconds, seconds]);
        let (real_s, virtual_s) = (1.0, 1.0);
        Seen { case: case.clone(), real_s, virtual_s, values_ns, missed: 0, runs, lateness, boot }
    }

    fn found(extent: Extent, of: impl Fn(&Case) -> (u32, f64)) -> Found {
        found_with(extent, plan::Own::default(), of)
    }

    fn found_with(extent: Extent, own: plan::Own<'_>, of: impl Fn(&Case) -> (u32, f64)) -> Found {
        let planned = plan::cases(extent, own);
        let measurements = planned.iter().map(|case| seen(case, of(case).0, of(case).1));
        let (measurements, all) = (measurements.collect(), planned.len());
        Found { planned, measurements, failures: Vec::new(), all }
    }

    fn failing(found: &Found) -> Vec<String> {
        let checks = found.checks().into_iter().filter(|check| !check.holds());
        checks.map(|check| check.name).collect()
    }

    /// Peers take `times` as long as we in all that the guest measures, and Linux as long as `xen`
    /// and `kvm` say.
    fn apart(times: u32, xen: f64, kvm: f64) -> impl Fn(&Case) -> (u32, f64) {
        move |case| {
            let ns = if case.system.is_peer() { 200 * times } else { 200 };
            let taken = match case.measure {
                Measure::Taken { is_awake: true, .. } => {
                    if case.system.is_peer() {
                        0.005
                    } else {
                        0.001
                    }
                }
                _ => 0.0,
            };
            let seconds = match case.system {
                System::Xen(_) => xen,
                System::KVM => kvm,
                _ => 1.0,
            };
            (ns, seconds + taken)
        }
    }

    #[test]
    fn goals_are_met_and_missed_where_they_are() {
        assert_eq!(failing(&found(Extent::Full, apart(16, 1.2, 1.0))), Vec::<String>::new());
        let late = failing(&found(Extent::Full, apart(14, 1.2, 1.0)));
        assert_eq!(late.len(), 7 + 6 + 3, "of the waker, FreeRTOS and Linux: {late:?}");
        assert!(late.iter().all(|name| name.starts_with("longest latency")), "{late:?}");
        let dear = failing(&found(Extent::Quick, apart(1, 1.2, 1.0)));
        let dear: Vec<_> = dear.iter().filter(|name| name.starts_with("instructions")).collect();
        assert_eq!(dear.len(), Row::all().len() - 1, "what is taken is another figure: {dear:?}");
        let slow = failing(&found(Extent::Quick, apart(16, 1.1, 0.9)));
        assert_eq!(slow.len(), 2 + 1, "Xen in two ways, and KVM: {slow:?}");
    }

    #[test]
    fn two_means_are_level_as_far_as_their_runs_scatter() {
        let runs = |values: &[f64]| Sample(values.to_vec());
        let (part, most) = level(&runs(&[1.1]), &runs(&[1.0]));
        assert!((part - 1.1).abs() < 1e-9 && most == 1.0);
        let (part, most) = level(&runs(&[1.0, 1.2, 1.1]), &runs(&[1.0, 1.0, 1.0]));
        // The standard deviation is 0.1, of three runs, and t 4.30.
        assert!((part - 1.1).abs() < 1e-9 && (most - (1.0 + 0.43 / 3.0_f64.sqrt())).abs() < 1e-9);
    }

    #[test]
    fn an_activation_takes_what_computing_lasts_longer() {
        let found = found(Extent::Quick, |case| {
            let awake = matches!(case.measure, Measure::Taken { is_awake: true, .. });
            (200, if awake { 1.0 } else { 0.998 })
        });
        // Two thousandths of a period of a millisecond.
        let taken = found.taken(System::ADVANCED).unwrap();
        assert!((taken - 2_000.0).abs() < 1e-6, "{taken}");
        let missing = Found { measurements: Vec::new(), ..found };
        assert_eq!(missing.taken(System::ADVANCED), None);
        assert!(missing.checks().iter().all(|check| !check.holds()));
        assert!(!missing.answer().page().is_empty());
    }

    #[test]
    fn what_was_measured_stands_in_every_table() {
        let answer = found(Extent::Full, apart(16, 1.2, 1.0)).answer();
        let rows = |name: &str| answer.outcome.figures[name].as_array().unwrap().len();
        assert_eq!((rows("instructions"), rows("taken"), rows("hackbench")), (6, 5, 25));
        assert_eq!((rows("freertos"), rows("cyclictest"), rows("boot")), (19, 19, 3));
        assert_eq!(answer.outcome.figures["latency"][0]["system"], "bare board");
        assert!(answer.summary().contains("sched_ratelimit_us=0"));
    }

    #[test]
    fn what_cyclictest_slept_through_under_cassata_stands_beside_its_latencies_and_is_none() {
        let mut all = found(Extent::Quick, apart(16, 1.2, 1.0));
        let is_it = |seen: &&mut Seen| {
            let linux =
                matches!(seen.case.measure, Measure::Cyclictest { load: Load::Compute, .. });
            linux && [System::ADAPTED, System::KVM].contains(&seen.case.system)
        };
        all.measurements.iter_mut().filter(is_it).for_each(|seen| seen.missed = 2);
        assert_eq!(failing(&all), ["periods missed by cyclictest, computing"], "KVM has no goal");
        let rows = &all.answer().outcome.figures["cyclictest"];
        let missed = rows.as_array().unwrap().iter().filter(|row| row["missed"] == 2);
        assert_eq!(missed.count(), 2, "{rows}");
        all.measurements.retain(|seen| seen.case.system != System::ADVANCED);
        let unknown = failing(&all);
        assert!(unknown.iter().any(|name| name == "periods missed by cyclictest, nothing"));
    }

    /// Xen's rows for latency keep Linux on the core that the guest takes, and `on-demand` does not.
    #[test]
    fn a_xen_that_is_tuned_for_throughput_is_the_best_where_it_is() {
        let late = apart(16, 1.2, 1.0);
        let all = found(Extent::Full, |case| match case.system {
            System::Xen(Scheduler::Credit2Throughput) => (200, 1.1),
            _ => late(case),
        });
        let checks = all.checks();
        let of_xen: Vec<_> =
            checks.iter().filter(|check| check.name.contains("the best Xen, however")).collect();
        assert_eq!(of_xen.len(), 4, "for each load");
        let is_ahead = |check: &&Check| {
            check.name.contains("tuned for its guest (Xen, credit2)") && check.holds()
        };
        assert_eq!(checks.iter().filter(is_ahead).count(), 4, "of those tuned for their guest");
        for check in of_xen {
            let (name, value) = (&check.name, check.value_text());
            assert!(name.contains("(Xen, credit2 for throughput)") && !check.holds(), "{name}");
            assert_eq!(value, "1.1", "{name}");
        }
    }

    /// A core of its own costs Linux that core: it is another thing than what the goals compare.
    #[test]
    fn bao_stands_in_the_tables_and_in_no_goal() {
        let bao = Some(std::path::Path::new("/nonexistent/bao"));
        let with = found_with(Extent::Quick, plan::Own { bao, ..plan::Own::default() }, |case| {
            if case.system == System::Bao { (1, 0.1) } else { apart(16, 1.2, 1.0)(case) }
        });
        assert_eq!(failing(&with), Vec::<String>::new());
        let checks = with.checks();
        assert!(checks.iter().all(|check| !check.name.contains("Bao")));
        assert_eq!(checks.len(), found(Extent::Quick, apart(16, 1.2, 1.0)).checks().len());
        let answer = with.answer();
        let rows = |name: &str| answer.outcome.figures[name].to_string();
        for table in ["latency", "hackbench", "settings", "boot"] {
            assert!(rows(table).contains("Bao, a core of its own"), "{table}: {}", rows(table));
        }
        assert_eq!(answer.outcome.figures["instructions"][0]["bao_instructions"], 1.0);
    }

    #[test]
    fn a_whole_run_is_quoted_and_a_part_is_not() {
        let root = crate::testing::root();
        let whole = found(Extent::Quick, apart(16, 1.2, 1.0));
        let mut part = whole.clone();
        part.measurements.pop();
        let refused = part.answer().write_documents(root).unwrap_err().to_string();
        assert_eq!(refused, "no document quotes these figures of peers");
        let first = |found: &Found| {
            let quoted = found.quoted(&found.answer())?;
            quoted.lines().next().map(str::to_owned)
        };
        assert_eq!(first(&part), None);
        let quick = first(&whole).unwrap();
        let begins =
            "Measured with `--quick`: fewer of each, and these rows of a whole run are missing: ";
        assert!(quick.starts_with(begins), "{quick}");
        assert!(quick.contains("wake-ups by timer on 4 cores beside hackbench."), "{quick}");
        assert!(quick.contains("a guest that burns 30 %") && quick.contains("up to 500 periods"));
        let full = first(&found(Extent::Full, apart(16, 1.2, 1.0))).unwrap();
        assert!(full.starts_with("Measured by a whole run. It has up to 2000 periods"), "{full}");
        let page = whole.answer().page();
        assert!(page.contains("taken from Linux for each activation"), "{page}");
    }
}
