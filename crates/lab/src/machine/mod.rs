//! A machine: a QEMU process that cannot outlive us, its memory, its consoles.

pub mod child;
pub mod config;
mod host;
pub mod memory;
mod time;

use crate::console::{ConsoleConfig, Consoles};
use crate::qemu::Qemu;
use child::Child;
pub use config::MachineConfig;
use config::RAM_PA;
pub use host::HostUse;
pub use memory::{Memory, MemoryError};
use miette::Diagnostic;
use rustix::process::Signal;
use std::io::{self, Read};
use std::process::ExitStatus;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use thiserror::Error;
pub use time::{Time, TimeError, VirtualTime};
use vtime::stats::Statistics;

/// How much of QEMU's standard error is kept, bytes.
const ERRORS_KEPT: u64 = 64 * 1024;

/// How long QEMU may take to end in good order.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A machine that runs, or ran.
#[derive(Debug)]
pub struct Machine {
    // Dropped in this order: the process ends, then its pipes run dry.
    child: Child,
    consoles: Consoles,
    errors: Option<JoinHandle<String>>,
    /// What that has read, once QEMU has ended.
    complaint: String,
    memory: Memory,
    time: Time,
}

/// A machine could not be started or watched.
#[derive(Debug, Error, Diagnostic)]
pub enum MachineError {
    /// The system refused something.
    #[error("cannot {doing}: {cause}")]
    Io {
        /// What we were about.
        doing: String,
        /// Why it failed.
        cause: io::Error,
    },
    /// QEMU gave up.
    #[error("QEMU ended with {status}{}", quote(errors))]
    Qemu {
        /// How.
        status: ExitStatus,
        /// Its standard error.
        errors: String,
    },
    /// Somebody ended QEMU, and it did so in good order.
    #[error("QEMU was ended by {}", name_of(*signal))]
    #[diagnostic(help("the machine did not switch itself off: somebody sent QEMU this signal"))]
    Ended {
        /// The signal's number.
        signal: i32,
    },
}

impl Machine {
    /// Starts `config` on `qemu`, its UART carried to `consoles`.
    ///
    /// # Errors
    /// When a file, a thread or the process cannot be made. That QEMU rejects
    /// its arguments shows in [`Machine::ended`].
    pub fn start(
        qemu: &Qemu,
        config: &MachineConfig,
        consoles: &ConsoleConfig,
    ) -> Result<Self, MachineError> {
        let memory = Memory::create(RAM_PA, config.memory)
            .map_err(|cause| io_error("create the machine's memory", cause))?;
        if let Time::Virtual(time) = &config.time {
            time.forget().map_err(|cause| io_error("remove old statistics", cause))?;
        }
        let program = qemu.program().as_os_str();
        let child = Child::start(program, &config.args(&memory.path()), &config.time.env())
            .map_err(|cause| io_error("start QEMU", cause))?;
        let (Some(input), Some(output), Some(errors)) =
            (child.take_stdin(), child.take_stdout(), child.take_stderr())
        else {
            return Err(io_error("reach QEMU's pipes", io::ErrorKind::BrokenPipe.into()));
        };
        let consoles = Consoles::start(Box::new(output), Box::new(input), consoles)
            .map_err(|cause| io_error("open the console logs", cause))?;
        let errors = thread::spawn(move || {
            let mut text = Vec::new();
            // What could be read until the pipe broke is what there is to tell.
            drop(errors.take(ERRORS_KEPT).read_to_end(&mut text));
            String::from_utf8_lossy(&text).into_owned()
        });
        let time = config.time.clone();
        Ok(Self { child, consoles, errors: Some(errors), complaint: String::new(), memory, time })
    }

    /// Its memory, readable while it runs and after.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Its consoles.
    #[must_use]
    pub fn consoles(&self) -> &Consoles {
        &self.consoles
    }

    /// QEMU's process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What the instrument of virtual time has counted, up to some fraction of
    /// a second ago while the machine runs, and to the end when it has
    /// switched itself off. `None` in real time, and before the first count.
    #[must_use]
    pub fn statistics(&self) -> Option<Statistics> {
        match &self.time {
            Time::Real => None,
            Time::Virtual(time) => time.statistics(),
        }
    }

    /// How its time passes.
    #[must_use]
    pub fn time(&self) -> &Time {
        &self.time
    }

    /// How long its threads have waited for a core of the host so far, summed
    /// over all of them. While they wait, the machine's clock goes on: this is
    /// the share of every latency that is not ours. `None` where the host's
    /// kernel does not count it, and when the machine has ended.
    #[must_use]
    pub fn host_wait(&self) -> Option<Duration> {
        self.host_use().map(|used| used.waited)
    }

    /// What its threads had of the host's processors so far. `None` as above.
    #[must_use]
    pub fn host_use(&self) -> Option<HostUse> {
        host::used(self.child.id())
    }

    /// Whether the machine has switched itself off. All consoles are complete
    /// then.
    ///
    /// # Errors
    /// [`MachineError::Qemu`] when QEMU failed rather than the machine ended,
    /// [`MachineError::Ended`] when somebody else's signal ended it.
    pub fn ended(&mut self) -> Result<bool, MachineError> {
        self.ended_within(Duration::ZERO)
    }

    /// As [`Machine::ended`], after waiting for it at most `limit`.
    ///
    /// # Errors
    /// As [`Machine::ended`].
    pub fn ended_within(&mut self, limit: Duration) -> Result<bool, MachineError> {
        let status = self.child.wait(limit).map_err(|cause| io_error("wait for QEMU", cause))?;
        let Some(status) = status else { return Ok(false) };
        self.consoles.finish();
        let errors = self.complaint();
        match killed_by(errors) {
            Some(signal) if status.success() => Err(MachineError::Ended { signal }),
            None if status.success() => Ok(true),
            _ => Err(MachineError::Qemu { status, errors: errors.to_owned() }),
        }
    }

    /// Ends the machine in good order, so that what its instrument counts is
    /// complete; one that will not is killed. Memory and consoles stay
    /// readable.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn stop(&mut self) -> Result<(), MachineError> {
        if matches!(self.time, Time::Virtual(_)) {
            self.child.terminate().map_err(|cause| io_error("end QEMU", cause))?;
            self.child.wait(LAST_WORDS).map_err(|cause| io_error("wait for QEMU", cause))?;
        }
        self.kill()
    }

    /// Ends the machine at once. Memory and consoles stay readable.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn kill(&mut self) -> Result<(), MachineError> {
        self.child.kill().map_err(|cause| io_error("end QEMU", cause))?;
        self.consoles.finish();
        Ok(())
    }

    /// Standard error of a QEMU that has ended.
    fn complaint(&mut self) -> &str {
        if let Some(thread) = self.errors.take() {
            self.complaint = thread.join().unwrap_or_default();
        }
        &self.complaint
    }
}

/// The signal that made QEMU end in good order: its exit status does not tell,
/// only its last words do.
fn killed_by(errors: &str) -> Option<i32> {
    let (_, rest) = errors.rsplit_once("terminating on signal ")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Those that QEMU ends in good order for.
fn name_of(signal: i32) -> String {
    let known = [Signal::HUP, Signal::INT, Signal::TERM].map(Signal::as_raw);
    let name =
        known.iter().position(|&raw| raw == signal).map(|i| ["SIGHUP", "SIGINT", "SIGTERM"][i]);
    name.map_or_else(|| format!("signal {signal}"), |name| format!("signal {signal} ({name})"))
}

fn io_error(doing: &str, cause: io::Error) -> MachineError {
    MachineError::Io { doing: doing.into(), cause }
}

fn quote(errors: &str) -> String {
    if errors.is_empty() { String::new() } else { format!(":\n{}", errors.trim_end()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_read_from_the_last_words() {
        let said = "qemu-system-aarch64: terminating on signal 15 from pid 7 (bash)\n";
        assert_eq!(killed_by(said), Some(15));
        assert_eq!(killed_by("qemu-system-aarch64: terminating on signal 2\n"), Some(2));
        assert_eq!(killed_by("warning: no signal\n"), None);
        assert_eq!(name_of(15), "signal 15 (SIGTERM)");
        assert_eq!(name_of(40), "signal 40");
    }
}
