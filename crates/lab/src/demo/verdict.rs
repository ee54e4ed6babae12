//! What the demonstration showed, and whether that is what it should show.

use super::{Demo, LINUX, LinuxWork, RTOS};
use crate::figures;
use crate::observe::{Distribution, Observer, Reports, Snapshot};
use crate::quantity::{count, duration, number};
use crate::report::Report;
use crate::results::{Check, Goal, Outcome};
use crate::session::End;
use crate::table::Table;
use std::time::Duration;

/// Fewest activations worth speaking of.
const FEWEST_ACTIVATIONS: f64 = 1_000.0;
/// Longest that the RTOS may have been silent when the run ends, ms: long
/// against any period, short against the run, so that a dead RTOS is found out
/// and a busy host is not taken for one.
const LONGEST_SILENCE_MS: f64 = 1_000.0;

/// Latest that the RTOS's handler may run in virtual time, us: from the instant
/// its timer is due to the handler's first instruction. In between lie, at the
/// worst: what EL2 does for Linux just then (its longest stay is in the table
/// of vCPUs, about 2 us), the timer's exit, the switch, the entry into the guest
/// (together about 1 us), and a quantum of virtual time (2 us), by which cores
/// may see each other late.
const LATEST_RESPONSE_US: f64 = 10.0;
/// Latest that the RTOS's task may run in virtual time, us: the same, and
/// FreeRTOS's own tick handler and context switch.
const LATEST_DISPATCH_US: f64 = 20.0;

/// Name of the check that the RTOS was never late.
pub const MISSED: &str = "RTOS activations missed";

/// Figures and checks.
#[must_use]
pub fn outcome(demo: &Demo) -> Outcome {
    let mut outcome = Outcome::new("demo");
    outcome.figures = figures::figures(&demo.observer);
    outcome.figure("real_time_s", demo.elapsed.as_secs_f64());
    if let Some(counts) = &demo.instrument {
        outcome.figure("virtual_time", figures::virtual_time(counts));
    }
    outcome.figure("linux_boot_s", demo.linux.boot_s);
    outcome.figure("hackbench_s", demo.linux.hackbench_s.clone());
    outcome.figure("ended", ended(demo));
    if let Some(kernel) = &demo.linux.kernel {
        outcome.parameter("linux_kernel", kernel.as_str());
    }
    check_linux(&mut outcome, demo);
    check_rtos(&mut outcome, &demo.observer);
    if demo.is_virtual() {
        check_latencies(&mut outcome, &demo.observer);
    }
    check_vms(&mut outcome, &demo.observer);
    outcome
}

/// Why it ended, in words.
fn ended(demo: &Demo) -> String {
    match (demo.end, &demo.linux.failed) {
        (_, Some(reason)) => format!("Linux gave up: {reason}"),
        (End::Reached, _) if demo.linux.did(demo.work) => "Linux did its work".to_owned(),
        (End::Reached, _) => "a guest stopped".to_owned(),
        (End::PoweredOff, _) => "the machine switched itself off".to_owned(),
        (End::TimeOver, _) => "the time was over".to_owned(),
        (End::Interrupted, _) => "of Ctrl-C".to_owned(),
    }
}

fn check_linux(outcome: &mut Outcome, demo: &Demo) {
    let runs = match demo.work {
        LinuxWork::All => 1,
        LinuxWork::Runs(runs) => runs,
    };
    outcome.check(Check::done("Linux booted to user space", demo.linux.kernel.is_some()));
    let (done, goal) = (as_f64(demo.linux.hackbench_s.len() as u64), as_f64(runs as u64));
    outcome.check(Check::new("hackbench runs finished", done, "runs", Goal::AtLeast(goal)));
    outcome.check(Check::done("Linux did its work", demo.linux.did(demo.work)));
}

fn check_rtos(outcome: &mut Outcome, observer: &Observer) {
    let reports = observer.layout().vm(RTOS).and_then(|vm| observer.reports(vm));
    let header = reports.and_then(Reports::header);
    let activations = header.map(|header| as_f64(header.written));
    let unit = "activations";
    let enough = Goal::AtLeast(FEWEST_ACTIVATIONS);
    outcome.check(Check::new("RTOS activations", activations, unit, enough));
    let missed = header.map(|header| as_f64(header.missed));
    outcome.check(Check::new(MISSED, missed, unit, Goal::Exactly(0.0)));
    // The counter says how many should have been: the RTOS's own count alone
    // would not show a tick that never came.
    let due = reports.and_then(Reports::due).map(as_f64);
    let ratio = activations.zip(due).map(|(activations, due)| activations / due);
    let all = Goal::Between(0.999, 1.001);
    outcome.check(Check::new("RTOS activations against elapsed counter time", ratio, "", all));
    let silence = reports.zip(observer.latest()).and_then(|(r, now)| silence(r, now));
    let silence = silence.map(|time| time.as_secs_f64() * 1e3);
    let goal = Goal::AtMost(LONGEST_SILENCE_MS);
    outcome.check(Check::new("since the last activation at the end", silence, "ms", goal));
    let lost = reports.filter(|_| header.is_some()).map(|reports| as_f64(reports.lost()));
    outcome.check(Check::new("samples lost on the way to us", lost, "samples", Goal::Exactly(0.0)));
}

/// In the host's time these would be demands on the host.
fn check_latencies(outcome: &mut Outcome, observer: &Observer) {
    let reports = observer.layout().vm(RTOS).and_then(|vm| observer.reports(vm));
    let max = |values: fn(&Reports) -> &Distribution| {
        let (ticks, hz) = reports.and_then(|r| Some((values(r).max()?, r.header()?.counter_hz)))?;
        Some(crate::observe::time(ticks.into(), hz).as_secs_f64() * 1e6)
    };
    for (name, value, goal) in [
        ("interrupt response time of the RTOS, max", max(Reports::response), LATEST_RESPONSE_US),
        ("dispatch latency of the RTOS, max", max(Reports::dispatch), LATEST_DISPATCH_US),
    ] {
        outcome.check(Check::new(name, value, "us", Goal::AtMost(goal)));
    }
}

/// How long ago the last activation was due.
fn silence(reports: &Reports, now: &Snapshot) -> Option<Duration> {
    Some(now.time(now.since(reports.last_raised()?)))
}

fn check_vms(outcome: &mut Outcome, observer: &Observer) {
    let layout = observer.layout();
    for name in [LINUX, RTOS] {
        let vm = layout.vm(name).zip(observer.latest()).map(|(vm, now)| now.vms[vm]);
        let starts = vm.map(|vm| as_f64(vm.starts));
        outcome.check(Check::new(&format!("starts of {name}"), starts, "", Goal::Exactly(1.0)));
    }
}

/// The summary for a terminal.
#[must_use]
pub fn summary(demo: &Demo, outcome: &Outcome) -> String {
    let mut text = String::new();
    for table in std::iter::once(facts(demo)).chain(demo.tables()) {
        text += &format!("{table}\n");
    }
    let checks = figures::checks(outcome);
    let about_time = if demo.is_virtual() {
        Some(format!("\n{ABOUT_VIRTUAL_TIME}\n"))
    } else {
        excuse(demo, outcome)
    };
    text + &checks.to_string() + &about_time.unwrap_or_default()
}

fn facts(demo: &Demo) -> Table {
    let reports = demo.observer.layout().vm(RTOS).and_then(|vm| demo.observer.reports(vm));
    let header = reports.and_then(Reports::header);
    let mut table = Table::new("What they did", ["", ""]);
    if let Some(header) = header {
        table.row(["RTOS activations".into(), count(header.written)]);
        table.row([MISSED.into(), count(header.missed)]);
    }
    for (run, seconds) in demo.linux.hackbench_s.iter().enumerate() {
        table.row([format!("hackbench run {}", run + 1), format!("{} s", number(*seconds))]);
    }
    if let Some(counts) = &demo.instrument {
        let (virtual_time, real) = (counts.virtual_ns, counts.real_ns);
        let [virtual_time, real] =
            [virtual_time, real].map(|ns| duration(Duration::from_nanos(ns)));
        table.row(["virtual time that passed".into(), virtual_time]);
        table.row(["real time it took".into(), real]);
    } else if let Some(wait) = demo.observer.host_wait() {
        table.row(["QEMU waited for the host's cores".into(), duration(wait)]);
    }
    table.row(["it ended because".into(), ended(demo)]);
    table
}

/// A word on a busy host, when it may be why the RTOS was late.
fn excuse(demo: &Demo, outcome: &Outcome) -> Option<String> {
    let late = outcome.checks().iter().any(|check| check.name == MISSED && !check.holds());
    let wait = demo.observer.host_wait().filter(|wait| late && *wait > demo.elapsed / 100)?;
    Some(format!(
        "\nThis machine runs in the host's time, and QEMU's threads waited for the host's cores\n\
         {} in all, in a run of {}: part of the lateness is the host's. On an idle computer\n\
         the figures are Cassata's own; --report-only shows them without judging.\n",
        duration(wait),
        duration(demo.elapsed)
    ))
}

/// The page.
#[must_use]
pub fn report(demo: &Demo) -> Report {
    let lead = "A general-purpose and a real-time operating system, both unmodified, share \
                cores under Cassata. Linux runs hackbench as fast as it may; FreeRTOS wakes a \
                task every period, and every time notes how late it was.";
    let lead = if demo.is_virtual() { format!("{lead} {ABOUT_VIRTUAL_TIME}") } else { lead.into() };
    let mut report = Report::new("Two systems, shared cores", &lead);
    let rtos = demo.observer.layout().vm(RTOS).and_then(|vm| demo.observer.reports(vm));
    if let Some((reports, header)) = rtos.and_then(|r| Some((r, r.header()?))) {
        report.tile(count(header.written), "RTOS activations");
        report.tile(count(header.missed), "of them missed");
        let p99 = reports.dispatch().percentile(990);
        let p99 = p99.map(|ticks| duration(crate::observe::time(ticks.into(), header.counter_hz)));
        report.tile(p99.unwrap_or_else(|| "-".into()), "dispatch latency, 99th percentile");
        let max = reports.dispatch().max();
        let max = max.map(|ticks| duration(crate::observe::time(ticks.into(), header.counter_hz)));
        report.tile(max.unwrap_or_else(|| "-".into()), "dispatch latency, the longest of all");
    }
    let runs = &demo.linux.hackbench_s;
    if !runs.is_empty() {
        let mean = runs.iter().sum::<f64>() / as_f64(runs.len() as u64);
        report.tile(format!("{} s", number(mean)), "hackbench, mean of its runs");
    }
    figures::illustrate(&mut report, &demo.observer);
    report.table(&facts(demo));
    demo.instrument.iter().for_each(|counts| report.table(&figures::instructions(counts)));
    report
}

/// For newcomers: what the figures are.
const ABOUT_VIRTUAL_TIME: &str = "Time is virtual here: every instruction takes one nanosecond on \
     every core, so these figures are the board's, whatever your computer did meanwhile.";

impl Demo {
    /// Whether time was virtual.
    fn is_virtual(&self) -> bool {
        self.instrument.is_some()
    }

    fn tables(&self) -> Vec<Table> {
        let more = self.instrument.as_ref().map(figures::instructions);
        figures::tables(&self.observer).into_iter().chain(more).collect()
    }
}

#[allow(clippy::cast_precision_loss)] // counts of a run
fn as_f64(count: u64) -> f64 {
    count as f64
}
