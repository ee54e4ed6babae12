//! Budgets: a vCPU idles what is left of its own away, or waits for the next.
//!
//! The scheduler keeps the accounts, and says when to ask it again. What is left to do here
//! is to wait in the name of a vCPU whose periodic server has budget and no work, and to
//! book the wait of one that has used its budget up.

use super::Pcpu;
use crate::arch::{cpu, timer};
use sched::{Instant, State, VcpuId};

impl Pcpu {
    /// EL2's timer has fired on a core where some vCPU has a budget: the one that has the
    /// core may have used it up, and waits for the next.
    #[inline(never)]
    pub(super) fn book_throttling(&mut self, now: Instant) {
        self.scheduler.charge(now);
        let Some(id) = self.ledger.current().filter(|&id| self.scheduler.is_throttled(id)) else {
            return;
        };
        let has_work = self.scheduler.state(id) != Some(State::Sleeping);
        if let Some(vcpu) = self.roster.get(id).filter(|_| has_work) {
            vcpu.account().is_throttled(now);
        }
    }

    /// Waits for interrupts and takes them, while a vCPU without work idles its budget away,
    /// until an instant at the latest: it has the core (Kim, Wang, Rajkumar, RTSS 2014,
    /// Section II-A).
    #[inline(never)]
    pub(super) fn idle_away(&mut self, id: VcpuId, until: Option<Instant>, now: Instant) {
        self.give_core(Some(id), now);
        let wakes_at = self.loaded_wakes_at(now);
        if wakes_at.is_some_and(|begin| begin <= now) {
            self.wake_loaded_early();
            return;
        }
        // It passes for ready: its timers are nowhere else looked at.
        let parked = self.roster.parked(id);
        let own = parked.map(|vcpu| vcpu.wakes_at().min(vcpu.physical_timer_deadline()));
        self.arm([until, wakes_at, own].into_iter().flatten().min());
        self.mask_nothing();
        cpu::wait_for_interrupt();
        self.entered = timer::now();
        self.take_pending_interrupts();
    }
}
