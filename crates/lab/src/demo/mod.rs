//! The demonstration: Linux and FreeRTOS share cores, and neither notices.
//!
//! Boots a system, waits until Linux has done its work, and says what both
//! guests did. The guests' names are those of `systems/demo.toml`.

pub mod control;
mod smoke;
mod verdict;

pub use smoke::scenarios;

use crate::guests::{LinuxProgress, LinuxWork};
use crate::observe::Layout;
use crate::session::{Run, Session};
use miette::{Result, miette};

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

/// Gives the demonstration in `session`, until Linux has done `work`.
///
/// # Errors
/// When it is no system to demonstrate, or the machine fails. Guests that fail
/// are no error here but a finding ([`Demo::answer`]).
pub fn run(session: Session<'_>, work: LinuxWork) -> Result<Demo> {
    let layout = &session.layout;
    let (linux, rtos) = (vm(layout, LINUX)?, vm(layout, RTOS)?);
    layout.vms[rtos].report.ok_or_else(|| {
        miette!(help = "give it one: report = \"64K\"", "VM `{RTOS}` has no report area")
    })?;
    let run = session.run(|now| {
        let is_over = |vm| now.observer.is_over(vm);
        now.said.guests[linux].linux.is_over(work) || is_over(linux) || is_over(rtos)
    })?;
    Ok(Demo { run, work })
}

fn vm(layout: &Layout, name: &str) -> Result<usize> {
    let help =
        format!("`cassata demo` needs VMs called `{LINUX}` and `{RTOS}`; `cassata run` takes any");
    layout.vm(name).ok_or_else(|| miette!(help = help, "the system has no VM called `{name}`"))
}

impl Demo {
    /// Returns what Linux has said.
    ///
    /// # Panics
    /// When the system has no Linux: [`run`] refuses that.
    #[must_use]
    pub fn linux(&self) -> &LinuxProgress {
        let vm = self.run.observer.layout.vm(LINUX).expect("there is a Linux");
        &self.run.said.guests[vm].linux
    }
}

#[cfg(test)]
mod tests;
