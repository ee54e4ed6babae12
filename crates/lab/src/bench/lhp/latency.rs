//! How late the RTOS is, under what Linux does.

use super::plan::{ADVANCES_US, LONG_PERIOD_US, MEAN_US, SHORT_PERIOD_US};
use super::point::{Experiment, Linux, Point, Stage, Wake};
use super::run::Measurement;
use super::{Lhp, estimated, policies_of};
use crate::bench::sample::Estimate;
use crate::dataset::{Dataset, Unit};
use crate::machine::VirtualTime;
use crate::observe::{Distribution, Lateness};
use crate::quantity::count;
use crate::report::Plot;
use crate::results::{Check, Goal};

/// Microseconds of a tick.
const US: f64 = 1e6 / VirtualTime::COUNTER_HZ as f64;
/// Most that on-demand may be later than `partition`, that being 1.
const LATER: f64 = 1.1;
/// Most that it may be later than `none` where nothing is foreseen: a departure, nanoseconds.
const DEPARTURE_NS: f64 = 200.0;
/// Most that a shared core may be later than the bare board where the timer is foreseen,
/// nanoseconds.
const LATER_THAN_NATIVE_NS: f64 = 250.0;
/// Most that it may be later where nothing foretells the interrupt, nanoseconds.
const UNFORESEEN_BEYOND_NATIVE_NS: f64 = 900.0;

/// What stands for a core without interrupt priorities: Linux's masking delays the RTOS.
pub(super) const MASKED: &str = "masked";
/// How many times later the RTOS is at worst without separation, at least (vlk, Figures 5 and 6: more
/// than 100 µs, and less than 40 µs).
const WITHOUT_SEPARATION: f64 = 2.5;
/// The RTOS on the bare board.
pub(super) const NATIVE: &str = "native";
/// What Linux does meanwhile, with its name.
pub(super) const LOADS: [(Linux, &str); 2] =
    [(Linux::BusyHackbench, "hackbench"), (Linux::BusyWrite, "file writes")];
/// What stands there where there is no Linux.
const NO_LINUX: &str = "no Linux";
/// Separation of interrupt priorities, with its name.
const SEPARATIONS: [(bool, &str); 2] = [(true, "separation"), (false, "no separation")];
/// What does not matter.
const ANY: &str = "-";
/// What is drawn first: more curves would hide each other.
pub(super) const DRAWN: [&str; 4] = [NATIVE, "partition", "none", "on-demand"];
/// The policies of PECCS's Figures 5 to 7, from the largest mean to the smallest: of each the
/// name in that paper, and ours, the first that was measured.
pub(super) const PECCS: [(&str, &[&str]); 3] = [
    ("delayed preemption", &["delayed-call", "delayed-page", "delayed-peek"]),
    ("on-demand", &["on-demand-fixed", "on-demand"]),
    ("trap-based", &["trap-based-paper", "trap-based-deferred"]),
];

/// Returns true if the policy stands for one of PECCS's.
pub(super) fn is_of_peccs(policy: &str) -> bool {
    PECCS.iter().any(|(_, ours)| ours.contains(&policy))
}

/// What a latency depends on besides the policy.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Setting {
    linux: Linux,
    separation: bool,
    wake: Wake,
    period_us: u32,
    load_permille: u32,
    advance_us: Option<u32>,
}

impl Setting {
    /// Under hackbench, with separation of priorities.
    pub(super) fn hackbench(period_us: u32, advance_us: u32) -> Self {
        let (linux, separation, wake) = (Linux::BusyHackbench, true, Wake::Timer);
        let (load_permille, advance_us) = (0, Some(advance_us));
        Self { linux, separation, wake, period_us, load_permille, advance_us }
    }

    /// This setting, in which each activation takes so many thousandths of a period.
    pub(super) fn loaded(self, load_permille: u32) -> Self {
        Self { load_permille, ..self }
    }

    /// Returns the setting in which the RTOS is woken by what no clock foretells.
    pub(super) fn unforeseen(wake: Wake) -> Self {
        Self { wake, advance_us: None, ..Self::hackbench(MEAN_US, 0) }
    }

    /// Returns true if `policy`, or the bare board, is measured at `point` in this setting; on
    /// the bare board only the period matters.
    fn is_of(&self, policy: &str, point: &Point) -> bool {
        let Some(rtos) = point.rtos else { return false };
        let its = (rtos.period_us, rtos.load_permille, rtos.wake);
        if its != (self.period_us, self.load_permille, self.wake) {
            return false;
        }
        match &point.stage {
            Stage::Native => policy == NATIVE,
            Stage::Alone { .. } => false,
            Stage::Shared { policy: its } => {
                its == policy
                    && point.linux == self.linux
                    && point.separation == self.separation
                    && rtos.advance_us == self.advance_us
            }
        }
    }
}

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
    /// The measurement of `policy`, or of [`NATIVE`], in a setting.
    pub(super) fn late(&self, policy: &str, setting: &Setting) -> Option<&Lateness> {
        let here = |m: &&Measurement| setting.is_of(policy, &m.point);
        self.of(Experiment::Latency).find(here)?.rtos.as_ref()
    }

    /// A figure of the dispatch latency there, nanoseconds.
    pub(super) fn dispatch(
        &self,
        policy: &str,
        setting: &Setting,
        figure: impl Fn(&Distribution) -> Option<f64>,
    ) -> Option<f64> {
        figure(&self.late(policy, setting)?.dispatch)
    }

    pub(super) fn plans_late(&self, policy: &str, setting: &Setting) -> bool {
        let mut planned = self.planned.iter().filter(|p| p.experiment == Experiment::Latency);
        planned.any(|point| setting.is_of(policy, point))
    }

    pub(super) fn latency_checks(&self) -> Vec<Check> {
        if !self.plans(Experiment::Latency) {
            return Vec::new();
        }
        let [none, default] =
            ADVANCES_US.map(|advance| Setting::hackbench(SHORT_PERIOD_US, advance));
        let writes = Setting { linux: Linux::BusyWrite, ..default.clone() };
        let mut checks = Vec::new();
        for (setting, how) in [
            (&none, "hackbench, no advance"),
            (&default, "hackbench, the default advance"),
            (&writes, "file writes, the default advance"),
        ] {
            for (permille, which) in [(999, "p99.9"), (1_000, "max")] {
                let of = |policy| self.dispatch(policy, setting, |all| percentile(all, permille));
                let ratio = of("on-demand").zip(of("partition")).map(|(a, b)| a / b);
                let name =
                    format!("on-demand, {how}: dispatch latency, {which}, partition's being 1");
                checks.push(Check::new(&name, ratio, "", Goal::AtMost(LATER)));
            }
        }
        let beyond = |[policy, other]: [&str; 2], setting| {
            let of = |policy| self.dispatch(policy, setting, max);
            of(policy).zip(of(other)).map(|(a, b)| a - b)
        };
        let [departs, native] = [["on-demand", "none"], ["on-demand", NATIVE]];
        let name = "on-demand, hackbench, no advance: worst dispatch latency beyond that of none";
        checks.push(Check::new(name, beyond(departs, &none), "ns", Goal::AtMost(DEPARTURE_NS)));
        let name =
            "on-demand, hackbench, the default advance: worst dispatch latency beyond native";
        let goal = Goal::AtMost(LATER_THAN_NATIVE_NS);
        checks.push(Check::new(name, beyond(native, &default), "ns", goal));
        checks.extend(self.unforeseen_checks());
        checks.extend(self.separation_checks());
        checks.extend(self.peccs_order());
        checks
    }

    /// What no clock foretells, beside the bare board.
    fn unforeseen_checks(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        for wake in Wake::UNFORESEEN.into_iter().filter(|wake| wake.is_on_the_bare_board()) {
            let (setting, about) = (Setting::unforeseen(wake), wake.about());
            let of = |policy| self.dispatch(policy, &setting, max);
            let both = |policy| of(policy).zip(of(NATIVE));
            let is_planned = |policy: &str| self.plans_late(policy, &setting);
            if is_planned("on-demand") {
                let name = format!(
                    "on-demand, unforeseen {about}: worst dispatch latency, native's being 1"
                );
                let ratio = both("on-demand").map(|(ours, native)| ours / native);
                checks.push(Check::new(&name, ratio, "", Goal::AtMost(LATER)));
            }
            for policy in ["none", "on-demand"].into_iter().filter(|policy| is_planned(policy)) {
                let name =
                    format!("{policy}, unforeseen {about}: worst dispatch latency beyond native");
                let beyond = both(policy).map(|(ours, native)| ours - native);
                let goal = Goal::AtMost(UNFORESEEN_BEYOND_NATIVE_NS);
                checks.push(Check::new(&name, beyond, "ns", goal));
            }
        }
        checks
    }

    /// The settings of Linux's load in which separation is taken away altogether: without, and with.
    fn separation(load: &Linux) -> [(&'static str, Setting); 2] {
        let with = Setting { linux: load.clone(), ..Setting::hackbench(LONG_PERIOD_US, 0) };
        [(MASKED, Setting { separation: false, ..with.clone() }), ("none", with)]
    }

    /// Returns the longest dispatch latencies without and with separation, nanoseconds.
    pub(super) fn separated(&self, load: &Linux) -> Option<[f64; 2]> {
        let [without, with] =
            Self::separation(load).map(|(policy, setting)| self.dispatch(policy, &setting, max));
        Some([without?, with?])
    }

    /// Returns how many activations both have.
    pub(super) fn separated_activations(&self, load: &Linux) -> Option<String> {
        let both = Self::separation(load);
        let late = both.iter().filter_map(|(policy, setting)| self.late(policy, setting));
        counted(late.map(|late| late.dispatch.count()))
    }

    fn separation_checks(&self) -> Vec<Check> {
        let planned = |load: &Linux| {
            let [(policy, setting), _] = Self::separation(load);
            self.plans_late(policy, &setting)
        };
        let check = |(load, name): &(Linux, &str)| {
            let ratio = self.separated(load).map(|[without, with]| without / with);
            let name = format!(
                "{name}: longest dispatch latency without separation, with separation being 1"
            );
            Check::new(&name, ratio, "", Goal::AtLeast(WITHOUT_SEPARATION)).as_statement()
        };
        LOADS.iter().filter(|(load, _)| planned(load)).map(check).collect()
    }

    /// Ours beside vlk's Figures 5 and 6, for the text.
    pub(super) fn separation_finding(&self) -> Option<String> {
        let each = LOADS.iter().filter_map(|(load, name)| {
            let [without, with] = self.separated(load)?.map(|ns| ns / 1e3);
            Some(format!("{name}: {without:.2} µs without, {with:.2} µs with separation"))
        });
        let each: Vec<_> = each.collect();
        (!each.is_empty()).then(|| {
            format!(
                "Ours, the longest dispatch latencies each {LONG_PERIOD_US} µs, without a timer advance: \
                 {}. Without separation Linux's masking delays the RTOS (policy {MASKED}), which here \
                 has to be made on purpose.",
                each.join("; ")
            )
        })
    }

    /// The latencies of both, under one load.
    pub(super) fn separation_plots(&self, histogram: &Dataset) -> Vec<(String, Plot)> {
        let plot = |(load, name): &(Linux, &'static str)| {
            self.separated(load)?;
            let release = format!("{LONG_PERIOD_US} µs");
            let some = histogram.only("latency", &["dispatch"]).only("linux", &[name]);
            let some = some.only("release", &[&release]).only("advance", &["no advance"]);
            let some = some.only("policy", &[MASKED, "none"]);
            Some((
                (*name).to_owned(),
                Plot::histogram(&some, "latency_ns", "activations").by("policy"),
            ))
        };
        LOADS.iter().filter_map(plot).collect()
    }

    /// PECCS's policies that are planned without an advance, with their names there.
    pub(super) fn peccs(&self) -> Vec<(&'static str, &'static str)> {
        let setting = Setting::hackbench(SHORT_PERIOD_US, 0);
        let ours = |(theirs, ours): (_, &[&'static str])| {
            let planned = ours.iter().find(|policy| self.plans_late(policy, &setting));
            planned.map(|policy| (theirs, *policy))
        };
        PECCS.into_iter().filter_map(ours).collect()
    }

    /// The order of PECCS's means, 24.09 µs, 4.71 µs and 2.30 µs.
    fn peccs_order(&self) -> Vec<Check> {
        let setting = Setting::hackbench(SHORT_PERIOD_US, 0);
        let of = |policy: &str| Estimate::of(&self.late(policy, &setting)?.dispatch);
        let pairs = self.peccs();
        let check = |pair: &[(&str, &'static str)]| {
            let [(_, later), (_, sooner)] = [pair[0], pair[1]];
            let name = format!(
                "hackbench, no advance: mean dispatch latency, {later}, that of {sooner} being 1"
            );
            let ratio = of(later).zip(of(sooner)).map(|(later, sooner)| later.over(sooner));
            estimated(&name, ratio, "", Goal::AtLeast(1.0)).as_statement()
        };
        pairs.windows(2).map(check).collect()
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
                let words = names(m).into_iter().filter(|word| word != ANY);
                format!("{}: {}", words.collect::<Vec<_>>().join(", "), latency.name)
            })
            .head("")
            .for_people()
            .name("policy", |(m, ..)| names(m)[0].clone())
            .for_programs()
            .name("linux", |(m, ..)| names(m)[1].clone())
            .for_programs()
            .name("separation", |(m, ..)| names(m)[2].clone())
            .for_programs()
            .name("release", |(m, ..)| names(m)[3].clone())
            .for_programs()
            .name("advance", |(m, ..)| names(m)[4].clone())
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
            .name("release", |(names, ..)| names[3].clone())
            .name("advance", |(names, ..)| names[4].clone())
            .name("latency", |(_, latency, _)| latency.name)
            .column("latency", Unit::Nanoseconds, |(.., (ticks, _))| f64::from(*ticks) * US * 1e3)
            .name("activations", |(.., (_, count))| *count)
            .done()
    }

    /// A plot for each setting: what of the latencies, and under which policies. Each with its
    /// title and the name of its file.
    pub(super) fn latency_plots(
        &self,
        histogram: &Dataset,
        latency: Latency,
        policies: &[&'static str],
    ) -> Vec<(String, String, Plot)> {
        let mut settings: Vec<[String; 4]> = Vec::new();
        for (m, _) in self.latencies().filter(|(m, _)| m.point.stage != Stage::Native) {
            let [_, setting @ ..] = names(m);
            if !settings.contains(&setting) {
                settings.push(setting);
            }
        }
        let one = |[doing, word, release, advance]: [String; 4]| {
            let some = histogram.only("latency", &[latency.name]).only("policy", policies);
            let some = some.only("linux", &[&doing, NO_LINUX]).only("separation", &[&word, ANY]);
            let some = some.only("release", &[&release]).only("advance", &[&advance, ANY]);
            let what = [&doing, &word, &release, &advance].map(String::as_str);
            let what: Vec<_> = what.into_iter().filter(|word| *word != ANY).collect();
            let what = what.join(", ");
            let title = format!("{} under {what}", latency.title);
            let file = format!("{}-{what}", latency.name).replace(", ", "-").replace(' ', "-");
            let plot = Plot::histogram(&some, "latency_ns", "activations").by("policy");
            let is_there = !some.only("linux", &[&doing]).is_empty();
            is_there.then_some((title, file.replace('µ', "u"), plot))
        };
        settings.into_iter().filter_map(one).collect()
    }

    /// PECCS's policies as in its Figures 5 to 7, and the bare board.
    pub(super) fn peccs_plot(&self, histogram: &Dataset) -> Option<Plot> {
        let policies = self.peccs().into_iter().map(|(_, policy)| policy);
        let names: Vec<_> = [NATIVE].into_iter().chain(policies).collect();
        let some = histogram.only("latency", &["dispatch"]).only("policy", &names);
        let some =
            some.only("linux", &["hackbench", NO_LINUX]).only("separation", &["separation", ANY]);
        let release = format!("{SHORT_PERIOD_US} µs");
        let some = some.only("release", &[&release]).only("advance", &["no advance", ANY]);
        let plot = Plot::histogram(&some, "latency_ns", "activations").by("policy");
        (!some.only("linux", &["hackbench"]).is_empty()).then_some(plot)
    }

    /// How late the RTOS is at worst where nothing foretells the interrupt, for the text.
    pub(super) fn unforeseen_finding(&self) -> String {
        let of = |wake| {
            let setting = Setting::unforeseen(wake);
            let each = DRAWN.into_iter().filter_map(|name| {
                Some(format!("{name} {:.2} µs", self.dispatch(name, &setting, max)? / 1e3))
            });
            let each: Vec<_> = each.collect();
            (!each.is_empty()).then(|| format!("{}: {}", wake.about(), each.join(", ")))
        };
        let all: Vec<_> = Wake::UNFORESEEN.into_iter().filter_map(of).collect();
        if all.is_empty() {
            return "Ours: not measured.".into();
        }
        let quantum = Wake::Sgi.quantum_ns();
        format!(
            "Ours, the longest dispatch latencies, exact to {quantum} ns where another guest has the \
             core: {}.",
            all.join("; ")
        )
    }

    /// The policies that are not [`DRAWN`] together, a few at a time.
    pub(super) fn other_policies(&self) -> Vec<Vec<&'static str>> {
        let measured: Vec<_> = self.latencies().map(|(m, _)| &m.point).collect();
        let names = policies_of(&measured).into_iter().map(|policy| policy.name);
        let others: Vec<_> = names.filter(|name| !DRAWN.contains(name)).collect();
        others.chunks(DRAWN.len()).map(<[_]>::to_vec).collect()
    }

    /// Mean and greatest dispatch latencies without an advance, for the text.
    pub(super) fn latency_finding(&self) -> String {
        let setting = Setting::hackbench(SHORT_PERIOD_US, 0);
        let peccs = self.peccs().into_iter().map(|(_, policy)| policy);
        let mut all: Vec<_> = DRAWN.into_iter().chain(peccs).collect();
        let mut seen = Vec::new();
        all.retain(|name| {
            !seen.contains(name) && {
                seen.push(name);
                true
            }
        });
        let each = all.into_iter().filter_map(|name| {
            let dispatch = &self.late(name, &setting)?.dispatch;
            let (mean, max) = (dispatch.mean()?, dispatch.max()?);
            Some(format!("{name} {:.2} µs, at most {:.2} µs", mean / 1e3, f64::from(max) / 1e3))
        });
        let each = each.collect::<Vec<_>>().join("; ");
        format!("Ours under hackbench, without a timer advance, in the mean: {each}.")
    }

    fn latencies(&self) -> impl Iterator<Item = (&Measurement, &Lateness)> {
        self.of(Experiment::Latency).filter_map(|m| Some((m, m.rtos.as_ref()?)))
    }
}

/// Returns how many activations there were, for a cell of a table: one number where distributions have
/// equally many, else all of them in turn. None without any distribution.
pub(super) fn counted(counts: impl IntoIterator<Item = u64>) -> Option<String> {
    let mut counts: Vec<u64> = counts.into_iter().collect();
    counts.dedup();
    let counts: Vec<String> = counts.into_iter().map(count).collect();
    (!counts.is_empty()).then(|| counts.join(" / "))
}

/// The latency that one of a thousand activations exceeds: it can be compared where numbers of activations
/// differ, and the longest cannot.
pub(super) fn p999(all: &Distribution) -> Option<f64> {
    percentile(all, 999)
}

pub(super) fn max(all: &Distribution) -> Option<f64> {
    all.max().map(f64::from)
}

fn percentile(all: &Distribution, permille: u64) -> Option<f64> {
    all.percentile(permille).map(f64::from)
}

/// Returns the policy, what Linux does, whether there is separation, how often the RTOS is
/// released, and its timer advance, in words.
fn names(m: &Measurement) -> [String; 5] {
    let point = &m.point;
    let native = point.stage == Stage::Native;
    let doing = LOADS.iter().find(|(linux, _)| *linux == point.linux);
    let doing = doing.map_or(NO_LINUX, |(_, name)| name);
    let word = SEPARATIONS.iter().find(|(on, _)| *on == point.separation && !native);
    let word = word.map_or(ANY, |(_, name)| name);
    let release = point.rtos.map_or_else(
        || ANY.into(),
        |rtos| match rtos.wake {
            Wake::Timer => format!("{} µs", rtos.period_us),
            wake => wake.about().into(),
        },
    );
    let advance = match point.rtos.and_then(|rtos| rtos.advance_us) {
        None => ANY.into(),
        Some(0) => "no advance".into(),
        Some(us) => format!("advance {us} µs"),
    };
    [point.stage.name(), doing.into(), word.into(), release, advance]
}

#[cfg(test)]
mod tests {
    use super::super::tests::{late, only};
    use crate::results::Check;

    #[test]
    fn on_demand_is_compared_with_partition_and_with_the_bare_board() {
        let of = |on_demand| {
            only(vec![
                late("latency-native-97us", &[(400, 10_000)]),
                late("latency-partition-hackbench-97us-advance0", &[(1_000, 9_990), (2_000, 10)]),
                late("latency-none-hackbench-97us-advance0", &[(1_000, 10_000)]),
                late(
                    "latency-on-demand-hackbench-97us-advance0",
                    &[(1_050, 9_990), (on_demand, 10)],
                ),
                late("latency-on-demand-hackbench-97us-advance4", &[(650, 10_000)]),
            ])
        };
        let holding = |on_demand| {
            let checks = of(on_demand).latency_checks();
            let known = checks.into_iter().filter(|check| check.value.is_some());
            known.map(|check| check.holds()).collect::<Vec<_>>()
        };
        // p99.9 and max beside partition, max beside none and beside native.
        assert_eq!(holding(1_200), [true, true, true, true]);
        assert_eq!(holding(2_200), [true, true, false, true]);
        assert_eq!(holding(2_201), [true, false, false, true]);
        let all = of(2_200);
        let histogram = all.latency_histogram();
        let plots = all.latency_plots(&histogram, super::LATENCIES[1], &super::DRAWN);
        let files: Vec<_> = plots.iter().map(|(_, file, _)| file.as_str()).collect();
        assert_eq!(
            files,
            [
                "dispatch-hackbench-separation-97-us-no-advance",
                "dispatch-hackbench-separation-97-us-advance-4-us"
            ],
            "nothing else was measured"
        );
        assert!(all.other_policies().is_empty());
        let csv = String::from_utf8(histogram.csv().unwrap()).unwrap();
        let row = "on-demand,hackbench,separation,97 µs,no advance,dispatch,2200,10\n";
        assert!(csv.contains(row), "{csv}");
        assert_eq!(all.latency_data().json()[7]["max_us"], 2.2);
    }

    #[test]
    fn numbers_of_activations_that_differ_are_all_told() {
        assert_eq!(super::counted([30_000, 30_000]).as_deref(), Some("30,000"));
        assert_eq!(super::counted([30_000, 10_000]).as_deref(), Some("30,000 / 10,000"));
        assert_eq!(super::counted([]), None);
    }

    #[test]
    fn what_masks_is_compared_with_separation() {
        let found = |without| {
            let all = only(vec![
                late("latency-masked-write-997us-advance0-together", &[(600, 9), (without, 1)]),
                late("latency-none-write-997us-advance0-apart", &[(600, 9), (1_000, 1)]),
            ]);
            assert_eq!(all.separation_plots(&all.latency_histogram()).len(), 1);
            assert!(all.separation_finding().unwrap().contains("1.00 µs with"));
            let [check] = &all.separation_checks()[..] else { panic!("one load was planned") };
            (check.value, check.holds())
        };
        assert_eq!(found(2_500), (Some(2.5), true));
        assert_eq!(found(2_400), (Some(2.4), false));
    }

    #[test]
    fn what_is_not_foreseen_is_compared_with_the_bare_board() {
        let found = |most| {
            let all = only(vec![
                late("latency-native-sgi", &[(400, 9), (1_000, 1)]),
                late("latency-none-hackbench-sgi", &[(900, 9), (1_900, 1)]),
                late("latency-on-demand-hackbench-sgi", &[(900, 9), (most, 1)]),
            ]);
            let known = all.unforeseen_checks().into_iter().filter(|check| check.value.is_some());
            known.map(|check| (check.value.unwrap(), check.holds())).collect::<Vec<_>>()
        };
        assert_eq!(found(1_100), [(1.1, true), (900.0, true), (100.0, true)]);
        assert!(only(Vec::new()).unforeseen_finding().contains("not measured"));
        assert_eq!(found(2_000), [(2.0, false), (900.0, true), (1_000.0, false)]);
    }

    /// The mean of the first is above that of the second, and so on; one that is not, is said.
    #[test]
    fn the_order_of_the_paper_is_a_check() {
        let found = |on_demand| {
            let all = only(vec![
                late("latency-on-demand-hackbench-97us-advance0", &[(on_demand, 9)]),
                late("latency-trap-based-deferred-hackbench-97us-advance0", &[(900, 9)]),
            ]);
            let statement = |check: &Check| check.name.contains("that of trap-based");
            all.peccs_order().into_iter().find(statement).unwrap()
        };
        let all = only(vec![late("latency-on-demand-hackbench-97us-advance0", &[(9, 9)])]);
        assert!(all.peccs_plot(&all.latency_histogram()).is_some());
        assert!(
            only(Vec::new()).peccs_plot(&all.latency_histogram().only("policy", &[])).is_none()
        );
        let (above, below) = (found(1_800), found(450));
        assert_eq!((above.value, above.holds()), (Some(2.0), true));
        assert_eq!((below.value, below.holds()), (Some(0.5), false));
    }
}
