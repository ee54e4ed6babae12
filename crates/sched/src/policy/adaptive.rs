use super::{Displaced, Mode, ModeBias, Policy, Then};
use crate::time::{Duration, Instant};

/// A vCPU that is displaced waits while the activation that displaces it is expected to be short,
/// and leaves, as under [`super::OnDemand`], when that pays.
///
/// Waiting costs the more the longer the activation is, leaving costs the same each time. How long
/// activations are is learned of each vCPU that displaces others ([`Habit`]). One that was expected
/// to be short and is not is looked at again: then the vCPU leaves after all.
#[derive(Clone, Copy, Debug)]
pub struct Adaptive;

impl Policy for Adaptive {
    fn displaced(&self, _vcpu: Displaced) -> Then {
        Then::LeaveIfItPays
    }
}

/// How long a vCPU waits before it leaves, in a clock's ticks.
///
/// It is the problem of renting or buying: to wait is to rent, at a price that grows with time, and
/// to leave is to buy. A vCPU that always leaves when it has waited for as long as leaving costs
/// never pays more than twice what it would if it knew the future. With an estimate, it leaves
/// sooner where that says *long* and later where it says *short*, and pays little more than needed
/// where the estimate is right (Purohit, Svitkina and Kumar, NeurIPS 2018).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// An activation of this length costs as much if the vCPU waits as if it leaves: in its kernel.
    in_kernel: Duration,
    /// The same in a program.
    in_program: Duration,
    /// The displacing guest's handler and task have begun by then.
    dispatch: Duration,
}

impl Patience {
    /// An activation of this length costs as much if the vCPU waits as if it leaves, nanoseconds:
    /// `docs/src/policies/adaptive.md` says how it was found.
    pub const IN_KERNEL_NS: u64 = 10_000;
    /// The same where the vCPU is in a program, and mostly was: no sibling waits for its lock.
    pub const IN_PROGRAM_NS: u64 = 20_000;
    /// So long after it has got its core, a guest that an interrupt has woken has begun to execute
    /// its task, nanoseconds.
    pub const DISPATCH_NS: u64 = 3_000;

    /// Makes it for a clock. `ticks`: how many ticks so many nanoseconds are.
    #[must_use]
    pub fn new(ticks: impl Fn(u64) -> u64) -> Self {
        let [in_kernel, in_program, dispatch] =
            [Self::IN_KERNEL_NS, Self::IN_PROGRAM_NS, Self::DISPATCH_NS].map(|ns| Duration(ticks(ns)));
        Self { in_kernel, in_program, dispatch }
    }

    /// Returns which length of an activation costs as much if the vCPU waits as if it leaves.
    const fn break_even(&self, holds_no_lock: bool) -> Duration {
        if holds_no_lock { self.in_program } else { self.in_kernel }
    }
}

/// How often as long as the break-even a vCPU waits that expected to wait for less.
const DOUBT: u64 = 2;
/// A new activation counts as one of so many.
const MEMORY: u64 = 8;

/// What a vCPU that displaces others usually does, in ticks.
///
/// An *activation* is the time from when it gets its core until it loses it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habit {
    /// When the present activation began.
    begun: Instant,
    /// How long the vCPU had run in all when that began.
    ran: Duration,
    /// What waiting would have cost in one of the last activations, in the mean.
    cost: u64,
    /// The mode in which it met what it displaced.
    met: ModeBias,
}

/// What a vCPU does that is displaced by another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// It leaves.
    Leave,
    /// It waits, and is asked again at this instant.
    WaitUntil(Instant),
}

impl Habit {
    /// Records that the vCPU has its core since `begun`, and ran for so long in all before. Does
    /// nothing if that is known.
    #[inline]
    pub fn begins(&mut self, begun: Instant, ran: Duration, patience: &Patience) {
        if begun == self.begun {
            return;
        }
        let length = ran.0.saturating_sub(self.ran.0);
        (self.begun, self.ran) = (begun, ran);
        self.met.runs();
        // What counts is what a vCPU loses that waits first: it is asked again, and leaves then. So
        // one activation that is very long counts no more than one that is long.
        let break_even = patience.in_kernel.0;
        let most = DOUBT * break_even;
        let cost = if length > most { most + break_even } else { length };
        // Rounded up, or the mean could never reach what it is the mean of.
        self.cost += cost.saturating_sub(self.cost).div_ceil(MEMORY);
        self.cost -= self.cost.saturating_sub(cost).div_ceil(MEMORY);
    }

    /// Decides about a vCPU that is displaced at `now` and was in this mode. `foreseen`: the guest
    /// that displaces it was not to run yet, so it waits for nothing that is done now.
    #[must_use]
    #[inline]
    pub fn choose(&mut self, mode: Mode, foreseen: bool, now: Instant, patience: &Patience) -> Choice {
        let break_even = patience.break_even(self.met.lost_core(mode) && mode == Mode::User);
        let wait = if self.cost < break_even.0 {
            Duration(DOUBT * break_even.0)
        } else if foreseen {
            Duration(0)
        } else {
            patience.dispatch
        };
        if now.since(self.begun) >= wait { Choice::Leave } else { Choice::WaitUntil(self.begun.after(wait)) }
    }
}
