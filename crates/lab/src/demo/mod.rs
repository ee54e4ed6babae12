//! The demonstration: Linux and FreeRTOS share cores, and neither notices.
//!
//! Boots a system, waits until Linux has done its work, and tells what both
//! guests did. The guests' names are those of `systems/demo.toml`.

mod linux;
mod shortened;
mod verdict;

pub use linux::{LinuxProgress, LinuxWork};
pub use shortened::scenario;
pub use verdict::{MISSED, outcome, report, summary};

use crate::bundle::{Bundle, channel};
use crate::interrupt::Interrupt;
use crate::machine::{Machine, Time};
use crate::observe::Observer;
use crate::qemu::Qemu;
use crate::session::{End, Limit, Session, SessionError};
use crate::view::View;
use miette::Diagnostic;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use thiserror::Error;
use vtime::stats::Statistics;

/// Name of the VM that runs Linux.
pub const LINUX: &str = "linux";
/// Name of the VM that runs FreeRTOS.
pub const RTOS: &str = "rtos";

/// How to demonstrate.
#[derive(Clone, Debug)]
pub struct Options {
    /// How time passes.
    pub time: Time,
    /// At most this long, from the machine's start, in our own time.
    pub limit: Duration,
    /// What is enough of Linux.
    pub work: LinuxWork,
    /// Where the console logs go.
    pub directory: PathBuf,
}

/// What was seen.
#[derive(Debug)]
pub struct Demo {
    /// Of the whole system.
    pub observer: Observer,
    /// Of Linux.
    pub linux: LinuxProgress,
    /// What was demanded of Linux.
    pub work: LinuxWork,
    /// Why it ended.
    pub end: End,
    /// How long the machine ran, in our own time.
    pub elapsed: Duration,
    /// What the instrument of virtual time counted, if it was there.
    pub instrument: Option<Statistics>,
}

/// The demonstration could not be given.
#[derive(Debug, Error, Diagnostic)]
pub enum DemoError {
    /// The system has other VMs.
    #[error("the system has no VM called `{0}`")]
    #[diagnostic(help(
        "`cassata demo` needs VMs called `{LINUX}` and `{RTOS}`; `cassata run` takes any"
    ))]
    NoVm(&'static str),
    /// The RTOS cannot report.
    #[error("VM `{RTOS}` has no report area")]
    #[diagnostic(help("give it one: report = \"64K\""))]
    NoReport,
    /// The machine failed.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Session(#[from] SessionError),
}

/// Gives the demonstration of `bundle` on `qemu`.
///
/// # Errors
/// When it is no system to demonstrate, or the machine fails. Guests that fail
/// are no error here but a finding ([`outcome`]).
pub fn run(
    bundle: &Bundle,
    qemu: &Qemu,
    options: &Options,
    view: &mut dyn View,
    interrupt: Interrupt,
) -> Result<Demo, DemoError> {
    let mut observer = Observer::new(bundle.layout(), options.time.pace());
    let linux_vm = observer.layout().vm(LINUX).ok_or(DemoError::NoVm(LINUX))?;
    let rtos_vm = observer.layout().vm(RTOS).ok_or(DemoError::NoVm(RTOS))?;
    observer.reports(rtos_vm).ok_or(DemoError::NoReport)?;
    let consoles = bundle.consoles(Some(options.directory.clone()));
    let start = Instant::now();
    let mut machine = Machine::start(qemu, &bundle.machine_in(&options.time), &consoles)
        .map_err(SessionError::from)?;
    let mut linux = LinuxProgress::default();
    let mut session = Session {
        machine: &mut machine,
        observer: &mut observer,
        view,
        interrupt,
        limit: Some(Limit::Real(options.limit)),
    };
    let end = session.run(|lines, observer| {
        let said = lines.iter().filter(|line| line.channel == channel(linux_vm));
        said.for_each(|line| linux.hear(&line.text));
        let dead = |vm: usize| observer.latest().is_some_and(|now| now.vms[vm].is_over());
        linux.is_over(options.work) || dead(linux_vm) || dead(rtos_vm)
    })?;
    let (elapsed, instrument) = (start.elapsed(), machine.statistics());
    Ok(Demo { observer, linux, work: options.work, end, elapsed, instrument })
}

#[cfg(test)]
mod tests;
