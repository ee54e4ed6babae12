//! The loop that carries the scheduler's decisions out.

use super::{Pcpu, timer_advance::Before};
use crate::arch::gic::Doorbell;
use crate::arch::{cpu, gic, timer};
use crate::shared::TAKEN;
use core::sync::atomic::Ordering;
use sched::{Decision, Instant, Message, VcpuId};

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

    /// Carries out the scheduler's decisions until a guest is loaded and may run. Between two
    /// decisions the core looks for an interrupt, or a guest could have it decide for ever.
    pub fn schedule(&mut self) {
        let mut next = self.decide();
        while self.carry_out(&next) {
            self.decide_into(&mut next);
            // The vCPU that was chosen does not wait for interrupts that are nothing to it, nor for
            // more than a piece of what the others ask for.
            self.mask_for(next.0.run);
            self.need_resched = true;
            if self.take_pending_interrupt() {
                self.decide_into(&mut next);
            } else {
                self.need_resched = false;
            }
        }
    }

    /// Like [`Self::decide`], out of line, and in place: copying takes longer.
    #[inline(never)]
    fn decide_into(&mut self, next: &mut (Decision, Instant)) {
        *next = self.decide();
    }

    /// Asks the scheduler what to do, and tells when it was asked.
    #[inline(always)]
    fn decide(&mut self) -> (Decision, Instant) {
        self.need_resched = false;
        let now = timer::now();
        if !self.scheduler.has_extras() {
            return (self.scheduler.decide_without_extras(now), now);
        }
        // A vCPU that may be boosted always has an extra.
        let decision = if self.scheduler.has_boosts() {
            self.decide_with_boosts(now)
        } else {
            self.scheduler.decide_with_extras(now)
        };
        (decision.into(), now)
    }

    /// Carries out one decision of the scheduler. Returns true if it has to be asked again.
    #[inline(always)]
    fn carry_out(&mut self, next: &(Decision, Instant)) -> bool {
        let (decision, now) = (&next.0, next.1);
        if self.kernel_wait.may_happen() && self.waits(decision.run, now) {
            self.mask_for_loaded();
            return false;
        }
        let Some(id) = decision.run else {
            if self.jobs.has_pieces(self.known) {
                self.arm_out_of_line(decision.until);
                self.do_next_piece(self.known);
                return true;
            }
            if let Some(id) = decision.idles {
                self.idle_away(id, decision.until, now);
                return true;
            }
            let awaited = self.displacement.awaited();
            if !awaited.is_empty() {
                self.release(awaited);
            }
            if !self.need_resched {
                self.idle(decision.until, now, !awaited.is_empty());
            }
            return true;
        };
        if !(self.jobs.before_guest() | self.timer_advance.early()).is_empty() {
            match self.before_guest(id, now) {
                Before::Nothing => {}
                what => return self.do_before_guest(what, id, decision.until),
            }
        }
        self.give_core(Some(id), now);
        let again = self.put_on_hardware(id, decision.until);
        if again {
            cpu::synchronize();
        }
        again
    }

    /// Loads a vCPU that has the core, and makes others leave or come back because of it.
    /// Returns true if the scheduler has to be asked again: the vCPU may have left, or
    /// siblings that were released may be ready, or not all of its interrupts are listed yet.
    #[inline(always)]
    pub(super) fn put_on_hardware(&mut self, id: VcpuId, until: Option<Instant>) -> bool {
        let has_news = !self.roster.is_loaded(id) && self.switch_to(id);
        self.mask_for_loaded();
        self.arm(until);
        if has_news {
            self.list_news(id);
        }
        if !self.visitors.candidates().is_empty() {
            self.migrate(id, until.is_some());
        }
        self.need_resched
    }

    /// Does a piece of a vCPU's job, and takes the interrupts that came meanwhile.
    #[inline(never)]
    pub(super) fn work(&mut self, id: VcpuId, until: Option<Instant>) {
        self.arm_out_of_line(until);
        self.mask_nothing();
        if !self.gives_way() {
            self.work_on(id);
            self.take_pending_interrupts();
        }
        // `longest_el2` of a vCPU does not contain jobs.
        self.entered = timer::now();
    }

    /// Goes on to list the interrupts of the loaded vCPU, which has the core, or takes the interrupt
    /// for which that stopped: in turn, or a sibling that interrupts for ever would keep the vCPU
    /// from its guest. What the priority mask keeps pending waits.
    pub(super) fn go_on_listing(&mut self, id: VcpuId, until: Option<Instant>) {
        self.arm_out_of_line(until);
        self.mask_for_loaded();
        if self.gives_way() {
            return;
        }
        self.jobs.lists(id);
        // The interrupt that was taken may have had the rest listed.
        if self.roster.loaded().is_some_and(|vcpu| vcpu.has_news()) {
            self.with_interface(|interface, gic, hw| interface.sync(gic, hw));
        }
    }

    /// Returns true if the core may be wanted for something else: an interrupt pends, or the scheduler
    /// has to be asked, as one that was taken may have woken a vCPU.
    #[inline(always)]
    pub(super) fn is_wanted(&self) -> bool {
        // It looks in any case: paths are measured from one look to the next.
        cpu::interrupt_pending() | self.need_resched
    }

    /// Takes an interrupt that pends before a piece of work is done, unless it has just taken one.
    /// Returns true if it has taken one: then the scheduler has to be asked again.
    #[inline(always)]
    pub(super) fn gives_way(&mut self) -> bool {
        let pends = cpu::interrupt_pending();
        if !self.jobs.gives_way(pends) {
            return false;
        }
        self.need_resched = true;
        self.take_pending_interrupt()
    }

    /// Waits for interrupts and takes them, until an instant at the latest: then some vCPU has
    /// a budget again. `recalls`: vCPUs were called back. One of them has the core next, and
    /// while it is on its way there is time to take another's registers off the hardware.
    #[inline(never)]
    fn idle(&mut self, until: Option<Instant>, now: Instant, recalls: bool) {
        self.give_core(None, now);
        if recalls && !cpu::interrupt_pending() {
            self.unload();
        }
        let wakes_at = self.loaded_wakes_at(now);
        if let Some(begin) = wakes_at.filter(|begin| *begin <= now) {
            self.wake_loaded_early(begin);
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
            #[cfg(any(test, feature = "checked"))]
            self.check_idle();
            if self.consolidation.takes_part() {
                self.rest_or_leave();
            } else {
                self.wait();
            }
        }
        self.entered = timer::now();
        self.take_pending_interrupts();
        if more {
            // A vCPU may have the core next: the rest is written when EL2 next reads its mailbox.
            self.go_on_later(Message::Consoles, 0, Doorbell::Ordinary);
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
        while self.take_pending_interrupt() {
            if self.need_resched {
                return;
            }
            // What comes next was not delayed by what came before: this core looked.
            self.entered = timer::now();
        }
        if cpu::error_pending() {
            // Each WFI would end at once.
            self.end_error_of_loaded();
        }
    }

    /// Takes the most urgent interrupt that is pending. Returns false if there is none.
    #[inline(always)]
    fn take_pending_interrupt(&mut self) -> bool {
        if !cpu::interrupt_pending() {
            return false;
        }
        let intid = gic::acknowledge();
        if intid >= gic::SPECIAL {
            return false;
        }
        self.take(intid);
        cpu::synchronize();
        true
    }
}
