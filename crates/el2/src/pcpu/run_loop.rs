//! The loop that carries the scheduler's decisions out.

use super::{Pcpu, timer_advance::Before};
use crate::arch::{cpu, gic, timer};
use crate::shared::TAKEN;
use core::sync::atomic::Ordering;
use sched::{Instant, Message, VcpuId};

impl Pcpu {
    /// Records when a guest came to EL2.
    #[inline]
    pub fn begin_stay(&mut self) {
        self.entered = timer::now();
    }

    /// Schedules if needed, and books the stay at EL2, before a guest runs again.
    #[inline(always)]
    pub fn end_stay(&mut self) {
        if self.need_resched {
            self.schedule();
        }
        let stay = timer::now().since(self.entered);
        if let Some(vcpu) = self.roster.loaded_mut() {
            vcpu.account().note_stay(stay);
        }
        // Host tests check before each guest, which includes the first.
        #[cfg(feature = "checked")]
        self.check();
    }

    /// Carries out the scheduler's decisions until a guest is loaded and may run.
    pub fn schedule(&mut self) {
        loop {
            self.need_resched = false;
            let now = timer::now();
            let decision = self.scheduler.decide(now);
            if self.kernel_wait.may_happen() && self.waits(decision.run, decision.until, now) {
                return;
            }
            let Some(id) = decision.run else {
                if let Some(id) = decision.idles {
                    self.idle_away(id, decision.until, now);
                    continue;
                }
                let awaited = self.displacement.awaited();
                if !awaited.is_empty() {
                    self.release(awaited);
                }
                if !self.need_resched {
                    self.idle(decision.until, now);
                }
                continue;
            };
            self.give_core(Some(id), now);
            if !(self.jobs.pending() | self.timer_advance.early()).is_empty() {
                match self.before_guest(id, decision.until) {
                    Before::Nothing => {}
                    Before::Decision => continue,
                    Before::Guest => return,
                }
            }
            if !self.put_on_hardware(id, decision.until) {
                return;
            }
        }
    }

    /// Loads a vCPU that has the core, and makes others leave or come back because of it.
    /// Returns true if the scheduler has to be asked again: the vCPU may have left, or
    /// siblings that were released may be ready.
    #[inline(always)]
    pub(super) fn put_on_hardware(&mut self, id: VcpuId, until: Option<Instant>) -> bool {
        if !self.roster.is_loaded(id) {
            self.switch_to(id);
        }
        self.mask_for_loaded();
        self.arm(until);
        if self.visitors.candidates().is_empty() {
            return false;
        }
        self.migrate(id, until.is_some());
        self.need_resched
    }

    /// Does a piece of a vCPU's job, and takes the interrupts that came meanwhile.
    #[inline(never)]
    pub(super) fn work(&mut self, id: VcpuId, until: Option<Instant>) {
        self.arm(until);
        self.mask_nothing();
        self.work_on(id);
        self.take_pending_interrupts();
        // `longest_el2` of a vCPU does not contain jobs.
        self.entered = timer::now();
    }

    /// Waits for interrupts and takes them, until an instant at the latest: then some vCPU has
    /// a budget again.
    #[inline(never)]
    fn idle(&mut self, until: Option<Instant>, now: Instant) {
        self.give_core(None, now);
        let wakes_at = self.loaded_wakes_at(now);
        if wakes_at.is_some_and(|begin| begin <= now) {
            self.wake_loaded_early();
            return;
        }
        self.arm(until.into_iter().chain(wakes_at).min());
        self.mask_nothing();
        if self.displacement.tells_taken() {
            TAKEN[self.index].store(false, Ordering::Relaxed);
        }
        let more = self.carry_console();
        // Carrying may have woken a vCPU of this core.
        if !more && !self.need_resched {
            if self.consolidation.takes_part() {
                self.rest_or_leave();
            } else {
                self.wait();
            }
        }
        self.entered = timer::now();
        self.take_pending_interrupts();
        if more && self.need_resched {
            // A vCPU has the core now: the rest is written when EL2 next reads its mailbox.
            self.tell(self.index, Message::Consoles, 0, false);
        }
    }

    /// Waits for an interrupt; lets other cores know if they may send a vCPU here.
    #[inline(always)]
    pub(super) fn wait(&mut self) {
        if self.idle_news.is_wanted() {
            // The vCPU that had the core last may have left it for another one.
            let tell = self.idle_news.rests_since(self.ledger.since());
            self.wait_known_as_idle(tell);
        } else {
            cpu::wait_for_interrupt();
        }
    }

    /// Takes pending interrupts, until one wakes a vCPU: that vCPU must not wait for the
    /// others, which come when a guest has the core.
    pub(super) fn take_pending_interrupts(&mut self) {
        while cpu::interrupt_pending() {
            let intid = gic::acknowledge();
            if intid >= gic::SPECIAL {
                return;
            }
            self.take(intid);
            if self.need_resched {
                return;
            }
        }
    }
}
