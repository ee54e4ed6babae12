//! Budgets: a vCPU idles what is left of its own away, or waits for the next.
//!
//! The scheduler keeps the accounts, and says when to ask it again. What is left to do here
//! is to wait in the name of a vCPU whose periodic server has budget and no work, and to
//! book the wait of one that has used its budget up. Only cores with an extra come by.

use super::Pcpu;
use crate::arch::{cpu, timer};
use sched::{Decision, Instant, State};

impl Pcpu {
    /// A decision was made on a core where some vCPU has an extra. Returns true if it is
    /// carried out with that: the vCPU that has the core idles.
    #[inline(never)]
    pub(super) fn carry_out_extras(&mut self, decision: &Decision, now: Instant) -> bool {
        self.book_throttling(now);
        let idles = decision.idles;
        if idles {
            self.idle_away(decision, now);
        }
        idles
    }

    /// The vCPU that had the core up to now may have used its budget up: it waits for the
    /// next.
    fn book_throttling(&mut self, now: Instant) {
        let Some(id) = self.ledger.current().filter(|&id| self.scheduler.is_throttled(id)) else {
            return;
        };
        let has_work = self.scheduler.state(id) != Some(State::Sleeping);
        if let Some(vcpu) = self.roster.get(id).filter(|_| has_work) {
            vcpu.account().is_throttled(now);
        }
    }

    /// Waits for interrupts and takes them, while a vCPU without work idles its budget away:
    /// it has the core (Kim, Wang, Rajkumar, RTSS 2014, Section II-A).
    fn idle_away(&mut self, decision: &Decision, now: Instant) {
        self.give_core(decision.run, now);
        let wakes_at = self.loaded_wakes_at(now);
        if wakes_at.is_some_and(|begin| begin <= now) {
            self.wake_loaded_early();
            return;
        }
        self.arm(decision.until.into_iter().chain(wakes_at).min());
        self.mask_nothing();
        cpu::wait_for_interrupt();
        self.entered = timer::now();
        self.take_pending_interrupts();
    }
}
