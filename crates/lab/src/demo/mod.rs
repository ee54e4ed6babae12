//! The demonstration: Linux and FreeRTOS share cores, and neither notices.
//!
//! Boots a system, waits until Linux has done its work, and says what both
//! guests did. The guests' names are those of `systems/demo.toml`.

mod smoke;
mod verdict;

pub use smoke::scenario;

use crate::guests::{LinuxProgress, LinuxWork};
use crate::session::{Run, Session, SessionError};
use miette::Diagnostic;
use thiserror::Error;

/// Name of the VM that runs Linux.
pub const LINUX: &str = "linux";
/// Name of the VM that runs FreeRTOS.
pub const RTOS: &str = "rtos";

/// What was seen.
#[derive(Debug)]
pub struct Demo {
    /// Of the whole system.
    pub run: Run,
    /// What was demanded of Linux.
    pub work: LinuxWork,
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

/// Gives the demonstration in `session`, until Linux has done `work`.
///
/// # Errors
/// When it is no system to demonstrate, or the machine fails. Guests that fail
/// are no error here but a finding ([`Demo::answer`]).
pub fn run(session: Session<'_>, work: LinuxWork) -> Result<Demo, DemoError> {
    let layout = session.layout();
    let linux = layout.vm(LINUX).ok_or(DemoError::NoVm(LINUX))?;
    let rtos = layout.vm(RTOS).ok_or(DemoError::NoVm(RTOS))?;
    layout.vms[rtos].report.ok_or(DemoError::NoReport)?;
    let run = session.run(|now| {
        let dead = |vm: usize| now.observer.latest().is_some_and(|seen| seen.vms[vm].is_over());
        now.said.guests[linux].linux.is_over(work) || dead(linux) || dead(rtos)
    })?;
    Ok(Demo { run, work })
}

impl Demo {
    /// Returns what Linux has said.
    ///
    /// # Panics
    /// When the system has no Linux: [`run`] refuses that.
    #[must_use]
    pub fn linux(&self) -> &LinuxProgress {
        let vm = self.run.observer.layout().vm(LINUX).expect("there is a Linux");
        &self.run.said.guests[vm].linux
    }
}

#[cfg(test)]
mod tests;
