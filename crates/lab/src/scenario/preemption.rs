//! Linux that has its preemption delayed, or yields where it spins, beside FreeRTOS.

use super::locks::OWN;
use super::stock::late;
use crate::demo::{LINUX, RTOS};
use crate::figures;
use crate::guests::{LinuxWork, Locks};
use crate::session::Run;
use crate::suite::{Bench, Scenario};
use crate::trace::Trace;
use abi::status::Exit;
use abi::trace::{Kind, Record};
use miette::{IntoDiagnostic, Result, WrapErr};
use serde::Serialize;
use std::time::Duration;

/// The description, from the project's root.
const DESCRIPTION: &str = "guests/linux-own/systems/beside.toml";
/// What is replaced in it: the policy with its limit, and what Linux is to do.
const POLICY: &str = "migration_policy = \"delayed-page\"\ndelay_limit = \"200us\"";
const ASKED: &str = "cassata.preemption=page cassata.yield=overcommitted ";
/// The limit there, nanoseconds.
const LIMIT_NS: u64 = 200_000;
/// What EL2 takes beyond it at most in a checked build, nanoseconds.
const BEYOND_NS: u64 = 20_000;
/// Virtual time within which Linux boots and has done its work: stock Linux needs five seconds.
const LIMIT: Duration = Duration::from_secs(20);
/// How often at least a wait ends by a call of Linux's.
const WAITS: u64 = 20;
/// What the kernel prints if a CPU finds that it was stopped, that it may not sleep where it does, or that it
/// executes what it cannot.
const COMPLAINTS: [&str; 7] = [
    "BUG:",
    "WARNING:",
    "stall",
    "lockup",
    "scheduling while atomic",
    "Oops",
    "ndefined instruction",
];

/// One way to run the description.
#[derive(Clone, Copy, Debug)]
struct Way {
    name: &'static str,
    about: &'static str,
    /// What the description says instead of [`POLICY`], and Linux is told instead of [`ASKED`].
    policy: &'static str,
    asked: &'static str,
    /// What Linux says that it uses.
    preemption: &'static str,
    yields: &'static str,
    demands: Demands,
}

/// What has to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Demands {
    /// FreeRTOS waits for locks.
    Waits,
    /// FreeRTOS waits for locks of which Linux does not tell when it releases them.
    WaitsUntold,
    /// FreeRTOS waits for nothing, and Linux yields.
    Yields,
    /// Neither.
    Neither,
}

const ON_DEMAND_FIXED: Way = Way {
    name: "on-demand-fixed",
    about: "Linux yields where it spins while two of its vCPUs share a core",
    policy: "migration_policy = \"on-demand-fixed\"\nyield = true",
    asked: "cassata.yield=overcommitted ",
    preemption: "none",
    yields: "overcommitted",
    demands: Demands::Yields,
};

const WAYS: [Way; 8] = [
    Way {
        name: "delayed-call",
        about: "an RTOS waits until Linux calls that it holds no lock any more",
        policy: "migration_policy = \"delayed-call\"\ndelay_limit = \"200us\"",
        asked: "cassata.preemption=call ",
        preemption: "call",
        yields: "none",
        demands: Demands::Waits,
    },
    Way {
        name: "delayed-page",
        about: "an RTOS waits until Linux has read that it is waited for, and yields",
        policy: POLICY,
        asked: "cassata.preemption=page ",
        preemption: "page",
        yields: "none",
        demands: Demands::Waits,
    },
    Way {
        name: "delayed-page-unlimited",
        about: "the same, however long a lock is held, as in the papers",
        policy: "migration_policy = \"delayed-page\"\ndelay_limit = \"none\"",
        asked: ASKED,
        preemption: "page",
        yields: "overcommitted",
        demands: Demands::Waits,
    },
    Way {
        name: "delayed-peek",
        about: "an RTOS waits while Linux, which tells nothing, counts what it holds",
        policy: "migration_policy = \"delayed-peek\"\ndelay_limit = \"200us\"\nyield = true",
        asked: "cassata.yield=overcommitted ",
        preemption: "none",
        yields: "overcommitted",
        demands: Demands::WaitsUntold,
    },
    Way {
        name: "yield-only",
        about: "a line that Linux has only because it may yield delays nothing",
        policy: "migration_policy = \"delayed-call\"\nyield = true",
        asked: ASKED,
        preemption: "none",
        yields: "overcommitted",
        demands: Demands::Neither,
    },
    ON_DEMAND_FIXED,
    Way {
        name: "on-demand-lazy",
        about: "the same where a vCPU goes back when it sleeps",
        policy: "migration_policy = \"on-demand-lazy\"\nyield = true",
        asked: "cassata.yield=overcommitted ",
        preemption: "none",
        yields: "overcommitted",
        demands: Demands::Yields,
    },
    Way {
        name: "trap-based-paper",
        about: "the same where a vCPU executes its kernel elsewhere",
        policy: "migration_policy = \"trap-based-paper\"\nyield = true",
        asked: "cassata.yield=overcommitted ",
        preemption: "none",
        yields: "overcommitted",
        demands: Demands::Yields,
    },
];

/// Returns those of the kernel with the port: the launcher builds it when they are asked for.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    WAYS.into_iter().map(|way| {
        let name = format!("{OWN}.{}", way.name);
        Scenario::new(name.clone(), way.about, move |bench: &Bench| run(&name, way, &[], bench))
            .by_name()
    })
}

/// Returns that of the module for stock Linux.
pub fn module() -> Scenario {
    const NAME: &str = "yield-module-beside";
    let stock = [("linux-own/Image".into(), "linux/Image".into())];
    let about = "the module yields for stock Linux while two of its vCPUs share a core";
    Scenario::new(NAME, about, move |bench: &Bench| run(NAME, ON_DEMAND_FIXED, &stock, bench))
}

fn run(name: &str, way: Way, more: &[(String, String)], bench: &Bench) -> Result<()> {
    let replaced = [(POLICY, way.policy), (ASKED, way.asked)];
    let replaced = replaced.map(|(from, to)| (from.to_owned(), to.to_owned()));
    let edits: Vec<_> = replaced.iter().chain(more).cloned().collect();
    let bundle = bench.pack(&bench.described(DESCRIPTION, &edits)?)?;
    let session = bench.session(&bundle, LIMIT)?;
    let run = session.run(|now| now.said.guests[0].linux.is_over(LinuxWork::All))?;
    let trace = Trace::read(&bench.directory)?;
    let waits = Waits::of(&trace);
    let console = bench.directory.join("console-linux.log");
    let console = std::fs::read(&console).into_diagnostic().wrap_err("Linux's console")?;
    let mut outcome = figures::outcome(name, &run);
    outcome.figure("waits", serde_json::json!(waits));
    outcome.figure("locks", format!("{:?}", run.said.guests[0].linux.locks));
    let mut objections = complaints(&String::from_utf8_lossy(&console));
    objections.extend(late(&run.observer));
    objections.extend(of_linux(way, &run));
    objections.extend(of_waits(way, &waits, &run));
    bench.judge(&run, outcome, &objections)
}

/// How waits of the RTOS for Linux ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Waits {
    /// Times it woke, and times it had the core.
    woken: u64,
    runs: u64,
    /// By a call: Linux holds no lock any more.
    by_call: u64,
    /// Because Linux slept.
    by_sleep: u64,
    /// By anything else, such as the limit.
    otherwise: u64,
    /// The longest, nanoseconds.
    longest_ns: u64,
    /// Records that were lost.
    lost: u64,
}

impl Waits {
    fn of(trace: &Trace) -> Self {
        let is_rtos = |vcpu: usize| trace.subject.label(vcpu) == format!("{RTOS}.0");
        let mut waits = trace.records.first().map_or_else(Self::default, |records| {
            Self::counted(records, is_rtos, trace.subject.counter_hz)
        });
        waits.lost = trace.lost.iter().sum();
        waits
    }

    /// Counts in the records of one core. The RTOS has waited if the other guest came to EL2 after
    /// the RTOS woke, and before it had the core. By what the other one came to EL2 at last, the wait
    /// has ended.
    fn counted(records: &[Record], is_rtos: impl Fn(usize) -> bool, counter_hz: u64) -> Self {
        let mut waits = Self::default();
        let (mut woken, mut exit) = (None, None);
        for record in records {
            match record.kind() {
                Some(Kind::Wake) if is_rtos(record.vcpu()) => waits.woken += 1,
                Some(Kind::Run) if is_rtos(record.vcpu()) => waits.runs += 1,
                _ => {}
            }
            match record.kind() {
                Some(Kind::Wake) if is_rtos(record.vcpu()) => {
                    (woken, exit) = (Some(record.time), None);
                }
                Some(Kind::Exit) if woken.is_some_and(|woken| record.time > woken) => {
                    exit = Some(record.argument());
                }
                Some(Kind::Run) if is_rtos(record.vcpu()) => {
                    let (woken, exit) = (woken.take(), exit.take());
                    let Some((woken, exit)) = woken.zip(exit) else { continue };
                    let ended_by = match exit {
                        exit if exit == Exit::Call as u32 => &mut waits.by_call,
                        exit if exit == Exit::Wait as u32 => &mut waits.by_sleep,
                        _ => &mut waits.otherwise,
                    };
                    *ended_by += 1;
                    let ticks = record.time.saturating_sub(woken);
                    let ns = ticks.saturating_mul(1_000_000_000) / counter_hz.max(1);
                    waits.longest_ns = waits.longest_ns.max(ns);
                }
                _ => {}
            }
        }
        waits
    }

    fn all(&self) -> u64 {
        self.by_call + self.by_sleep + self.otherwise
    }
}

/// Returns what the kernel complains about.
pub(super) fn complaints(console: &str) -> Vec<String> {
    let complains = |line: &&str| COMPLAINTS.iter().any(|word| line.contains(word));
    console.lines().filter(complains).map(|line| format!("Linux says: {line}")).collect()
}

/// Returns what is wrong with what Linux says that it did.
fn of_linux(way: Way, run: &Run) -> Vec<String> {
    let linux = &run.said.guests[0].linux;
    let mut all = Vec::new();
    if !linux.did(LinuxWork::All) {
        all.push(format!("hackbench did not finish ({:?})", linux.failed));
    }
    all.extend(of_locks(way, linux.locks.as_ref()));
    let seen = run.observer.layout.vm(LINUX).zip(run.observer.latest());
    let calls = seen.map(|(vm, now)| {
        let own = run.observer.layout.vms[vm].vcpus.clone();
        own.map(|vcpu| now.vcpus[vcpu].exits[Exit::Call as usize]).sum::<u64>()
    });
    let yielded = linux.locks.as_ref().map_or(0, |locks| locks.yielded);
    if calls.is_none_or(|calls| calls < yielded) {
        all.push(format!("Linux says that it yielded {yielded} times, EL2 saw {calls:?} calls"));
    }
    all
}

fn of_locks(way: Way, locks: Option<&Locks>) -> Vec<String> {
    let Some(locks) = locks else { return vec!["Linux says nothing of locks".into()] };
    let mut all = Vec::new();
    // The module says nothing of delayed preemption.
    let is_asked = locks.preemption.as_deref().is_none_or(|its| its == way.preemption);
    if !is_asked || locks.yields != way.yields {
        all.push(format!("Linux uses {locks:?}"));
    }
    if (locks.yielded > 0) != (way.demands == Demands::Yields) {
        all.push(format!("it yielded {} times", locks.yielded));
    }
    if locks.contended.is_some_and(|contended| contended < locks.yielded) {
        all.push(format!("it yielded more often than it was about to spin: {locks:?}"));
    }
    if way.preemption == "page" && locks.cancelled.is_none_or(|cancelled| cancelled < WAITS) {
        all.push(format!("it read {:?} times that it was waited for", locks.cancelled));
    }
    all
}

/// Returns what is wrong with how the RTOS waited.
fn of_waits(way: Way, waits: &Waits, run: &Run) -> Vec<String> {
    let mut all = Vec::new();
    if waits.lost > 0 {
        all.push(format!("{} records were lost", waits.lost));
    }
    let reports = run.observer.layout.vm(RTOS).and_then(|vm| run.observer.reports(vm));
    // It sleeps from each activation to the next.
    let activations = reports.and_then(|reports| reports.header).map_or(0, |header| header.written);
    if activations == 0 || waits.woken.min(waits.runs) < activations {
        all.push(format!("{activations} activations, of which the trace does not tell: {waits:?}"));
    }
    if !matches!(way.demands, Demands::Waits | Demands::WaitsUntold) {
        if waits.all() > 0 {
            all.push(format!("the RTOS waited: {waits:?}"));
        }
        return all;
    }
    let (ended, how) = match way.demands {
        Demands::WaitsUntold => (waits.otherwise, "when EL2 looked again"),
        _ => (waits.by_call, "by a call"),
    };
    if ended < WAITS {
        all.push(format!("{ended} waits ended {how}, not {WAITS}: {waits:?}"));
    }
    if waits.longest_ns > LIMIT_NS + BEYOND_NS && way.policy.contains("200us") {
        all.push(format!("the RTOS waited for longer than the limit: {waits:?}"));
    }
    let latest = reports.and_then(|reports| reports.response.max()).map_or(0, u64::from);
    if latest + BEYOND_NS < waits.longest_ns {
        all.push(format!("the RTOS saw {latest} ns at most: {waits:?}"));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::read;

    const OTHER: u8 = 0;
    const ITS: u8 = 1;

    fn counted(records: &[(u64, Kind, u8, u32)]) -> Waits {
        let records: Vec<_> = records
            .iter()
            .map(|&(time, kind, vcpu, argument)| Record::new(time, kind, vcpu, argument))
            .collect();
        Waits::counted(&records, |vcpu| vcpu == usize::from(ITS), 1_000_000_000)
    }

    #[test]
    fn the_description_has_what_is_replaced() {
        let text = read(&crate::testing::root().join(DESCRIPTION)).unwrap();
        assert!(text.contains(POLICY) && text.contains(ASKED));
    }

    #[test]
    fn a_wait_ends_with_what_the_other_guest_does_last() {
        let call = Exit::Call as u32;
        let interrupt = (10, Kind::Exit, OTHER, Exit::Interrupt as u32);
        let (wake, run) = ((11, Kind::Wake, ITS, 0), |at| (at, Kind::Run, ITS, 0));
        let at_once = Waits { woken: 1, runs: 1, ..Waits::default() };
        assert_eq!(counted(&[interrupt, wake, run(12)]), at_once, "it has not waited");
        let waited = counted(&[interrupt, wake, (30, Kind::Exit, OTHER, call), run(41)]);
        assert_eq!((waited.by_call, waited.longest_ns, waited.all()), (1, 30, 1));
        let later = (50, Kind::Exit, OTHER, Exit::Interrupt as u32);
        let waited = counted(&[interrupt, wake, (30, Kind::Exit, OTHER, call), later, run(51)]);
        assert_eq!((waited.by_call, waited.otherwise), (0, 1));
        let slept = (30, Kind::Exit, OTHER, Exit::Wait as u32);
        assert_eq!(counted(&[interrupt, wake, slept, run(31)]).by_sleep, 1);
    }

    #[test]
    fn each_demand_on_locks_can_fail() {
        let of = |name| WAYS.into_iter().find(|way| way.name == name).unwrap();
        let good = Locks {
            preemption: Some("page".into()),
            cancelled: Some(WAITS),
            yields: "none".into(),
            ..Locks::default()
        };
        assert_eq!(of_locks(of("delayed-page"), Some(&good)), [""; 0]);
        assert_eq!(of_locks(of("delayed-page"), None).len(), 1);
        assert_eq!(of_locks(of("delayed-call"), Some(&good)).len(), 1);
        let few = Locks { cancelled: Some(WAITS - 1), ..good.clone() };
        assert_eq!(of_locks(of("delayed-page"), Some(&few)).len(), 1);
        let yields = Locks {
            preemption: Some("none".into()),
            yields: "overcommitted".into(),
            yielded: 1,
            ..good
        };
        assert_eq!(of_locks(of("on-demand-fixed"), Some(&yields)), [""; 0]);
        let never = Locks { yielded: 0, ..yields.clone() };
        assert_eq!(of_locks(of("on-demand-fixed"), Some(&never)).len(), 1);
        assert_eq!(of_locks(of("yield-only"), Some(&never)), [""; 0]);
        let odd = Locks { contended: Some(0), preemption: None, ..yields };
        assert_eq!(of_locks(of("on-demand-fixed"), Some(&odd)).len(), 1);
    }

    #[test]
    fn a_complaint_of_the_kernel_is_seen() {
        assert_eq!(complaints("cassata: linux done\n").len(), 0);
        assert_eq!(complaints("BUG: scheduling while atomic: hackbench/61\nx\n").len(), 1);
    }
}
