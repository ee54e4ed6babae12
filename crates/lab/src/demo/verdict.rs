//! What the demonstration showed, and whether that is what it should show.

use super::{Demo, LINUX, RTOS};
use crate::answer::Answer;
use crate::figures;
use crate::guests::LinuxWork;
use crate::observe::Reports;
use crate::quantity::{count, duration, number, real};
use crate::results::{Check, Goal, Outcome};
use crate::session::End;
use crate::table::Table;
use abi::report::Header;
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
const MISSED: &str = "RTOS activations missed";
/// For newcomers: what the figures are.
const ABOUT_VIRTUAL_TIME: &str = "Time is virtual here: every instruction takes one nanosecond on \
     every core, so these figures are the board's, whatever your computer did meanwhile.";

impl Demo {
    /// Returns what the demonstration showed, with its checks.
    #[must_use]
    pub fn answer(&self) -> Answer {
        let mut lead = "A general-purpose and a real-time operating system, both unmodified, \
                        share cores under Cassata. Linux runs hackbench as fast as it may; \
                        FreeRTOS wakes a task every period, and every time notes how late it was."
            .to_owned();
        let is_virtual = self.run.instrument.is_some();
        if is_virtual {
            lead += &format!(" {ABOUT_VIRTUAL_TIME}");
        }
        let mut answer = Answer::new("demo", "Two systems, shared cores", &lead);
        self.add_tiles(&mut answer);
        answer.table(&self.facts());
        figures::tell(&mut answer, &self.run);
        let outcome = &mut answer.outcome;
        outcome.figure("linux_boot_s", self.linux().boot_s);
        outcome.figure("hackbench_s", self.linux().hackbench_s.clone());
        outcome.figure("ended", self.ended());
        if let Some(kernel) = &self.linux().kernel {
            outcome.parameter("linux_kernel", kernel.as_str());
        }
        self.check_linux(outcome);
        self.check_rtos(outcome);
        if is_virtual {
            self.check_latencies(outcome);
        }
        self.check_vms(outcome);
        figures::check_bugs(outcome, &self.run.observer);
        let excuse = || self.excuse(&answer.outcome);
        let remark = if is_virtual { Some(ABOUT_VIRTUAL_TIME.into()) } else { excuse() };
        remark.iter().for_each(|remark| answer.remark(remark));
        let quoted = format!("```text\n{}\n```", answer.summary().trim());
        answer.document("demo", quoted);
        answer
    }

    /// Returns what the RTOS has reported, if it began to.
    fn rtos(&self) -> Option<(&Reports, Header)> {
        let reports = self.run.observer.reports(self.run.observer.layout.vm(RTOS)?)?;
        Some((reports, reports.header?))
    }

    /// Returns why it ended, in words.
    fn ended(&self) -> String {
        match (self.run.end, &self.linux().failed) {
            (_, Some(reason)) => format!("Linux gave up: {reason}"),
            (End::Reached, _) if self.linux().did(self.work) => "Linux did its work".to_owned(),
            (End::Reached, _) => "a guest stopped".to_owned(),
            (end, _) => end.about().to_owned(),
        }
    }

    fn check_linux(&self, outcome: &mut Outcome) {
        let runs = match self.work {
            LinuxWork::All => 1,
            LinuxWork::Runs(runs) => runs,
        };
        outcome.check(Check::done("Linux booted to user space", self.linux().kernel.is_some()));
        let (done, goal) = (real(self.linux().hackbench_s.len() as u64), real(runs as u64));
        outcome.check(Check::new("hackbench runs finished", done, "runs", Goal::AtLeast(goal)));
        outcome.check(Check::done("Linux did its work", self.linux().did(self.work)));
    }

    fn check_rtos(&self, outcome: &mut Outcome) {
        let (rtos, now) = (self.rtos(), self.run.observer.latest());
        let activations = rtos.map(|(_, header)| real(header.written));
        // The counter says how many should have been: the RTOS's own count alone
        // would not show a tick that never came.
        let due = rtos.and_then(|(reports, _)| reports.due()).map(real);
        let last = rtos.and_then(|(reports, _)| reports.last_raised());
        let silence = now.zip(last).map(|(now, last)| now.time(now.since(last)));
        for (name, value, unit, goal) in [
            ("RTOS activations", activations, "activations", Goal::AtLeast(FEWEST_ACTIVATIONS)),
            (MISSED, rtos.map(|(_, h)| real(h.missed)), "activations", Goal::Exactly(0.0)),
            (
                "RTOS activations against elapsed counter time",
                activations.zip(due).map(|(activations, due)| activations / due),
                "",
                Goal::Between(0.999, 1.001),
            ),
            (
                "since the last activation at the end",
                silence.map(|time| time.as_secs_f64() * 1e3),
                "ms",
                Goal::AtMost(LONGEST_SILENCE_MS),
            ),
            (
                "samples lost on the way to us",
                rtos.map(|(reports, _)| real(reports.lost())),
                "samples",
                Goal::Exactly(0.0),
            ),
        ] {
            outcome.check(Check::new(name, value, unit, goal));
        }
    }

    /// Checks what in the host's time would be a demand on the host.
    fn check_latencies(&self, outcome: &mut Outcome) {
        for (what, longest, goal) in [
            ("interrupt response time", self.latency(|r| r.response.max()), LATEST_RESPONSE_US),
            ("dispatch latency", self.latency(|r| r.dispatch.max()), LATEST_DISPATCH_US),
        ] {
            let name = format!("{what} of the RTOS, max");
            let value = longest.map(|time| time.as_secs_f64() * 1e6);
            outcome.check(Check::new(&name, value, "us", Goal::AtMost(goal)));
        }
    }

    /// Returns a latency of the RTOS of so many ticks of its counter.
    fn latency(&self, ticks: impl Fn(&Reports) -> Option<u32>) -> Option<Duration> {
        let (reports, header) = self.rtos()?;
        Some(crate::observe::time(ticks(reports)?.into(), header.counter_hz))
    }

    fn check_vms(&self, outcome: &mut Outcome) {
        for name in [LINUX, RTOS] {
            let vm = self.run.observer.layout.vm(name).zip(self.run.observer.latest());
            let starts = vm.map(|(vm, now)| real(now.vms[vm].starts));
            outcome.check(Check::new(&format!("starts of {name}"), starts, "", Goal::Exactly(1.0)));
        }
    }

    fn facts(&self) -> Table {
        let mut table = Table::new("What they did", ["", ""]);
        if let Some((_, header)) = self.rtos() {
            table.row(["RTOS activations".into(), count(header.written)]);
            table.row([MISSED.into(), count(header.missed)]);
        }
        for (run, seconds) in self.linux().hackbench_s.iter().enumerate() {
            table.row([format!("hackbench run {}", run + 1), format!("{} s", number(*seconds))]);
        }
        if let Some(counts) = &self.run.instrument {
            let time = |ns| duration(Duration::from_nanos(ns));
            table.row(["virtual time that passed".into(), time(counts.virtual_ns)]);
            table.row(["real time it took".into(), time(counts.real_ns)]);
        } else if let Some(host) = self.run.host {
            table.row(["QEMU waited for the host's cores".into(), duration(host.waited)]);
        }
        table.row(["it ended because".into(), self.ended()]);
        table
    }

    /// Returns a word on a busy host, when it may be why the RTOS was late.
    fn excuse(&self, outcome: &Outcome) -> Option<String> {
        let late = outcome.checks().iter().any(|check| check.name == MISSED && !check.holds());
        let wait = self.run.host?.waited;
        if !late || wait <= self.run.elapsed / 100 {
            return None;
        }
        Some(format!(
            "This machine runs in the host's time, and QEMU's threads waited for the host's \
             cores\n{} in all, in a run of {}: part of the lateness is the host's. On an idle \
             computer\nthe figures are Cassata's own; --report-only shows them without judging.",
            duration(wait),
            duration(self.run.elapsed)
        ))
    }

    fn add_tiles(&self, answer: &mut Answer) {
        if let Some((_, header)) = self.rtos() {
            answer.tile(count(header.written), "RTOS activations");
            answer.tile(count(header.missed), "of them missed");
            let text = |time: Option<_>| time.map_or_else(|| "-".into(), duration);
            let p99 = self.latency(|reports| reports.dispatch.told_percentile(990));
            answer.tile(text(p99), "dispatch latency, 99th percentile");
            let longest = self.latency(|reports| reports.dispatch.max());
            answer.tile(text(longest), "dispatch latency, the longest of all");
        }
        let runs = &self.linux().hackbench_s;
        if !runs.is_empty() {
            let mean = runs.iter().sum::<f64>() / real(runs.len() as u64);
            answer.tile(format!("{} s", number(mean)), "hackbench, mean of its runs");
        }
    }
}
