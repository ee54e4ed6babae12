//! One boot of a system that provokes what is to be counted.

use crate::bench::store::{self, measured};
use crate::bench::{ProgressView, Tell};
use crate::bundle::{Builds, Bundle};
use crate::demo;
use crate::figures::promises;
use crate::guests::LinuxWork;
use crate::machine::Time;
use crate::observe::{Distribution, Observer};
use crate::session::{PERIOD, Session};
use crate::suite::Bench;
use miette::{Result, miette};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use vtime::stats::Statistics;

/// How often the descriptions say that an event is provoked.
pub const DESCRIBED: u64 = 10_000;
/// The VM that provokes the events: the first of each system.
const PROBE: usize = 0;
/// Virtual time for one machine: the longest needs some seconds.
const LIMIT: Duration = Duration::from_secs(60);

/// The label of trials with the build that has optional parts, which the system does not ask for.
pub const PARTS: &str = "-parts";
/// The label of trials in which EL2 records what it does.
pub const TRACED: &str = "-traced";

/// What boots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Case {
    /// A system in `systems/bench`, whose first VM provokes an event.
    Probe(Trial),
    /// The demonstration until Linux has run hackbench once.
    Demo {
        /// True if interrupt priorities separate the RTOS from Linux.
        separation: bool,
    },
}

/// How a system in `systems/bench` is run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Name of its description.
    pub system: String,
    /// What tells it from other trials with this system.
    pub label: String,
    /// Text of the description, and what takes its place.
    pub edits: Vec<(String, String)>,
    /// How long a core's turn is, if not as usual.
    pub quantum_ns: Option<u64>,
    /// How often the event is provoked.
    pub events: u64,
}

/// What a boot brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// The boot.
    pub case: Case,
    /// Real time from start to end, in seconds.
    pub real_s: f64,
    /// What the instrument counted.
    pub statistics: Option<Statistics>,
    /// What the guest that reports saw, in ticks of [`crate::machine::VirtualTime::COUNTER_HZ`]: of the RTOS
    /// interrupt response times, of a vCPU that migrates absences until it ran elsewhere.
    pub response: Distribution,
    /// Likewise dispatch latencies, and whole round trips.
    pub dispatch: Distribution,
}

impl Case {
    /// Returns true if the hypervisor is not the build that its system asks for, or records.
    pub fn has_parts(&self) -> bool {
        matches!(self, Self::Probe(trial) if [PARTS, TRACED].contains(&trial.label.as_str()))
    }
}

impl store::Case for Case {
    /// Such as `switch-20000`, `migrate-timed-500`, `separation-on`.
    fn name(&self) -> String {
        match self {
            Self::Probe(Trial { system, label, events, .. }) => format!("{system}{label}-{events}"),
            Self::Demo { separation } => format!("separation-{}", on_or_off(*separation)),
        }
    }
}

measured!(Seen, case: Case, real_s);

/// Returns a switch in words.
pub fn on_or_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// Boots `case` with its files in the directory of `bench`.
pub fn run(case: &Case, bench: &Bench, tell: Tell<'_>) -> Result<Seen> {
    let begin = Instant::now();
    let (statistics, observer) = match case {
        Case::Probe(trial) => trial.run(bench, tell)?,
        Case::Demo { separation } => demonstrate(*separation, bench, tell)?,
    };
    // One guest at most reports.
    let reports = (0..observer.layout.vms.len()).find_map(|vm| observer.reports(vm));
    let [response, dispatch] =
        reports.map(|r| [r.response.clone(), r.dispatch.clone()]).unwrap_or_default();
    let real_s = begin.elapsed().as_secs_f64();
    Ok(Seen { case: case.clone(), real_s, statistics, response, dispatch })
}

impl Trial {
    fn run(&self, bench: &Bench, tell: Tell<'_>) -> Result<(Option<Statistics>, Observer)> {
        let events = (format!("={DESCRIBED}\""), format!("={}\"", self.events));
        let edits: Vec<_> = std::iter::once(events).chain(self.edits.iter().cloned()).collect();
        let path = format!("systems/bench/{}.toml", self.system);
        let builds = match self.label.as_str() {
            PARTS => Builds::one(bench.hypervisor.with_parts, bench.hypervisor.is_checked),
            _ => bench.hypervisor,
        };
        let bundle = Bundle::pack(&bench.described(&path, &edits)?, &builds, &bench.image())?;
        let time = bench.virtual_time()?;
        let time = Time::Virtual(match self.quantum_ns {
            Some(quantum_ns) => time.with_quantum(quantum_ns),
            None => time,
        });
        let run = Session::of(&bundle, &bench.qemu, &time, &bench.directory)
            .within(LIMIT)
            .interrupted_by(bench.interrupt.clone())
            .shown_by(Box::new(ProgressView(tell)))
            .run(|now| now.observer.is_over(PROBE))?;
        run.without_faults()?;
        promises::demand(&run)?;
        let passed = !run.said.guests[PROBE].probe.passed.is_empty();
        let counts = run.instrument.filter(|counts| passed && counts.finished);
        let log = bench.directory.join("console-probe.log");
        let counted = counts.ok_or_else(|| {
            miette!(
                help = format!("its console: {}", log.display()),
                "the probe did not do its work: {}",
                run.end.about()
            )
        })?;
        Ok((Some(counted), run.observer))
    }
}

fn demonstrate(
    separation: bool,
    bench: &Bench,
    tell: Tell<'_>,
) -> Result<(Option<Statistics>, Observer)> {
    let mut checked = bench.described("systems/demo.toml", &[])?;
    checked.priority_separation = separation;
    let bundle = bench.pack(&checked)?;
    // What budgets cost is measured here; that vCPUs keep to theirs is looked at elsewhere.
    let session = bench.session(&bundle, LIMIT)?.held_every(PERIOD);
    let session = session.shown_by(Box::new(ProgressView(tell)));
    let demo = demo::run(session, LinuxWork::Runs(1))?;
    demo.run.without_faults()?;
    promises::demand(&demo.run)?;
    if !demo.linux().did(demo.work) {
        return Err(miette!("Linux did not do its work"));
    }
    Ok((demo.run.instrument, demo.run.observer))
}
