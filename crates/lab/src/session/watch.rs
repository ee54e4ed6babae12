//! Watches a machine from its start to its end.

use super::{End, Moment, Run, START, Session};
use crate::console::Cursor;
use crate::console::connection::Connected;
use crate::guests::Transcript;
use crate::interrupt::Interrupt;
use crate::machine::{HostUse, Machine, Time};
use crate::observe::Observer;
use crate::operator::Operator;
use crate::trace::Recorder;
use crate::view::Scene;
use miette::{Result, miette};
use std::time::{Duration, Instant};

/// How often the view is shown what there is, and memory is looked at in real time: a report
/// ring of 64 KiB fed at 1 kHz goes round in four seconds.
const LOOK: Duration = Duration::from_millis(50);
/// Real time after which a machine at rest that has not switched itself off never will: its
/// power-off reaches QEMU at once.
const REST: Duration = Duration::from_secs(10);
/// Between two pieces of what is typed to a guest, real time. A guest's receive FIFO holds
/// four pieces, and it may not have its core for a while.
const TYPING_REST: Duration = Duration::from_millis(5);
/// Like [`TYPING_REST`], where time is virtual and therefore slower.
const VIRTUAL_TYPING_REST: Duration = Duration::from_millis(50);

/// How often a machine is held in vain for a look that counts.
const MOST_HOLDS_AGAIN: u32 = 4;

/// A machine that runs, and how far its session has come.
pub(super) struct Watch<'a> {
    session: Session<'a>,
    machine: Machine,
    observer: Observer,
    recorder: Option<Recorder>,
    said: Transcript,
    connected: Connected,
    operator: Option<Operator>,
    /// A user at a console has asked for the end.
    quit: Interrupt,
    /// Something is connected that may type at any time.
    is_typed_to: bool,
    start: Instant,
    /// When the view is shown something next.
    next_look: Instant,
    /// When the machine was held last; its start, before.
    held: Instant,
    /// Virtual time at which it was held last.
    virtual_time: Option<Duration>,
    is_at_rest: bool,
    /// How often it was held for a look that counts since it was held by its period.
    holds_again: u32,
    cursor: Cursor,
    host: Option<HostUse>,
}

impl<'a> Watch<'a> {
    pub(super) fn start(mut session: Session<'a>) -> Result<Self> {
        let connections = std::mem::take(&mut session.connections);
        let consoles = session.consoles.clone().with_taps(connections.taps());
        let observer = Observer::new(session.layout.clone());
        let record = |sources| Recorder::create(sources, &session.directory);
        let recorder = session.sources.as_ref().map(record).transpose()?;
        let start = Instant::now();
        let machine = Machine::start(session.qemu, &session.config, &consoles)?;
        let (quit, is_typed_to) = (connections.quit(), !connections.is_empty());
        let typing_rest = match session.config.time {
            Time::Real => TYPING_REST,
            Time::Virtual(_) => VIRTUAL_TYPING_REST,
        };
        let connected = connections
            .start(&machine.consoles, typing_rest)
            .map_err(|cause| miette!("cannot connect the consoles: {cause}"))?;
        Ok(Self {
            operator: session.operator.take(),
            said: Transcript::new(session.layout.vms.len()),
            session,
            machine,
            observer,
            recorder,
            connected,
            quit,
            is_typed_to,
            start,
            next_look: start,
            held: start,
            virtual_time: None,
            holds_again: 0,
            is_at_rest: false,
            cursor: Cursor::default(),
            host: None,
        })
    }

    pub(super) fn run(mut self, mut until: impl FnMut(&Moment) -> bool) -> Result<Run> {
        let end = match self.machine.time {
            Time::Real => self.watch(&mut until),
            Time::Virtual(_) => self.hold(&mut until),
        };
        self.session.view.finish();
        self.machine.stop()?;
        let end = end?;
        let elapsed = self.start.elapsed();
        let instrument = self.machine.statistics();
        // The machine is gone, and complete: the last look and the last lines.
        match self.machine.time {
            Time::Real => self.observer.poll(&self.machine.memory)?,
            Time::Virtual(_) => {
                let last = instrument.as_ref().map(|last| Duration::from_nanos(last.virtual_ns));
                let time = last.or(self.virtual_time).unwrap_or_default();
                self.observer.poll_held(&self.machine.memory, time)?;
            }
        }
        self.record()?;
        self.recorder.take().map(Recorder::finish).transpose()?;
        self.judge(Duration::ZERO, &mut until);
        let inspection = self.session.inspection.take();
        let inspected = inspection.map(|inspect| inspect(&self.machine.memory)).transpose()?;
        let inspected = inspected.unwrap_or_default();
        // The terminal is as it was before anything else is said.
        drop(self.connected);
        let Self { observer, said, host, session, .. } = self;
        let Session { directory, promises, paths, .. } = session;
        Ok(Run {
            observer,
            promises,
            paths,
            said,
            end,
            elapsed,
            host,
            instrument,
            directory,
            inspected,
        })
    }

    /// Watches a machine in real time.
    fn watch(&mut self, until: &mut impl FnMut(&Moment) -> bool) -> Result<End> {
        loop {
            let is_due = self.is_due();
            if is_due {
                self.observer.poll(&self.machine.memory)?;
                self.record()?;
                self.show();
            }
            let left = self.next_look.saturating_duration_since(Instant::now());
            if self.judge(left, until) {
                return Ok(End::Reached);
            }
            if let Some(end) = self.end()? {
                return Ok(end);
            }
            if self.session.limit.is_some_and(|limit| self.start.elapsed() >= limit) {
                return Ok(End::TimeOver);
            }
        }
    }

    /// Watches a machine in virtual time: it is held now and then, and judged.
    fn hold(&mut self, until: &mut impl FnMut(&Moment) -> bool) -> Result<End> {
        let limit = self.session.limit.unwrap_or(Duration::MAX);
        loop {
            let left = self.next_look.saturating_duration_since(Instant::now());
            let held = self.machine.held_within(left)?;
            if let Some(held) = held {
                let now = Duration::from_nanos(held.at_ns);
                (self.virtual_time, self.is_at_rest) = (Some(now), held.at_rest);
                self.held = Instant::now();
                self.observer.poll_held(&self.machine.memory, now)?;
                self.record()?;
                // What judges may count periods.
                let is_by_period = self.holds_again == 0 || held.at_rest;
                if is_by_period && self.judge(Duration::ZERO, until) {
                    return Ok(End::Reached);
                }
                if now >= limit {
                    return Ok(End::TimeOver);
                }
                let next = self.next_hold(now).min(limit);
                self.machine.run_to(next)?;
            }
            let is_due = self.is_due();
            if is_due {
                self.show();
            }
            if (is_due || held.is_none())
                && let Some(end) = self.end()?
            {
                return Ok(end);
            }
        }
    }

    /// Returns when to hold the machine next: soon, if this look does not count for all vCPUs with
    /// budgets. A few times only, as cores may change hands all the time.
    fn next_hold(&mut self, now: Duration) -> Duration {
        let next = next_hold(now, self.session.period);
        let again = self.observer.look_again_in().map(|later| now + later);
        let again = again.filter(|&again| again < next && self.holds_again < MOST_HOLDS_AGAIN);
        self.holds_again = again.map_or(0, |_| self.holds_again + 1);
        again.unwrap_or(next)
    }

    /// Records what is new, if there is a trace.
    fn record(&mut self) -> Result<()> {
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        recorder.poll(&self.machine.memory, self.observer.latest())
    }

    /// Returns true if it is time for a look, which then comes [`LOOK`] later again.
    fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = now >= self.next_look;
        if is_due {
            self.next_look = now + LOOK;
        }
        is_due
    }

    /// Takes new lines, for which it waits at most `limit`. Returns true if `until` has seen
    /// enough.
    fn judge(&mut self, limit: Duration, until: &mut impl FnMut(&Moment) -> bool) -> bool {
        self.said.hear(&self.machine.consoles.follow(&mut self.cursor, limit));
        let (said, observer, machine) = (&self.said, &self.observer, &self.machine);
        until(&Moment { said, observer, machine, virtual_time: self.virtual_time })
    }

    fn show(&mut self) {
        if let Some(operator) = &mut self.operator {
            operator.attend(&self.machine.consoles, &self.observer);
        }
        let used = self.machine.host_use();
        self.host = used.map(|used| used.at_least(self.host.unwrap_or_default())).or(self.host);
        let (elapsed, virtual_time) = (self.start.elapsed(), self.virtual_time);
        let (limit, observer, said) = (self.session.limit, &self.observer, &self.said);
        let latest = self.recorder.as_ref().map(Recorder::latest);
        let scene = Scene { elapsed, virtual_time, limit, observer, said, latest };
        self.session.view.show(&scene);
    }

    /// Returns why the run ends, if a user ends it, the machine has switched itself off, or
    /// nothing more can happen in it.
    fn end(&mut self) -> Result<Option<End>> {
        if self.session.interrupt.requested() {
            return Ok(Some(End::Interrupted));
        }
        if self.quit.requested() {
            return Ok(Some(End::Reached));
        }
        // When the UART has closed, the process is about to end: wait for that
        // here instead of going round without a rest.
        let rest = if self.machine.consoles.ended() { LOOK } else { Duration::ZERO };
        if self.machine.ended_within(rest)? {
            return Ok(Some(End::PoweredOff));
        }
        if is_silent(&self.observer, self.start.elapsed()) {
            return Err(miette!(
                help = "does this QEMU run anything, and is the host very busy? CASSATA_QEMU names \
                        another one",
                "QEMU has been running for {} s, and the hypervisor has not come up",
                START.as_secs()
            ));
        }
        match self.machine.time {
            Time::Virtual(_) => self.stands_still(),
            Time::Real => Ok(None),
        }
    }

    /// Returns how a machine ends whose virtual time stands still, once that is certain.
    fn stands_still(&mut self) -> Result<Option<End>> {
        let waited = self.held.elapsed();
        match (self.is_at_rest, self.is_typed_to) {
            (true, true) => Ok(None),
            (true, false) => Ok((waited >= REST).then_some(End::AtRest)),
            (false, _) if waited < self.session.patience => Ok(None),
            (false, _) => {
                self.machine.kill()?;
                let (at, cores) = (self.virtual_time.unwrap_or_default(), self.machine.doings());
                Err(miette!(
                    help = "this is a fault of the instrument or of QEMU, not of a guest",
                    "virtual time has stood at {} s for {} s\n{cores}",
                    at.as_secs_f64(),
                    waited.as_secs()
                ))
            }
        }
    }
}

/// Returns true if the hypervisor that there should be has not come up in all that time.
fn is_silent(observer: &Observer, elapsed: Duration) -> bool {
    elapsed >= START && observer.latest().is_none() && !observer.layout.vms.is_empty()
}

/// Returns the next multiple of `period`.
fn next_hold(now: Duration, period: Duration) -> Duration {
    let periods = now.as_nanos() / period.as_nanos() + 1;
    period * u32::try_from(periods).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::Layout;
    use crate::testing::{layout, observer, report, status};

    #[test]
    fn only_a_hypervisor_that_never_came_up_is_given_up() {
        let nothing_yet = Observer::new(layout());
        assert!(!is_silent(&nothing_yet, START - LOOK));
        assert!(is_silent(&nothing_yet, START));
        let up = observer(&status(), &report(0, 0));
        assert!(!is_silent(&up, 2 * START));
        let plain = Observer::new(Layout::default());
        assert!(!is_silent(&plain, START), "there is no hypervisor");
    }

    #[test]
    fn holds_are_multiples_of_the_period() {
        let us = Duration::from_micros;
        assert_eq!(next_hold(Duration::ZERO, us(1_000)), us(1_000));
        assert_eq!(next_hold(us(1_999), us(1_000)), us(2_000));
        assert_eq!(next_hold(us(2_000), us(1_000)), us(3_000));
    }
}
