//! What was found, for people and programs.

use super::case::{Case, Load, Measure, PERIOD_US};
use super::system::{Scheduler, System};
use super::{CALLS, Found, Seen};
use crate::answer::Answer;
use crate::bench::sample::Sample;
use crate::dataset::{Dataset, Unit};
use crate::observe::Distribution;
use crate::report::Plot;
use maud::html;

/// The systems of which instructions are compared, in the order of the columns.
const COMPARED: [System; 7] = [
    System::Board,
    System::PLAIN,
    System::Xen(Scheduler::Credit2),
    System::Xen(Scheduler::Rtds),
    System::KVM,
    System::KVM_RT,
    System::Bao,
];
/// A row of the instructions that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// What the guest measures, by its name.
    Call(&'static str, &'static str),
    /// From the timer until the vector of a guest that sleeps beside a Linux that computes.
    Switch,
    /// What an activation takes from Linux.
    Taken,
}

impl Row {
    pub fn all() -> Vec<Self> {
        let calls = CALLS.iter().map(|&(name, words)| Self::Call(name, words));
        calls.chain([Self::Switch, Self::Taken]).collect()
    }

    pub const fn words(self) -> &'static str {
        match self {
            Self::Call(_, words) => words,
            Self::Switch => "wake from a computing neighbour, until the vector",
            Self::Taken => "taken from Linux for each activation",
        }
    }
}

impl Found {
    pub fn find(&self, wanted: impl Fn(&Case) -> bool) -> Option<&Seen> {
        self.measurements.iter().find(|seen| wanted(&seen.case))
    }

    /// Returns how late the guest of `system` woke, and how many periods it missed.
    pub fn wakes(&self, system: System, cores: u32, load: Load) -> Option<(&Distribution, u64)> {
        let is_it = |case: &Case| {
            let measured = matches!(case.measure, Measure::Wake { load: l, .. } if l == load);
            measured && (case.system, case.cores) == (system, cores)
        };
        let seen = self.find(is_it)?;
        Some((seen.values_ns.get("wake")?, seen.missed))
    }

    /// Returns how late the guest of `system` was where its second core woke it.
    pub fn surprises(&self, system: System, load: Load) -> Option<&Distribution> {
        let is_it = |case: &Case| {
            let measured = matches!(case.measure, Measure::Woken { load: l, .. } if l == load);
            measured && case.system == system
        };
        self.find(is_it)?.values_ns.get("woken")
    }

    fn call(&self, system: System, name: &str) -> Option<&Distribution> {
        let is_it =
            |case: &Case| matches!(case.measure, Measure::Call { .. }) && case.system == system;
        self.find(is_it)?.values_ns.get(name)
    }

    /// Returns what one unit of computing takes Linux, without the first, seconds.
    fn computing_s(&self, system: System, awake: bool) -> Option<f64> {
        let is_it = |case: &Case| {
            let measured =
                matches!(case.measure, Measure::Taken { is_awake, .. } if is_awake == awake);
            measured && case.system == system
        };
        Some(self.find(is_it)?.runs.steady().mean()).filter(|mean| mean.is_finite())
    }

    /// Returns what an activation takes from Linux, instructions: how much longer Linux computes, by
    /// the periods that pass meanwhile. A nanosecond is an instruction, and there is one core.
    pub fn taken(&self, system: System) -> Option<f64> {
        let (asleep, awake) = (self.computing_s(system, false)?, self.computing_s(system, true)?);
        Some(1e3 * PERIOD_US as f64 * (awake - asleep) / awake)
    }

    /// Returns a row's instructions under `system`: the median, of what an activation takes the mean.
    pub fn instructions(&self, row: Row, system: System) -> Option<f64> {
        let median = |all: &Distribution| all.percentile(500).map(f64::from);
        match row {
            Row::Call(name, _) => self.call(system, name).and_then(median),
            Row::Switch => median(self.wakes(system, 1, Load::Compute)?.0),
            Row::Taken => self.taken(system),
        }
    }

    /// Returns the times of hackbench beside a guest that burns so much, without the first, seconds.
    pub fn hackbench(&self, system: System, percent: Option<u32>) -> Option<Sample> {
        let is_it = |case: &Case| {
            let measured = matches!(case.measure,
                Measure::Hackbench { burn_percent, .. } if burn_percent == percent);
            measured && case.system == system
        };
        Some(self.find(is_it)?.runs.steady()).filter(|runs| !runs.0.is_empty())
    }

    /// Returns the loads beside which hackbench was to run, percent.
    pub fn loads_percent(&self) -> Vec<u32> {
        let load = |case: &Case| match case.measure {
            Measure::Hackbench { burn_percent, .. } => burn_percent,
            _ => None,
        };
        let mut loads: Vec<u32> = self.planned.iter().filter_map(load).collect();
        loads.sort_unstable();
        loads.dedup();
        loads
    }

    /// Returns the peers of which something was to be measured.
    pub fn peers(&self) -> Vec<System> {
        let is_planned = |system: &System| self.planned.iter().any(|case| case.system == *system);
        let peers = System::ALL.into_iter().filter(|system| system.is_peer());
        peers.filter(is_planned).collect()
    }

    pub fn answer(&self) -> Answer {
        let lead = "The same bare-metal guest, which wakes each millisecond, and the same SMP Linux \
                    on the same board under Cassata, Xen and KVM, each tuned as its manual says. \
                    Time is virtual: a nanosecond is an instruction of a core, at any exception \
                    level. What hardware adds for caches, barriers and device registers is in no \
                    figure.";
        let mut answer = Answer::new("peers", "Xen and KVM beside Cassata", lead);
        answer.judged(self.checks(), self.measurements.len(), self.all);
        self.illustrate(&mut answer);
        for data in self.data() {
            answer.data(&data);
        }
        answer.csv(&self.histogram());
        if let Some(quoted) = self.quoted(&answer) {
            answer.document("bench peers", quoted);
        }
        answer
    }

    pub fn data(&self) -> [Dataset; 9] {
        [
            self.latency(),
            self.unforeseen(),
            self.freertos(),
            self.cyclictest(),
            self.calls(),
            self.taking(),
            self.throughput(),
            self.boots(),
            self.settings(),
        ]
    }

    fn illustrate(&self, answer: &mut Answer) {
        let late = self.latency().only("beside", &["computing"]);
        if !late.is_empty() {
            let plot = Plot::bars(&late, "system", "max_ns");
            let caption = "One core, Linux computes: the longest time from the timer until the \
                           guest's vector.";
            let plot = answer.plot("latency", &plot, caption);
            answer.section("How late is the real-time guest?", html! { (plot) });
        }
        let taking = self.taking();
        if !taking.is_empty() {
            let plot = Plot::bars(&taking, "system", "taken_instructions");
            let caption = "One core, Linux computes: by how much an activation delays it.";
            let plot = answer.plot("taken", &plot, caption);
            answer.section("What does an activation take from Linux?", html! { (plot) });
        }
        let throughput = self.throughput();
        if !throughput.is_empty() {
            let plot = Plot::lines(&throughput.known("burns_percent"), "burns_percent", "mean_s");
            let plot = plot.by("system").interval("low_s", "high_s");
            let caption = "Four cores: mean time of hackbench -g 1 beside a guest that burns a part \
                           of one core, with the interval in which it lies with 95 %.";
            let plot = answer.plot("hackbench", &plot, caption);
            answer.section("How fast is Linux beside the guest?", html! { (plot) });
        }
    }

    /// How late the guest wakes.
    pub fn latency(&self) -> Dataset {
        let is_wake = |seen: &&Seen| matches!(seen.case.measure, Measure::Wake { .. });
        let rows = self.measurements.iter().filter(is_wake);
        let title = "Wake-up by timer: from the timer until the guest's vector";
        Dataset::of("latency", title, rows)
            .name("system", |seen| seen.case.system.words())
            .head("")
            .name("cores", |seen| seen.case.cores)
            .name("beside", |seen| beside(seen))
            .name("missed", |seen| seen.missed)
            .summary(Unit::Nanoseconds, |_| 1.0, |seen| seen.values_ns.get("wake"))
            .done()
    }

    /// How late the guest wakes where no clock foretells it.
    fn unforeseen(&self) -> Dataset {
        let is_woken = |seen: &&Seen| matches!(seen.case.measure, Measure::Woken { .. });
        let rows = self.measurements.iter().filter(is_woken);
        let title = "Wake-up by the guest's second core: from before that sends an interrupt until \
                     the first core's vector; two cores";
        Dataset::of("unforeseen", title, rows)
            .name("system", |seen| seen.case.system.words())
            .head("")
            .name("beside", |seen| beside(seen))
            .summary(Unit::Nanoseconds, |_| 1.0, |seen| seen.values_ns.get("woken"))
            .done()
    }

    /// How often each latency occurred.
    fn histogram(&self) -> Dataset {
        let wakes = self.measurements.iter().filter_map(|seen| {
            let Measure::Wake { load, .. } = seen.case.measure else { return None };
            Some((seen, load, seen.values_ns.get("wake")?))
        });
        let rows = wakes.flat_map(|(seen, load, all)| {
            all.iter().map(move |(value, count)| (seen, load, value, count))
        });
        Dataset::of("latency-histogram", "Wake-up by timer", rows)
            .name("system", |row| row.0.case.system.name())
            .name("cores", |row| row.0.case.cores)
            .name("beside", |row| row.1.name())
            .column("latency", Unit::Nanoseconds, |row| f64::from(row.2))
            .name("count", |row| row.3)
            .done()
    }

    /// Instructions of each kind.
    fn calls(&self) -> Dataset {
        let measured = |system: &System| {
            Row::all().into_iter().any(|row| self.instructions(row, *system).is_some())
        };
        let systems: Vec<_> = COMPARED.into_iter().filter(measured).collect();
        let rows = if systems.is_empty() { Vec::new() } else { Row::all() };
        let apart = if systems.contains(&System::Bao) { ", Bao: four" } else { "" };
        let title = format!("Instructions, by the guest's counter: the median; one core{apart}");
        let mut data =
            Dataset::of("instructions", &title, rows).name("what", |row| row.words()).head("");
        for system in systems {
            let of = |row: &Row| self.instructions(*row, system).map(f64::round);
            let key = system.name().replace('-', "_");
            data = data.column(&key, Unit::Instructions, of).head(&system.words()).digits(0);
        }
        data.done()
    }

    /// What activations take from Linux.
    fn taking(&self) -> Dataset {
        let measured = |system: &System| self.taken(*system).is_some();
        let systems =
            [System::ADVANCED, System::ADAPTED].into_iter().chain(COMPARED).filter(measured);
        let title = "Linux computes on one core: how much longer, for each activation of the guest";
        Dataset::of("taken", title, systems)
            .name("system", |system| system.words())
            .head("")
            .column("asleep", Unit::Seconds, |system| self.computing_s(*system, false))
            .head("the guest sleeps")
            .shown_in(Unit::Milliseconds, 3)
            .column("awake", Unit::Seconds, |system| self.computing_s(*system, true))
            .head("it wakes each millisecond")
            .shown_in(Unit::Milliseconds, 3)
            .column("taken", Unit::Instructions, |system| self.taken(*system).map(f64::round))
            .head("instructions for each activation")
            .digits(0)
            .done()
    }

    /// The times of hackbench.
    pub fn throughput(&self) -> Dataset {
        let rows = self.measurements.iter().filter_map(|seen| {
            let Measure::Hackbench { burn_percent, .. } = seen.case.measure else { return None };
            let runs = self.hackbench(seen.case.system, burn_percent)?;
            Some((seen.case.system, burn_percent, runs))
        });
        let interval = |runs: &Sample| Some(runs.interval()).filter(|half| half.is_finite());
        Dataset::of("hackbench", "hackbench -g 1 -l 100 on four cores", rows)
            .name("system", |row| row.0.words())
            .head("")
            .column("burns", Unit::Percent, |row| row.1.map(f64::from))
            .head("the guest burns")
            .digits(0)
            .name("runs", |row| row.2.0.len())
            .column("mean", Unit::Seconds, |row| row.2.mean())
            .shown_in(Unit::Milliseconds, 1)
            .column("low", Unit::Seconds, |row| Some(row.2.mean() - interval(&row.2)?))
            .for_programs()
            .column("high", Unit::Seconds, |row| Some(row.2.mean() + interval(&row.2)?))
            .for_programs()
            .column("interval", Unit::Seconds, |row| interval(&row.2))
            .head("± with 95 %")
            .shown_in(Unit::Milliseconds, 1)
            .for_people()
            .done()
    }

    /// How each is tuned.
    fn settings(&self) -> Dataset {
        let is_planned = |system: &System| self.planned.iter().any(|case| case.system == *system);
        let systems = System::ALL.into_iter().skip(1).filter(is_planned);
        Dataset::of("settings", "How each is tuned", systems)
            .name("system", |system| system.words())
            .head("")
            .name("settings", |system| system.settings())
            .done()
    }
}

/// Returns what Linux does beside the guest, in words.
pub fn beside(seen: &Seen) -> &'static str {
    match seen.case.measure.load() {
        Some(_) if seen.case.system == System::Board => "nothing (no Linux)",
        load => load.map_or("", Load::words),
    }
}
