//! Delayed preemption: a vCPU keeps the core until it has left its kernel, or no longer asks for that.

use sched::{Instant, VcpuId};

/// At most one vCPU keeps the core while others wait until it leaves its kernel, or until its guest
/// no longer asks for that. In the first case it has the view that executes its kernel only; the kind
/// of a wait does not change, whichever vCPU joins it. The end of the wait is fixed when it begins, whichever
/// vCPU waits, and only becomes earlier: a stream of waiting vCPUs could otherwise postpone it for
/// ever.
pub struct KernelWait {
    /// Preemption of some vCPU of this core may be delayed.
    may_happen: bool,
    /// The vCPU that has the core gives way at once: it spins for a lock that a sibling may
    /// hold.
    yields: bool,
    waiting: Option<Waiting>,
}

#[derive(Clone, Copy)]
struct Waiting {
    delayer: VcpuId,
    asked: bool,
    until: Instant,
}

/// What happens to the vCPU for which the scheduler has decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// It gets the core.
    Open,
    /// It gets the core, and this vCPU, for which it waited, loses the kernel-only view.
    Ends(VcpuId),
    /// It gets the core; the vCPU for which it waited has its usual view.
    EndsAsked,
    /// It waits, and the vCPU on the hardware keeps the core.
    Hold {
        /// The vCPU on the hardware.
        delayer: VcpuId,
        /// When it loses the core at the latest.
        until: Instant,
        /// The wait for its kernel begins: it gets the kernel-only view.
        begins: bool,
    },
}

/// What is known when the scheduler has decided.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// The vCPU on the hardware, for which the next one should wait.
    pub delayer: VcpuId,
    /// How long at most, nanoseconds.
    pub ns: u64,
    /// The guest asks for that; else the vCPU is in its kernel.
    pub asked: bool,
}

impl KernelWait {
    /// Makes the part. `may_happen`: preemption may be delayed on this core.
    #[must_use]
    pub const fn new(may_happen: bool) -> Self {
        Self { may_happen, yields: false, waiting: None }
    }

    /// Returns true if a decision has to pass the [gate](Self::gate).
    #[must_use]
    #[inline]
    pub fn may_happen(&self) -> bool {
        self.may_happen
    }

    /// Returns true if others wait for this vCPU.
    #[must_use]
    pub fn is_for(&self, id: VcpuId) -> bool {
        self.waiting.is_some_and(|waiting| waiting.delayer == id)
    }

    /// Makes the vCPU that has the core give way to a sibling at the next decision, even in
    /// its kernel.
    pub fn yields(&mut self) {
        self.yields = true;
    }

    /// Returns whether the scheduler's decision is carried out. `limit`: how long the next
    /// vCPU should wait, if at all; `end_after` returns when so many nanoseconds are over;
    /// `stays` returns true if the vCPU for which others waited has the core anyway and still is in
    /// its kernel, or, where it asked, still asks.
    #[must_use]
    pub fn gate(
        &mut self,
        now: Instant,
        limit: Option<Limit>,
        end_after: impl FnOnce(u64) -> Instant,
        stays: impl FnOnce(VcpuId, bool) -> bool,
    ) -> Gate {
        let yields = core::mem::take(&mut self.yields);
        if let Some(Limit { delayer, ns, asked }) = limit.filter(|_| !yields) {
            let before = self.waiting;
            let end = end_after(ns);
            let until = before.map_or(end, |waiting| waiting.until.min(end));
            if now < until {
                let asked = before.map_or(asked, |waiting| waiting.asked);
                self.waiting = Some(Waiting { delayer, asked, until });
                return Gate::Hold { delayer, until, begins: before.is_none() && !asked };
            }
        }
        match self.waiting {
            Some(Waiting { delayer, asked, .. }) if !stays(delayer, asked) => {
                self.waiting = None;
                if asked { Gate::EndsAsked } else { Gate::Ends(delayer) }
            }
            _ => Gate::Open,
        }
    }

    /// Asserts what stands at the type. `loaded`: the vCPU on the hardware.
    #[cfg(any(test, feature = "checked"))]
    pub fn check(&self, loaded: Option<VcpuId>) {
        if let Some(Waiting { delayer, .. }) = self.waiting {
            assert!(self.may_happen, "a vCPU is waited for where none may be");
            assert_eq!(loaded, Some(delayer), "the vCPU that is waited for is on the hardware");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAYER: VcpuId = VcpuId(1);
    const LIMIT: Option<Limit> = Some(Limit { delayer: DELAYER, ns: 50, asked: false });
    const ASKED: Option<Limit> = Some(Limit { delayer: DELAYER, ns: u64::MAX, asked: true });

    fn gate(wait: &mut KernelWait, now: u64, limit: Option<Limit>, stays: bool) -> Gate {
        wait.gate(Instant(now), limit, |ns| Instant(now.saturating_add(ns)), |_, _| stays)
    }

    fn hold(until: u64, begins: bool) -> Gate {
        Gate::Hold { delayer: DELAYER, until: Instant(until), begins }
    }

    #[test]
    fn a_wait_ends_when_the_kernel_is_left() {
        let mut wait = KernelWait::new(true);
        assert_eq!(gate(&mut wait, 0, LIMIT, false), hold(50, true));
        assert!(wait.is_for(DELAYER));
        wait.check(Some(DELAYER));
        assert_eq!(gate(&mut wait, 20, None, false), Gate::Ends(DELAYER));
        assert_eq!(gate(&mut wait, 21, None, false), Gate::Open);
    }

    #[test]
    fn the_end_of_a_wait_never_moves() {
        let mut wait = KernelWait::new(true);
        let _ = gate(&mut wait, 0, LIMIT, false);
        assert_eq!(gate(&mut wait, 40, LIMIT, false), hold(50, false));
        assert_eq!(gate(&mut wait, 45, None, true), Gate::Open, "the one that waited has gone");
        assert_eq!(gate(&mut wait, 49, LIMIT, true), hold(50, false), "another one has come");
        assert_eq!(gate(&mut wait, 50, LIMIT, false), Gate::Ends(DELAYER));
    }

    #[test]
    fn what_was_asked_for_needs_no_view_and_may_have_no_end() {
        let mut wait = KernelWait::new(true);
        assert_eq!(gate(&mut wait, 0, ASKED, false), hold(u64::MAX, false));
        assert_eq!(gate(&mut wait, 1_000_000, ASKED, false), hold(u64::MAX, false));
        assert_eq!(gate(&mut wait, 1_000_001, None, true), Gate::Open, "it asks, and none waits");
        assert_eq!(gate(&mut wait, 1_000_002, LIMIT, false), hold(1_000_052, false), "a sibling's");
        assert_eq!(gate(&mut wait, 1_000_010, ASKED, false), hold(1_000_052, false), "no later");
        assert_eq!(gate(&mut wait, 1_000_011, None, false), Gate::EndsAsked);
        assert_eq!(gate(&mut wait, 1_000_012, None, false), Gate::Open);
    }

    #[test]
    fn a_vcpu_that_spins_is_not_waited_for() {
        let mut wait = KernelWait::new(true);
        wait.yields();
        assert_eq!(gate(&mut wait, 0, LIMIT, false), Gate::Open);
        assert_eq!(gate(&mut wait, 1, LIMIT, false), hold(51, true), "that was once");
    }
}
