//! What costs instructions at EL2, and how each is provoked N times.

use super::visits::{Exception, Visits};
use crate::bench::Told;
use crate::bundle::{Bundle, channel};
use crate::machine::{Machine, Time, VirtualTime};
use crate::observe::{Distribution, Observer};
use crate::progress::Progress;
use crate::session::{Limit, Session};
use crate::suite::Bench;
use miette::{Result, miette};
use std::path::Path;
use std::time::{Duration, Instant};
use vtime::stats::Statistics;

/// How often each event is counted.
pub const EVENTS: u64 = 10_000;
/// The VM that provokes the events: the first of each system.
const PROBE: usize = 0;
/// Real time for one machine: long for a busy host, short for a hang.
const LIMIT: Duration = Duration::from_secs(60);

/// A system whose first VM provokes an event [`EVENTS`] times: its description
/// says so in the VM's command line.
#[derive(Clone, Copy, Debug)]
pub struct Provoked {
    /// Its description, in `systems/bench`.
    system: &'static str,
    /// What is counted of it.
    pub kinds: &'static [Kind],
}

/// A kind of visit to EL2.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// In words.
    pub name: &'static str,
    /// For programs.
    pub key: &'static str,
    /// How it comes in.
    exception: Exception,
    /// Most instructions that the median may have.
    pub goal: u32,
}

/// Most instructions for a virtual timer interrupt that needs no switch: what
/// published hypervisors compare (Bao takes about 189).
const TIMER_INTERRUPT: u32 = 190;
/// Most instructions for a call that does nothing.
const NULL_CALL: u32 = 100;
/// Most instructions for a switch between two vCPUs.
const SWITCH: u32 = 600;

/// All there are. A vCPU that its timer wakes takes an interrupt and a switch
/// in one visit.
pub const PROVOKED: [Provoked; 3] = [
    Provoked {
        system: "timer",
        kinds: &[Kind {
            name: "virtual timer interrupt, no switch",
            key: "timer_interrupt",
            exception: Exception::Irq,
            goal: TIMER_INTERRUPT,
        }],
    },
    Provoked {
        system: "null-call",
        kinds: &[Kind {
            name: "null hypercall",
            key: "null_call",
            exception: Exception::Synchronous,
            goal: NULL_CALL,
        }],
    },
    Provoked {
        system: "switch",
        kinds: &[
            Kind {
                name: "switch to a vCPU that its timer wakes",
                key: "switch_at_wake",
                exception: Exception::Irq,
                goal: TIMER_INTERRUPT + SWITCH,
            },
            Kind {
                name: "switch from a vCPU that goes to sleep",
                key: "switch_at_sleep",
                exception: Exception::Synchronous,
                goal: SWITCH,
            },
        ],
    },
];

/// Instructions of [`EVENTS`] visits of each kind in `provoked`.
pub fn count(
    provoked: &Provoked,
    bench: &Bench,
    progress: &mut Progress,
) -> Result<Vec<Distribution>> {
    let [once, twice] = [EVENTS, 2 * EVENTS].map(|events| run(provoked, events, bench, progress));
    let (once, twice) = (once?, twice?);
    let beyond =
        |kind: &Kind| Visits::by(kind.exception, &twice).beyond(&Visits::by(kind.exception, &once));
    Ok(provoked.kinds.iter().map(beyond).collect())
}

fn read(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path);
    text.map_err(|error| miette!("cannot read {}: {error}", path.display()))
}

/// Boots the system with `events` to provoke; what its instrument counted.
fn run(
    provoked: &Provoked,
    events: u64,
    bench: &Bench,
    progress: &mut Progress,
) -> Result<Statistics> {
    let trial = Trial { system: provoked.system, label: "", edits: &[], quantum_ns: None };
    Ok(trial.run(events, bench, progress)?.0)
}

/// A system in `systems/bench`, and how it is run.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// Its description.
    pub system: &'static str,
    /// What tells its logs from those of other trials with it.
    pub label: &'static str,
    /// Text of the description, and what takes its place.
    pub edits: &'static [(&'static str, &'static str)],
    /// How long a core's turn is, if not as usual.
    pub quantum_ns: Option<u64>,
}

impl Trial {
    /// The description, with so many events to provoke.
    fn text(&self, path: &Path, events: u64) -> Result<String> {
        let text = read(path)?.replace(&format!("={EVENTS}\""), &format!("={events}\""));
        self.edits.iter().try_fold(text, |text, (from, to)| match text.contains(from) {
            true => Ok(text.replace(from, to)),
            false => Err(miette!("{}: there is no `{from}` to replace", path.display())),
        })
    }

    /// Boots it with `events` to provoke; what its instrument counted, and what
    /// its guests reported.
    pub fn run(
        &self,
        events: u64,
        bench: &Bench,
        progress: &mut Progress,
    ) -> Result<(Statistics, Observer)> {
        let Self { system, label, .. } = self;
        let path = bench.root.join(format!("systems/bench/{system}.toml"));
        let checked = system::load_text(&path, &self.text(&path, events)?)?;
        let directory = bench.directory.join(format!("{system}{label}-{events}"));
        std::fs::create_dir_all(&directory)
            .map_err(|error| miette!("cannot make {}: {error}", directory.display()))?;
        let bundle = Bundle::pack(&checked, bench.hypervisor, &directory.join("system.elf"))?;
        let time = VirtualTime::new(&bench.instrument, &bench.qemu, &directory)?;
        let time = Time::Virtual(match self.quantum_ns {
            Some(quantum_ns) => time.with_quantum(quantum_ns),
            None => time,
        });
        let consoles = bundle.consoles(Some(directory.clone()));
        let mut machine = Machine::start(&bench.qemu, &bundle.machine_in(&time), &consoles)?;
        let mut observer = Observer::new(bundle.layout(), time.pace());
        let mut passed = false;
        let what = format!("{system}{label}, {events} times");
        let begin = Instant::now();
        Session {
            machine: &mut machine,
            observer: &mut observer,
            view: &mut Told::of(&what, progress),
            interrupt: bench.interrupt.clone(),
            limit: Some(Limit::Real(LIMIT)),
        }
        .run(|lines, observer| {
            let said = lines.iter().filter(|line| line.channel == channel(PROBE));
            passed |= said.into_iter().any(|line| line.text.starts_with("PASS "));
            observer.latest().is_some_and(|now| now.vms[PROBE].is_over())
        })?;
        let counts = machine.statistics().filter(|counts| passed && counts.finished);
        let counted = counts.ok_or_else(|| {
            miette!(
                help = format!("its console: {}", directory.join("console-probe.log").display()),
                "the probe did not do its work ({what}) within {:.0} s",
                begin.elapsed().as_secs_f64()
            )
        })?;
        Ok((counted, observer))
    }
}
