//! A machine: a QEMU process that cannot outlive us, its memory, its consoles.

pub mod child;
pub mod config;
mod control;
mod host;
pub mod memory;
mod plugged;
mod time;
mod wires;

use crate::console::{ConsoleConfig, Consoles};
use crate::qemu::Qemu;
use crate::quantity::ns;
use child::Child;
pub use config::MachineConfig;
use control::{Control, Waited};
pub use host::HostUse;
pub use memory::Memory;
use miette::{Report, Result, miette};
pub use plugged::{AT_ONCE, MODERN, plugged};
use rustix::process::Signal;
use std::io::{self, Read};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
pub use time::{Time, VirtualTime};
use vtime::hold::{Held, Order};
use vtime::stats::Statistics;
use wires::Wires;

/// How much of QEMU's standard error is kept, bytes.
const ERRORS_KEPT: u64 = 64 * 1024;

/// How long it may go unnoticed that QEMU could not start.
const LOOK: Duration = Duration::from_millis(50);

/// Begins a report of the instrument's watchdog on standard error.
const STANDSTILL: &str = "virtual time: no progress";

/// How long QEMU may take to end in good order.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A machine that runs, or ran.
pub struct Machine {
    // Dropped in this order: the process ends, then its pipes run dry.
    child: Child,
    /// The consoles.
    pub consoles: Consoles,
    errors: Option<JoinHandle<String>>,
    /// What that has read, once QEMU has ended.
    complaint: String,
    /// The memory, readable while it runs and after.
    pub memory: Memory,
    /// How its time passes.
    pub time: Time,
    /// In virtual time only.
    control: Option<Control>,
    /// What QEMU connects before it starts, kept until it has read that.
    _wires: Option<Wires>,
}

impl Machine {
    /// Starts `config` on `qemu`, its UART carried to `consoles`. A machine in
    /// virtual time is held before its first instruction
    /// ([`Machine::held_within`]).
    ///
    /// # Errors
    /// When a file, a thread or the process cannot be made. That QEMU rejects
    /// its arguments shows in [`Machine::ended_within`].
    pub fn start(qemu: &Qemu, config: &MachineConfig, consoles: &ConsoleConfig) -> Result<Self> {
        let memory = Memory::create(config.board.ram_pa, config.ram_size())
            .map_err(|cause| io_error("create the machine's memory", cause))?;
        if let Time::Virtual(time) = &config.time {
            time.forget().map_err(|cause| io_error("remove old statistics", cause))?;
        }
        let control = match &config.time {
            Time::Real => None,
            Time::Virtual(_) => {
                Some(Control::create().map_err(|cause| io_error("make pipes", cause))?)
            }
        };
        let pipes = control.as_ref().and_then(Control::pipes);
        let wires = Wires::create(&config.board.qemu.wires)
            .map_err(|cause| io_error("write what QEMU has to connect", cause))?;
        let orders = wires.as_ref().map(Wires::path);
        let program = qemu.program.as_os_str();
        let args = config.args(&memory.path(), pipes, orders.as_deref());
        let child = Child::start(program, &args, &config.time.env())
            .map_err(|cause| io_error("start QEMU", cause))?;
        let (Some(input), Some(output), Some(errors)) =
            (child.take_stdin(), child.take_stdout(), child.take_stderr())
        else {
            return Err(io_error("reach QEMU's pipes", io::ErrorKind::BrokenPipe.into()));
        };
        let consoles = Consoles::start(output, Box::new(input), consoles)
            .map_err(|cause| io_error("open the console logs", cause))?;
        let errors = thread::spawn(move || {
            let mut text = Vec::new();
            // What could be read until the pipe broke is what there is to tell.
            drop(errors.take(ERRORS_KEPT).read_to_end(&mut text));
            String::from_utf8_lossy(&text).into_owned()
        });
        let time = config.time.clone();
        let (errors, complaint) = (Some(errors), String::new());
        Ok(Self { child, consoles, errors, complaint, memory, time, control, _wires: wires })
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

    /// Returns what its threads had of the host's processors so far. While they wait, a machine
    /// in real time has a clock that goes on: that is the share of every latency that is the
    /// host's. `None` where the host's kernel does not count it, and when the machine has ended.
    #[must_use]
    pub fn host_use(&self) -> Option<HostUse> {
        host::used(self.child.id())
    }

    /// Returns true if the machine has switched itself off, for which it waits at most `limit`.
    /// All consoles are complete then.
    ///
    /// # Errors
    /// When QEMU failed rather than the machine ended, or a signal of another process ended it.
    pub fn ended_within(&mut self, limit: Duration) -> Result<bool> {
        let status =
            self.child.wait_timeout(limit).map_err(|cause| io_error("wait for QEMU", cause))?;
        let Some(status) = status else { return Ok(false) };
        self.consoles.finish();
        let errors = self.complaint();
        match killed_by(errors) {
            Some(signal) if status.success() => Err(miette!(
                help =
                    "the machine did not switch itself off: another process sent QEMU this signal",
                "QEMU was ended by {}",
                name_of(signal)
            )),
            None if status.success() => Ok(true),
            _ if errors.contains(DISK_IN_USE) => Err(miette!(
                help = "another run has a disk of this system: wait until that one has ended, or give the \
                        disk a copy of the file",
                "QEMU ended with {status}{}",
                quote(errors)
            )),
            _ => Err(miette!("QEMU ended with {status}{}", quote(errors))),
        }
    }

    /// Waits until a machine in virtual time is held, at most `limit`: before
    /// its first instruction, then where [`Machine::run_to`] says. While it is
    /// held nothing in it moves: memory, counters and consoles are those of
    /// that virtual time, and complete. `None` when it still runs, or has
    /// ended; and in real time, at once.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn held_within(&mut self, limit: Duration) -> Result<Option<Held>> {
        let Some(control) = &mut self.control else { return Ok(None) };
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let waited = control.wait(left.min(LOOK));
            match waited.map_err(|cause| io_error("wait for QEMU", cause))? {
                Waited::Held(held) => {
                    self.consoles.catch_up();
                    return Ok(Some(held));
                }
                Waited::Runs if left > LOOK => {}
                Waited::Runs | Waited::Ended => return Ok(None),
            }
            // One that could not start has not even opened the pipes.
            let status = self.child.try_wait().map_err(|cause| io_error("wait for QEMU", cause))?;
            if status.is_some() {
                return Ok(None);
            }
        }
    }

    /// Lets a machine that is held run on until its virtual time is `until` or it comes to
    /// rest, when it is held again.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn run_to(&mut self, until: Duration) -> Result<()> {
        self.order(Order::RunTo(ns(until)))
    }

    /// Returns what each core of a machine in virtual time that has been killed was doing: the
    /// last report of the instrument's watchdog, or else what it counted.
    pub(crate) fn doings(&mut self) -> String {
        let watched = self.complaint().rfind(STANDSTILL).map(|at| self.complaint[at..].to_owned());
        let counted = || self.statistics().map(|counts| counts.summary());
        watched.or_else(counted).unwrap_or_default().trim_end().to_owned()
    }

    fn order(&mut self, order: Order) -> Result<()> {
        let ordered = self.control.as_mut().map_or(Ok(()), |control| control.order(order));
        ordered.map_err(|cause| io_error("order QEMU to go on", cause))
    }

    /// Ends the machine in good order, so that what its instrument counts is
    /// complete: what stands there if it is held, else what the machine has
    /// come to when QEMU gets to it. One that will not end is killed. Memory and
    /// consoles stay readable.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn stop(&mut self) -> Result<()> {
        if let Some(control) = &self.control {
            let is_held = control.held().is_some();
            // One that still runs may come to be held before it sees the signal.
            self.order(Order::End)?;
            if !is_held {
                self.child.terminate().map_err(|cause| io_error("end QEMU", cause))?;
            }
            self.child
                .wait_timeout(LAST_WORDS)
                .map_err(|cause| io_error("wait for QEMU", cause))?;
        }
        self.kill()
    }

    /// Ends the machine at once. Memory and consoles stay readable.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn kill(&mut self) -> Result<()> {
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

/// What QEMU says, among other things, of a disk whose file another process has.
const DISK_IN_USE: &str = "Is another process using the image";

/// Those that QEMU ends in good order for.
fn name_of(signal: i32) -> String {
    let known = [Signal::HUP, Signal::INT, Signal::TERM].map(Signal::as_raw);
    let name =
        known.iter().position(|&raw| raw == signal).map(|i| ["SIGHUP", "SIGINT", "SIGTERM"][i]);
    name.map_or_else(|| format!("signal {signal}"), |name| format!("signal {signal} ({name})"))
}

fn io_error(doing: &str, cause: io::Error) -> Report {
    miette!("cannot {doing}: {cause}")
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
