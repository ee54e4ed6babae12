//! The lockstep itself, as a state machine without threads or clocks.
//!
//! Each emulated core has its own time. Global time is a lower bound of them
//! all, and no running core may be more than a quantum ahead of it. QEMU's
//! main loop runs timers and devices; it lives at global time, which stands
//! still while it works. The rules:
//!
//! 1. A running core has a limit. When it reaches it, it has *arrived*, and
//!    waits.
//! 2. When no core is left running and the main loop is *settled* (asleep in
//!    its poll, its next deadline known), the earliest arrival decides. If the
//!    deadline is not later, global time becomes the deadline and the main
//!    loop runs its timers. Otherwise global time becomes that arrival, and
//!    every core before `global + quantum`, or before the deadline if that is
//!    sooner, runs on up to there.
//! 3. When every core is idle, global time becomes the deadline. Without one,
//!    nothing happens until input arrives.
//! 4. An idle core that is kicked wakes at its kicker's time, and counts as
//!    running from that moment, not from when its thread gets going.
//! 5. A core that waits leaves for one block when time cannot go on otherwise:
//!    when the main loop, or every core that time waits for, is blocked.
//! 6. A core that may have armed a timer waits until the main loop has settled
//!    again, and then runs no further than the deadline now known.
//! 7. If the lockstep is *serial*, one core runs at a time: the one whose time
//!    is least, and of equals the one with the least index. It is chosen anew
//!    whenever a core checks in, and only while no other is outside the
//!    lockstep: not one that is being woken, and not one that has left and
//!    has yet to come back.
//!
//! 8. If a hold is asked for, the machine is held when all that happens up to
//!    that time has happened: when the earliest arrival and the deadline lie
//!    behind it. It is held as well when there is neither, for then nothing
//!    more happens by itself. Global time stands still until the main loop
//!    settles again, and what follows is what had followed without the hold.
//!
//! 9. If the lockstep is serial, a core's thread whose wait was ended, be it a sleep or
//!    a wait for another core, goes on when no other thread of a core does anything, and
//!    of several that with the least index. So it does not depend on the host whether
//!    a core that wants an exclusive section finds another one in emulated code.
//!
//! Rules 2 and 6 make a timer fire at its exact time on the core that armed
//! it. Rule 4 makes the all-idle test exact: a core whose thread has not been
//! scheduled yet is not idle.

mod rules;
mod vcpu;

use serde::{Deserialize, Serialize};
use vcpu::Vcpu;
pub use vcpu::{LeaveReason, State, Verdict};

/// The most emulated cores: one bit each in [`Effects::unpark`].
pub const MAX_VCPUS: usize = 64;

/// What the caller must do once it has let go of the machine.
#[must_use]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// The cores whose threads are to look at their verdict again, bit by
    /// index.
    pub unpark: u64,
    /// Wake the main loop from its poll.
    pub poke: bool,
}

impl Effects {
    fn unpark(&mut self, vcpu: usize) {
        self.unpark |= 1 << vcpu;
    }

    /// The same without waking `vcpu`, which is the one that asks.
    pub fn except(self, vcpu: usize) -> Self {
        Self { unpark: self.unpark & !(1 << vcpu), ..self }
    }
}

/// What QEMU's main loop does, as far as time is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MainLoop {
    /// It works. Global time stands still.
    Awake,
    /// It sleeps, but has been told of something and will look.
    Notified,
    /// It sleeps until `deadline_ns`, or until input arrives.
    Settled {
        /// Virtual time of its next timer, if any.
        deadline_ns: Option<u64>,
    },
    /// The deadline has been reached, and it is being woken.
    Due,
    /// The machine is held, until it settles again.
    Held {
        /// Nothing happens before input arrives.
        at_rest: bool,
    },
}

/// Why the main loop woke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// Input arrived, or a core had something to tell.
    Early,
    /// The deadline was reached.
    Due,
    /// The machine is held.
    Held {
        /// Nothing happens before input arrives.
        at_rest: bool,
    },
}

/// How often things happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Quanta begun.
    pub quanta: u64,
    /// Quanta that were cut short by a deadline.
    pub early_ends: u64,
    /// Deadlines reached, by running or by a jump.
    pub deadlines: u64,
    /// Jumps over time in which every core slept.
    pub jumps: u64,
    /// Times a core waited for the main loop to learn its next deadline.
    pub settlings: u64,
}

/// The lockstep of up to [`MAX_VCPUS`] cores and a main loop.
#[derive(Debug)]
pub struct Machine {
    quantum_ns: u64,
    serial: bool,
    now_ns: u64,
    window_end_ns: u64,
    main_loop: MainLoop,
    main_loop_blocked: bool,
    /// How often a thread became blocked, plus one.
    episode: u64,
    vcpus: Vec<Vcpu>,
    counts: Counts,
    /// Calls that changed something, so far.
    changes: u64,
    /// The time at which to hold the machine, if any.
    hold_at_ns: Option<u64>,
    /// It was held at rest, and nothing has happened since.
    rested: bool,
}

impl Machine {
    /// A machine at time zero without cores, whose main loop is awake.
    ///
    /// `quantum_ns` is how far a core may run ahead of the others; zero is
    /// taken as one. `serial` says that they take turns; see rule 7.
    #[must_use]
    pub fn new(quantum_ns: u64, serial: bool) -> Self {
        let quantum_ns = quantum_ns.max(1);
        Self {
            quantum_ns,
            serial,
            now_ns: 0,
            window_end_ns: quantum_ns,
            main_loop: MainLoop::Awake,
            main_loop_blocked: false,
            episode: 1,
            vcpus: Vec::new(),
            counts: Counts::default(),
            changes: 0,
            hold_at_ns: None,
            rested: false,
        }
    }

    /// Global time: no core is behind it, except inside an instruction block
    /// that was begun before and ends after it.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// What the main loop does.
    #[must_use]
    pub fn main_loop(&self) -> MainLoop {
        self.main_loop
    }

    /// How often things happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How often anything has happened so far: while this stands still,
    /// nothing goes on.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns true if the machine is held.
    #[must_use]
    pub fn is_held(&self) -> bool {
        matches!(self.main_loop, MainLoop::Held { .. })
    }

    /// Asks for a hold at `at_ns`, or for none, in place of the one before.
    pub fn hold_at(&mut self, at_ns: Option<u64>) {
        self.rested = matches!(self.main_loop, MainLoop::Held { at_rest: true });
        self.hold_at_ns = at_ns;
    }

    /// One more than the highest core index seen.
    #[must_use]
    pub fn vcpus(&self) -> usize {
        self.vcpus.len()
    }

    /// The state of a core; absent if there is no such core.
    #[must_use]
    pub fn state(&self, vcpu: usize) -> State {
        self.vcpus.get(vcpu).map_or(State::Absent, |v| v.state)
    }

    /// How many cores do not sleep: each has a thread that runs or would like
    /// to.
    #[must_use]
    pub fn awake(&self) -> usize {
        self.vcpus.iter().filter(|v| v.state.holds_time() || v.waits()).count()
    }

    /// Returns true if a core's wait is over and its thread has yet to go on.
    #[must_use]
    pub fn is_called(&self, vcpu: usize) -> bool {
        self.vcpus.get(vcpu).is_some_and(|v| v.called)
    }

    /// Returns true if a core's thread waits for something else than an interrupt.
    #[must_use]
    pub fn is_blocked(&self, vcpu: usize) -> bool {
        self.vcpus.get(vcpu).is_some_and(|v| v.blocked)
    }

    /// How long a core has slept so far, in ns of virtual time.
    #[must_use]
    pub fn idle_ns(&self, vcpu: usize) -> u64 {
        let Some(v) = self.vcpus.get(vcpu) else { return 0 };
        match v.state {
            State::Idle { since_ns } => v.idle_ns + self.now_ns.saturating_sub(since_ns),
            _ => v.idle_ns,
        }
    }

    /// How often a core left the lockstep for one block, by reason.
    #[must_use]
    pub fn leaves(&self, vcpu: usize, reason: LeaveReason) -> u64 {
        self.vcpus.get(vcpu).map_or(0, |v| v.leaves[reason as usize])
    }

    /// A core comes into being at global time. Until it first sleeps it counts
    /// as running.
    ///
    /// # Panics
    /// If `vcpu` is [`MAX_VCPUS`] or more.
    pub fn add(&mut self, vcpu: usize) {
        assert!(vcpu < MAX_VCPUS, "core {vcpu}: at most {MAX_VCPUS} are supported");
        if self.vcpus.len() <= vcpu {
            self.vcpus.resize_with(vcpu + 1, Vcpu::default);
        }
        let limit_ns = if self.serial { self.now_ns } else { self.window_end_ns };
        self.vcpus[vcpu].state = State::Running { limit_ns };
    }

    /// A core is taken out of the machine.
    pub fn remove(&mut self, vcpu: usize) -> Effects {
        self.vcpus[vcpu].state = State::Absent;
        self.vcpus[vcpu].called = false;
        self.advance()
    }

    /// A core, at its own time `at_ns`, stands before its next block and wants
    /// to know whether it may run on. `armed` says that it may have armed a
    /// timer since it was last here.
    pub fn check_in(&mut self, vcpu: usize, at_ns: u64, armed: bool) -> Effects {
        self.changes += 1;
        let settled = matches!(self.main_loop, MainLoop::Settled { .. });
        let limit_ns = self.limit_for(at_ns);
        let v = &mut self.vcpus[vcpu];
        v.out = false;
        let must_settle = armed || matches!(v.state, State::Settling { .. });
        v.state = match v.state {
            _ if must_settle && !settled => {
                self.counts.settlings += u64::from(armed);
                State::Settling { at_ns }
            }
            _ if must_settle && at_ns < limit_ns && !self.serial => State::Running { limit_ns },
            State::Running { limit_ns } if !must_settle && at_ns < limit_ns && !self.serial => {
                v.state
            }
            _ => State::Arrived { at_ns },
        };
        self.advance()
    }

    /// Returns true if a core that checked in may run.
    #[must_use]
    pub fn verdict(&self, vcpu: usize) -> Verdict {
        match self.vcpus[vcpu].state {
            State::Running { limit_ns } => Verdict::Run { limit_ns },
            _ if !self.may_leave(vcpu) => Verdict::Wait,
            _ if self.main_loop_blocked => Verdict::Leave(LeaveReason::MainLoop),
            _ if self.stalled() => Verdict::Leave(LeaveReason::Stall),
            _ => Verdict::Wait,
        }
    }

    /// A core leaves the lockstep for one block without being allowed to run
    /// on, so that QEMU gets hold of its thread.
    ///
    /// Once is enough for each episode, that is, each time a thread becomes
    /// blocked: it has asked the core to exit before, and with the next block
    /// it does.
    pub fn leave(&mut self, vcpu: usize, reason: LeaveReason) {
        self.changes += 1;
        let v = &mut self.vcpus[vcpu];
        v.leaves[reason as usize] += 1;
        v.left_in = self.episode;
        v.out = true;
    }

    /// A core goes to sleep at its own time `at_ns`.
    pub fn sleep(&mut self, vcpu: usize, at_ns: u64) -> Effects {
        self.changes += 1;
        let v = &mut self.vcpus[vcpu];
        v.state = match v.state {
            // It was kicked for something that is not work: its sleep goes on,
            // and is already accounted for up to the kick.
            State::Waking { at_ns } => State::Idle { since_ns: at_ns },
            _ => State::Idle { since_ns: at_ns },
        };
        self.advance()
    }

    /// Wakes a core, should it be asleep, on behalf of a thread whose time is `at_ns`.
    /// Returns whether it was asleep.
    pub fn kick(&mut self, vcpu: usize, at_ns: u64) -> bool {
        let v = &mut self.vcpus[vcpu];
        let State::Idle { since_ns } = v.state else { return false };
        v.wake(since_ns, since_ns.max(at_ns).max(self.now_ns));
        v.called = self.serial;
        true
    }

    /// Ends a core's wait for another core, should it wait so.
    pub fn release(&mut self, vcpu: usize) -> Effects {
        if !self.is_blocked(vcpu) {
            return Effects::default();
        }
        self.vcpus[vcpu].called = self.serial;
        self.set_blocked(vcpu, false)
    }

    /// A core's thread, whose wait is over, would like to go on. Returns whether it may,
    /// by rule 9; then it does.
    pub fn go_on(&mut self, vcpu: usize) -> bool {
        let others = || self.vcpus.iter().enumerate().filter(|&(other, _)| other != vcpu);
        let may = !self.serial
            || self.next_to_go_on().is_none_or(|next| next == vcpu)
                && !others().any(|(_, v)| v.moves());
        self.changes += u64::from(may);
        self.vcpus[vcpu].called = !may;
        may
    }

    /// A core's thread, whose wait is over, goes on out of turn.
    pub fn force_on(&mut self, vcpu: usize) {
        self.changes += 1;
        let v = &mut self.vcpus[vcpu];
        v.called = false;
        v.leaves[LeaveReason::Timeout as usize] += 1;
    }

    /// The first core whose wait is over.
    fn next_to_go_on(&self) -> Option<usize> {
        self.vcpus.iter().position(|v| v.called)
    }

    /// The core that is to go on next, if one may now.
    #[must_use]
    pub fn called_on(&self) -> Option<usize> {
        self.next_to_go_on().filter(|_| !self.vcpus.iter().any(Vcpu::moves))
    }

    /// A core's thread is up after a sleep. Returns the core's time and its
    /// limit, or nothing if it was not asleep. While the main loop works, or if
    /// cores take turns, the limit is that very time: the core must check in,
    /// as if it had armed a timer, to learn how far it may run.
    pub fn resume(&mut self, vcpu: usize) -> Option<(u64, u64)> {
        self.changes += 1;
        let now_ns = self.now_ns;
        let v = self.vcpus.get_mut(vcpu)?;
        if let State::Idle { since_ns } = v.state {
            v.wake(since_ns, since_ns.max(now_ns));
        }
        let State::Waking { at_ns } = v.state else { return None };
        self.rested = false;
        let settled = matches!(self.main_loop, MainLoop::Settled { .. });
        let limit_ns = if settled && !self.serial { self.limit_for(at_ns) } else { at_ns };
        self.vcpus[vcpu].state = State::Running { limit_ns };
        Some((at_ns, limit_ns))
    }

    /// A core's thread begins or ends a wait for something else than an
    /// interrupt, such as another core's exclusive section.
    pub fn set_blocked(&mut self, vcpu: usize, blocked: bool) -> Effects {
        self.changes += 1;
        let v = &mut self.vcpus[vcpu];
        v.blocked = blocked;
        v.out = !blocked && v.waits();
        self.episode += u64::from(blocked);
        if v.out {
            // It is outside right now, and has seen what it was asked to.
            v.left_in = self.episode;
        }
        self.release_waiting()
    }

    /// The main loop's thread begins or ends a wait for cores.
    pub fn set_main_loop_blocked(&mut self, blocked: bool) -> Effects {
        self.changes += 1;
        self.main_loop_blocked = blocked;
        self.episode += u64::from(blocked);
        self.release_waiting()
    }

    /// The main loop has been told of something by a core: its next deadline
    /// is not known until it has looked.
    pub fn notify_main_loop(&mut self) -> Effects {
        let settled = matches!(self.main_loop, MainLoop::Settled { .. });
        if settled {
            self.main_loop = MainLoop::Notified;
        }
        Effects { poke: settled, ..Effects::default() }
    }

    /// The main loop goes to sleep until `deadline_ns`. If that is reached at
    /// once, it is [`MainLoop::Due`] afterwards.
    pub fn settle(&mut self, deadline_ns: Option<u64>) -> Effects {
        self.changes += 1;
        self.main_loop = MainLoop::Settled { deadline_ns };
        let mut effects = Effects::default();
        for vcpu in 0..self.vcpus.len() {
            if let State::Settling { at_ns } = self.vcpus[vcpu].state {
                let limit_ns = self.limit_for(at_ns);
                if at_ns < limit_ns && !self.serial {
                    effects.unpark(vcpu);
                    self.vcpus[vcpu].state = State::Running { limit_ns };
                } else {
                    self.vcpus[vcpu].state = State::Arrived { at_ns };
                }
            }
        }
        let advanced = self.advance();
        Effects { unpark: effects.unpark | advanced.unpark, poke: false }
    }

    /// The main loop is awake. Returns why. If the machine is held, it stays so
    /// until the main loop settles again.
    pub fn unsettle(&mut self) -> Woken {
        self.changes += 1;
        let woken = match self.main_loop {
            MainLoop::Held { at_rest } => return Woken::Held { at_rest },
            MainLoop::Due => Woken::Due,
            _ => Woken::Early,
        };
        self.main_loop = MainLoop::Awake;
        woken
    }
}

#[cfg(test)]
mod tests;
