//! One emulated core in the lockstep.

/// What a core does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// There is no such core.
    #[default]
    Absent,
    /// It runs, up to its limit.
    Running {
        /// The core's own time at which it must check in.
        limit_ns: u64,
    },
    /// It may have armed a timer, and waits until the main loop knows.
    Settling {
        /// The core's own time.
        at_ns: u64,
    },
    /// It has reached its limit, and waits for the others.
    Arrived {
        /// The core's own time.
        at_ns: u64,
    },
    /// It waits for an interrupt, is switched off, or is stopped by a debugger.
    Idle {
        /// The time since when.
        since_ns: u64,
    },
    /// It has been kicked out of its sleep, but its thread is not up yet.
    Waking {
        /// The time of the kick, from which it runs.
        at_ns: u64,
    },
}

impl State {
    /// Returns true if time must wait for this core.
    pub(super) fn holds_time(self) -> bool {
        matches!(self, Self::Running { .. } | Self::Settling { .. } | Self::Waking { .. })
    }

    pub(super) fn arrival_ns(self) -> Option<u64> {
        match self {
            Self::Arrived { at_ns } => Some(at_ns),
            _ => None,
        }
    }
}

/// Why a core leaves the lockstep for one block: QEMU needs its thread
/// outside emulated code before time can go on. QEMU has by then asked the
/// core to exit, which it does when that block is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaveReason {
    /// All cores that time waits for are themselves blocked: one of them wants
    /// an exclusive section, say.
    Stall,
    /// The main loop is blocked: it wants to stop the machine, say.
    MainLoop,
    /// It has waited long without either reason: a safeguard.
    Timeout,
}

/// The number of [`LeaveReason`]s.
pub(super) const LEAVE_REASONS: usize = 3;

/// What a core that checked in is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Run on.
    Run {
        /// The core's own time at which it must check in again.
        limit_ns: u64,
    },
    /// Run one block and check in again.
    Leave(LeaveReason),
    /// Wait, and ask again when told to.
    Wait,
}

#[derive(Debug, Default)]
pub(super) struct Vcpu {
    pub(super) state: State,
    pub(super) blocked: bool,
    /// Sleep that has ended.
    pub(super) idle_ns: u64,
    pub(super) leaves: [u64; LEAVE_REASONS],
    /// The last episode in which it left; see [`super::Machine::leave`].
    pub(super) left_in: u64,
    /// It has left and neither checked in again nor blocked.
    pub(super) out: bool,
    /// The wait has been ended, but its thread has not gone on yet; see rule 9.
    pub(super) called: bool,
}

impl Vcpu {
    /// Returns true if its thread waits in the lockstep, or has left it for one block.
    pub(super) fn waits(&self) -> bool {
        matches!(self.state, State::Arrived { .. } | State::Settling { .. })
    }

    /// Returns true if it waits, but not in the lockstep: it has left, or it is blocked.
    pub(super) fn is_outside(&self) -> bool {
        self.waits() && (self.out || self.blocked)
    }

    /// Returns true if its thread does something, or is about to, which no rule of the lockstep
    /// holds back.
    pub(super) fn moves(&self) -> bool {
        let goes_on = match self.state {
            State::Running { .. } | State::Waking { .. } => true,
            State::Arrived { .. } | State::Settling { .. } => self.out,
            State::Absent | State::Idle { .. } => false,
        };
        goes_on && !self.blocked && !self.called
    }

    pub(super) fn wake(&mut self, since_ns: u64, at_ns: u64) {
        self.idle_ns += at_ns - since_ns;
        self.state = State::Waking { at_ns };
    }
}
