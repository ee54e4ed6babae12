//! Budgets: a vCPU idles what is left of its own away, or waits for the next.
//!
//! The scheduler keeps the accounts, and says when to ask it again. What is left to do here
//! is to wait in the name of a vCPU whose periodic server has budget and no work, and to
//! book the wait of those that have used their budgets up.

use super::Pcpu;
use super::notes::note_budget;
use crate::arch::{cpu, timer};
use crate::status::trace::{Kind, Trace};
use crate::vcpu::Vcpu;
use notes::{Bounded, each};
use sched::{Instant, VcpuId};

/// Books the wait of a vCPU that has used its budget up, with work left, unless it waits already.
pub(super) fn book_throttle(vcpu: &mut Vcpu, trace: &mut Trace, now: Instant) {
    let throttled = vcpu.account().throttle(now);
    if Trace::IS_ON && throttled {
        trace.note(Kind::Throttle, vcpu.id(), 0, now);
    }
}

impl Pcpu {
    /// EL2's timer has fired on a core where some vCPU has a budget: books the wait of each
    /// vCPU that has used its own up, with work left.
    #[inline(never)]
    pub(super) fn book_throttling(&mut self, now: Instant) {
        notes::needs::<{ each::EXTRA }>();
        // Before the accounts are charged, for some are replenished by that.
        self.book_throttled(now);
        self.scheduler.charge(now);
        self.book_throttled(now);
        for id in self.known {
            self.show_budget(id, now);
        }
    }

    /// Shows what happened to the budget of a vCPU, and records it.
    #[inline(always)]
    pub(super) fn show_budget(&mut self, id: VcpuId, now: Instant) {
        if let Some(account) = self.scheduler.account(id)
            && let Some(vcpu) = self.roster.get(id)
        {
            let new = vcpu.account().show(account.counts());
            note_budget(&mut self.trace, id, account, new, now);
        }
    }

    /// Shows what happened to the budget of a vCPU that goes on no more, for the trace: EL2's timer
    /// may fire no earlier than when a new period has ended an overrun.
    #[cold]
    #[inline(never)]
    pub(super) fn show_budget_of_stopped(&mut self, id: VcpuId, now: Instant) {
        notes::needs::<{ each::EXTRA }>();
        self.show_budget(id, now);
    }

    fn book_throttled(&mut self, now: Instant) {
        for id in self.scheduler.throttled() {
            if let Some(vcpu) = self.roster.get(id) {
                book_throttle(vcpu, &mut self.trace, now);
            }
        }
    }

    /// Waits for interrupts and takes them, while a vCPU without work idles its budget away,
    /// until an instant at the latest (Kim, Wang, Rajkumar, RTSS 2014, Section II-A). The
    /// time is its own, but it has the core no longer than that: an interrupt wakes it as it
    /// wakes any that sleeps.
    #[inline(never)]
    pub(super) fn idle_away(&mut self, id: VcpuId, until: Option<Instant>, now: Instant) {
        notes::needs::<{ each::EXTRA }>();
        if self.ledger.is_current(id) {
            // It has just gone to sleep, and is not preempted.
            self.end_own_turn(id, now);
        } else {
            self.free_core(now);
        }
        let wakes_at = self.loaded_wakes_at(now);
        if let Some(begin) = wakes_at.filter(|begin| *begin <= now) {
            self.wake_loaded_early(begin);
            return;
        }
        // It passes for ready: its timers are nowhere else looked at.
        let parked = self.roster.parked(id);
        let own = parked.map(|vcpu| vcpu.wakes_at().min(vcpu.physical_timer_deadline()));
        self.arm_out_of_line([until, wakes_at, own].into_iter().at_most::<3>().flatten().min());
        self.mask_nothing();
        // What had the core until now was no vCPU, and not for any time.
        let _ = self.ledger.give(Some(id), now);
        self.trace.note(Kind::Run, id, 1, now);
        cpu::wait_for_interrupt();
        self.entered = timer::now();
        self.end_own_turn(id, self.entered);
        self.take_pending_interrupts();
    }

    /// Takes the core from the vCPU that has it, and does not wait for it.
    fn end_own_turn(&mut self, id: VcpuId, now: Instant) {
        if let Some(turn) = self.ledger.give(None, now)
            && let Some(vcpu) = self.roster.get(id)
        {
            vcpu.account().book(turn.took);
            self.trace.note(Kind::Stop, id, 0, now);
        }
    }
}
