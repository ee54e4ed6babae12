//! A machine, its observer and a view, from the start to some end.

use crate::console::{Cursor, Line};
use crate::interrupt::Interrupt;
use crate::machine::{Machine, MachineError, MemoryError, Time};
use crate::observe::Observer;
use crate::view::{Scene, Tail, View};
use miette::Diagnostic;
use std::time::{Duration, Instant};
use thiserror::Error;

/// How often memory is looked at: a report ring of 64 KiB fed at 1 kHz goes
/// round in four seconds.
const LOOK: Duration = Duration::from_millis(50);

/// How long to run, and who watches.
pub struct Session<'a> {
    /// The machine.
    pub machine: &'a mut Machine,
    /// Gathers what is seen.
    pub observer: &'a mut Observer,
    /// Shows it meanwhile.
    pub view: &'a mut dyn View,
    /// Ctrl-C.
    pub interrupt: Interrupt,
    /// At most this long.
    pub limit: Option<Limit>,
}

/// How long a session may last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So much of our own time.
    Real(Duration),
    /// So much of the machine's own time, which is ours unless it runs in
    /// virtual time.
    Machine(Duration),
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The machine switched itself off.
    PoweredOff,
    /// What was waited for has come.
    Reached,
    /// The limit was reached first.
    TimeOver,
    /// Somebody pressed Ctrl-C.
    Interrupted,
}

/// A session could not go on.
#[derive(Debug, Error, Diagnostic)]
pub enum SessionError {
    /// QEMU failed.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Machine(#[from] MachineError),
    /// The machine's memory cannot be read.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

impl Limit {
    fn is_over(self, real: Duration, machine: Duration) -> bool {
        match self {
            Self::Real(limit) => real >= limit,
            Self::Machine(limit) => machine >= limit,
        }
    }
}

impl Session<'_> {
    /// Watches until the machine is off, the time is over, Ctrl-C comes, or
    /// `until`, which is shown every new line, says that it has seen enough.
    /// The machine is gone afterwards, its memory and the observer are not;
    /// the last lines have been shown to `until` in any case.
    ///
    /// # Errors
    /// When QEMU fails or its memory cannot be read.
    pub fn run(
        &mut self,
        mut until: impl FnMut(&[Line], &Observer) -> bool,
    ) -> Result<End, SessionError> {
        let mut cursor = Cursor::default();
        let end = self.watch(&mut cursor, &mut until);
        self.view.finish();
        self.machine.stop()?;
        let end = end?;
        // Gone and complete now: the last look and the last words.
        self.observer.poll(self.machine.memory())?;
        let last = self.machine.consoles().follow(&mut cursor, Duration::ZERO);
        until(&last, self.observer);
        Ok(end)
    }

    fn watch(
        &mut self,
        cursor: &mut Cursor,
        until: &mut impl FnMut(&[Line], &Observer) -> bool,
    ) -> Result<End, SessionError> {
        let start = Instant::now();
        let mut tail = Tail::default();
        let mut next_look = start;
        let mut virtual_time = None;
        loop {
            let left = next_look.saturating_duration_since(Instant::now());
            let lines = self.machine.consoles().follow(cursor, left);
            tail.extend(&lines);
            if Instant::now() >= next_look {
                next_look = Instant::now() + LOOK;
                self.observer.poll(self.machine.memory())?;
                self.observer.note_host_wait(self.machine.host_wait());
                let statistics = self.machine.statistics();
                let now = statistics.map(|counts| Duration::from_nanos(counts.virtual_ns));
                virtual_time = now.max(virtual_time);
            }
            let elapsed = start.elapsed();
            let (observer, limit) = (&*self.observer, self.limit);
            self.view.show(&Scene { elapsed, virtual_time, limit, observer, tail: &tail });
            let reached = until(&lines, self.observer);
            let machine_time = self.machine_time(elapsed, virtual_time);
            let over = limit.is_some_and(|limit| limit.is_over(elapsed, machine_time));
            if let Some(end) = self.end(reached, over)? {
                return Ok(end);
            }
        }
    }

    fn machine_time(&self, elapsed: Duration, virtual_time: Option<Duration>) -> Duration {
        match self.machine.time() {
            Time::Real => elapsed,
            Time::Virtual(_) => virtual_time.unwrap_or_default(),
        }
    }

    fn end(&mut self, reached: bool, over: bool) -> Result<Option<End>, MachineError> {
        if reached {
            return Ok(Some(End::Reached));
        }
        if self.interrupt.requested() {
            return Ok(Some(End::Interrupted));
        }
        // When the UART has closed, the process is about to end: wait for that
        // here instead of going round without a rest.
        let rest = if self.machine.consoles().ended() { LOOK } else { Duration::ZERO };
        if self.machine.ended_within(rest)? {
            return Ok(Some(End::PoweredOff));
        }
        Ok(over.then_some(End::TimeOver))
    }
}
