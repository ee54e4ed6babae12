//! Any system, for as long as one likes.

use crate::bundle::Bundle;
use crate::figures;
use crate::interrupt::Interrupt;
use crate::machine::{Machine, Time};
use crate::observe::Observer;
use crate::qemu::Qemu;
use crate::report::Report;
use crate::results::{Check, Goal, Outcome};
use crate::session::{End, Limit, Session, SessionError};
use crate::view::View;
use abi::status::vm_state;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use vtime::stats::Statistics;

/// What was seen of a run.
#[derive(Debug)]
pub struct Run {
    /// Of the whole system.
    pub observer: Observer,
    /// Why it ended.
    pub end: End,
    /// How long the machine ran, in our own time.
    pub elapsed: Duration,
    /// What the instrument of virtual time counted, if it was there.
    pub instrument: Option<Statistics>,
}

/// How to run a system.
#[derive(Clone, Debug)]
pub struct Options {
    /// How its time passes.
    pub time: Time,
    /// At most so much of its own time.
    pub limit: Option<Duration>,
    /// Where the console logs go.
    pub directory: PathBuf,
}

/// Runs `bundle` on `qemu` until it switches itself off, the time is over, or
/// Ctrl-C.
///
/// # Errors
/// When the machine fails. Guests that fail are no error but a finding.
pub fn run(
    bundle: &Bundle,
    qemu: &Qemu,
    options: &Options,
    view: &mut dyn View,
    interrupt: Interrupt,
) -> Result<Run, SessionError> {
    let mut observer = Observer::new(bundle.layout(), options.time.pace());
    let consoles = bundle.consoles(Some(options.directory.clone()));
    let start = Instant::now();
    let mut machine = Machine::start(qemu, &bundle.machine_in(&options.time), &consoles)?;
    let limit = options.limit.map(Limit::Machine);
    let seen = &mut observer;
    let mut session = Session { machine: &mut machine, observer: seen, view, interrupt, limit };
    let end = session.run(|_, _| false)?;
    let (elapsed, instrument) = (start.elapsed(), machine.statistics());
    Ok(Run { observer, end, elapsed, instrument })
}

impl Run {
    /// Figures and checks of a run called `name`.
    #[must_use]
    pub fn outcome(&self, name: &str) -> Outcome {
        let mut outcome = Outcome::new(name);
        outcome.figures = figures::figures(&self.observer);
        outcome.figure("real_time_s", self.elapsed.as_secs_f64());
        if let Some(counts) = &self.instrument {
            outcome.figure("virtual_time", figures::virtual_time(counts));
        }
        outcome.figure("ended", self.ended());
        outcome.check(Check::done("the hypervisor came up", self.observer.latest().is_some()));
        let failed = self.observer.latest().map(|now| {
            let failed = now.vms.iter().filter(|vm| vm.state == vm_state::FAILED).count();
            f64::from(u32::try_from(failed).unwrap_or(u32::MAX))
        });
        outcome.check(Check::new("VMs that failed", failed, "VMs", Goal::Exactly(0.0)));
        outcome
    }

    /// The page of a run called `name`.
    #[must_use]
    pub fn report(&self, name: &str) -> Report {
        let lead = "What every VM did, seen through the machine's memory while it ran.";
        let mut report = Report::new(name, lead);
        figures::illustrate(&mut report, &self.observer);
        self.instrument.iter().for_each(|counts| report.table(&figures::instructions(counts)));
        report
    }

    /// The summary for a terminal.
    #[must_use]
    pub fn summary(&self) -> String {
        let tables = figures::tables(&self.observer);
        let more = self.instrument.as_ref().map(figures::instructions);
        tables.iter().chain(&more).map(|table| format!("{table}\n")).collect::<String>()
            + self.ended()
    }

    fn ended(&self) -> &'static str {
        match self.end {
            End::PoweredOff => "the machine switched itself off",
            End::TimeOver => "the time was over",
            End::Reached | End::Interrupted => "interrupted",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{observer, report, status};
    use abi::status::Status;

    fn run(status: &Status) -> Run {
        let observer = observer(status, &report(100, 0));
        let elapsed = Duration::from_secs(2);
        Run { observer, end: End::TimeOver, elapsed, instrument: None }
    }

    #[test]
    fn a_run_fails_when_a_vm_does_or_nothing_came_up() {
        let good = run(&status());
        assert_eq!(good.outcome("x").exit_code(false), 0);
        assert!(good.summary().ends_with("the time was over"));
        assert!(good.report("x").render(&good.outcome("x")).contains("linux.1"));
        let mut bad = status();
        bad.vms[0].state = vm_state::FAILED;
        assert_eq!(run(&bad).outcome("x").exit_code(false), 1);
        bad.magic = 0;
        assert_eq!(run(&bad).outcome("x").exit_code(false), 1);
    }
}
