//! What goes into a scheduler, and what comes out.

use crate::server::Account;
use crate::{Duration, Instant};
use core::fmt;

/// Names a vCPU: its index in the system's table, below [`MAX_VCPUS`](crate::MAX_VCPUS).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VcpuId(pub u8);

/// A scheduling priority; larger is higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub u16);

/// Parameters of a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// The priority.
    pub priority: Priority,
    /// How long it may run while an equal waits; not zero.
    pub quantum: Duration,
}

/// The state of a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has work and the core, as of the latest decision.
    Running,
    /// It has work, but another vCPU runs, or it is held back, or its budget is spent.
    Suspended,
    /// It has no work: it waits for an interrupt, or is switched off.
    Sleeping,
}

/// What waking a vCPU has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// Nothing: the vCPU was awake, or is not here.
    Nothing,
    /// The vCPU is awake. The latest decision stands.
    Waits,
    /// The vCPU is awake, and the core has to decide again.
    Decide,
    /// The vCPU was awake, and the interrupt boosts it: the core has to decide again, unless
    /// [`Scheduler::rises`](super::Scheduler::rises) says otherwise.
    Rises,
}

/// What has come of what a guest says of how urgent it is what a vCPU runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported {
    /// Nothing: the vCPU may not be boosted, or nothing is left of its limit.
    Refused,
    /// The latest decision stands, until the instant that it named: the vCPU is boosted for longer, or was not.
    Stands,
    /// The core has to decide again.
    Decide,
}

/// What the core should do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The vCPU that runs; none: wait for an interrupt.
    pub run: Option<VcpuId>,
    /// The vCPU that has no work and idles its budget away: wait for an interrupt on its
    /// account. Then none runs.
    pub idles: Option<VcpuId>,
    /// Decide again at this instant at the latest; none: when an event comes.
    pub until: Option<Instant>,
}

impl Decision {
    /// Returns the vCPU that has the core, whether it runs or idles.
    #[must_use]
    pub fn owner(&self) -> Option<VcpuId> {
        self.run.or(self.idles)
    }
}

/// A decision of two words: they are returned in registers, and a core on which no vCPU has
/// extras keeps no room for them in memory.
pub struct Compact {
    pub(super) until: Instant,
    /// The vCPU that has the core.
    run: Option<VcpuId>,
    /// It idles its budget away.
    idles: bool,
}

const _: () = assert!(size_of::<Compact>() <= 2 * size_of::<u64>());

impl Compact {
    /// Packs a decision with these fields.
    pub(super) fn new(run: Option<VcpuId>, idles: bool, until: Option<Instant>) -> Self {
        Self { until: until.unwrap_or(Instant::NEVER), run, idles }
    }

    /// Has the core decide again by this instant, if it is to decide again at all.
    pub fn decide_by(&mut self, at: Instant) {
        if self.until != Instant::NEVER {
            self.until = self.until.min(at);
        }
    }

    /// Returns the vCPU that has the core, whether it runs or idles.
    #[must_use]
    pub fn owner(&self) -> Option<VcpuId> {
        self.run
    }
}

impl From<Compact> for Decision {
    #[inline(always)]
    fn from(Compact { until, run, idles }: Compact) -> Self {
        let (run, idles) = if idles { (None, run) } else { (run, None) };
        Self { run, idles, until: (until != Instant::NEVER).then_some(until) }
    }
}

/// A vCPU that was removed from a core, and can be added to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The parameters.
    pub params: Params,
    /// The server, with what is left in it.
    pub account: Option<Account>,
    /// True if it has work.
    pub ready: bool,
}

/// Why a vCPU was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is on this core already.
    AlreadyHere,
    /// The identifier is not below [`MAX_VCPUS`](crate::MAX_VCPUS).
    UnknownVcpu,
    /// The core has no position left.
    NoPosition,
    /// A boost's priority is not above the vCPU's own.
    NoBoost,
    /// The vCPU has boosts, or the core has as many vCPUs with boosts as it may.
    NoMoreBoosts,
    /// The quantum is zero.
    ZeroQuantum,
    /// The server's budget is zero.
    ZeroBudget,
    /// The server's period is zero.
    ZeroPeriod,
    /// The server's budget is larger than the period it comes in.
    BudgetBeyondPeriod,
    /// The server's budget and overrun together are larger than the period.
    OverrunBeyondPeriod,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AlreadyHere => "the vCPU is on this core already",
            Self::UnknownVcpu => "the vCPU's number is too large",
            Self::NoPosition => "the core has no position left",
            Self::NoBoost => "the boost's priority is not above the vCPU's own",
            Self::NoMoreBoosts => "the vCPU has boosts, or too many others of its core have",
            Self::ZeroQuantum => "the quantum is zero",
            Self::ZeroBudget => "the budget is zero: the vCPU could never run",
            Self::ZeroPeriod => "the period is zero: the budget would be endless",
            Self::BudgetBeyondPeriod => "the budget is larger than its period",
            Self::OverrunBeyondPeriod => "budget and overrun are larger than the period",
        })
    }
}
