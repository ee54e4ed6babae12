//! Delayed preemption: a vCPU keeps the core until it has left its kernel.

use sched::{Instant, VcpuId};

/// At most one vCPU keeps the core while others wait until it leaves its kernel. It has the
/// view that executes its kernel only. The end of the wait is fixed when it begins, whichever
/// vCPU waits: a stream of waiting vCPUs could otherwise postpone it for ever.
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
    until: Instant,
}

/// What happens to the vCPU for which the scheduler has decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// It gets the core.
    Open,
    /// It gets the core, and this vCPU, for which it waited, loses the kernel-only view.
    Ends(VcpuId),
    /// It waits, and the vCPU on the hardware keeps the core.
    Hold {
        /// The vCPU on the hardware.
        delayer: VcpuId,
        /// When it loses the core at the latest.
        until: Instant,
        /// The wait begins: it gets the kernel-only view.
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
    /// `stays` returns true if the vCPU for which others waited has the core anyway and is in
    /// its kernel.
    #[must_use]
    pub fn gate(
        &mut self,
        now: Instant,
        limit: Option<Limit>,
        end_after: impl FnOnce(u64) -> Instant,
        stays: impl FnOnce(VcpuId) -> bool,
    ) -> Gate {
        let yields = core::mem::take(&mut self.yields);
        if let Some(Limit { delayer, ns }) = limit.filter(|_| !yields) {
            let begins = self.waiting.is_none();
            let until = self.waiting.map_or_else(|| end_after(ns), |waiting| waiting.until);
            if now < until {
                if begins {
                    self.waiting = Some(Waiting { delayer, until });
                }
                return Gate::Hold { delayer, until, begins };
            }
        }
        match self.waiting {
            Some(Waiting { delayer, .. }) if !stays(delayer) => {
                self.waiting = None;
                Gate::Ends(delayer)
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
    const LIMIT: Option<Limit> = Some(Limit { delayer: DELAYER, ns: 50 });

    fn gate(wait: &mut KernelWait, now: u64, limit: Option<Limit>, stays: bool) -> Gate {
        wait.gate(Instant(now), limit, |ns| Instant(now + ns), |_| stays)
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
    fn a_vcpu_that_spins_is_not_waited_for() {
        let mut wait = KernelWait::new(true);
        wait.yields();
        assert_eq!(gate(&mut wait, 0, LIMIT, false), Gate::Open);
        assert_eq!(gate(&mut wait, 1, LIMIT, false), hold(51, true), "that was once");
    }
}
