//! EL2's timer, and what happens when it fires; the guests' emulated timers.

use super::Pcpu;
use crate::arch::{cpu, gic, timer};
use crate::bug::bug;
use crate::parts::{Mask, NEVER};
use crate::shared::siblings;
use crate::status::trace::Kind;
use abi::MAX_VCPUS;
use abi::platform::ppi::PHYSICAL_TIMER;
use notes::{Rounds, each};
use sched::{Duration, Instant, VcpuId, VcpuSet};
use vgic::Effects;

impl Pcpu {
    /// Sets EL2's timer to the earliest of: the end of the quantum (`until`), or without one
    /// the end of the consolidation window; the emulated timer of the loaded vCPU; the timers
    /// of sleeping vCPUs that would change the decision.
    #[inline(always)]
    pub(super) fn arm(&mut self, until: Option<Instant>) {
        let first = until.unwrap_or(self.consolidation.look_at());
        self.arm_for(first, Instant(0));
    }

    /// Like [`Self::arm`], out of line: for ways on which no guest waits for it.
    #[inline(never)]
    pub(super) fn arm_out_of_line(&mut self, until: Option<Instant>) {
        self.arm(until);
    }

    /// Sets EL2's timer to `first`, or the earliest timer of a vCPU that does not come before
    /// `from`.
    #[inline(always)]
    fn arm_for(&mut self, mut first: Instant, from: Instant) {
        let mut consider = |deadline: Instant| {
            if deadline >= from {
                first = first.min(deadline);
            }
        };
        if let Some(loaded) = self.roster.loaded() {
            consider(loaded.physical_timer_deadline());
        }
        for id in self.scheduler.sleepers_that_matter() {
            // The virtual timer of the loaded one is on the hardware.
            let Some(vcpu) = self.roster.parked(id) else { continue };
            consider(vcpu.wakes_at());
            consider(vcpu.physical_timer_deadline());
        }
        if let Some(deadline) = self.deadlines.set(first) {
            timer::arm(deadline);
        }
    }

    /// Returns true if the vCPU that runs has a new budget, and the timer is set anew. What else
    /// is due makes it fire again at once.
    #[inline(always)]
    fn budget_is_renewed(&mut self) -> bool {
        notes::needs::<{ each::EXTRA }>();
        let now = timer::now();
        if self.consolidation.is_due(now) {
            return false;
        }
        let Some((id, until)) = self.scheduler.renew(now) else { return false };
        // It may have been chosen just now, and not be loaded yet.
        if let Some(vcpu) = self.roster.get(id) {
            vcpu.account().count_replenishment();
            self.trace.note(Kind::Replenish, id, 1, now);
        }
        self.arm(Some(until));
        true
    }

    /// Handles EL2's timer: wakes vCPUs whose timers are due, and looks at the load. If only
    /// the vCPU that runs has a new budget, it goes on.
    pub(super) fn timer_fired(&mut self) {
        if self.scheduler.has_servers() && self.budget_is_renewed() {
            return;
        }
        timer::arm(self.deadlines.fired());
        let now = timer::now();
        self.need_resched = false;
        self.look_at_timers(self.precedence.urgent(), now);
        let is_woken = self.need_resched;
        self.need_resched = true;
        if self.scheduler.has_servers() {
            self.book_and_look_further(is_woken, now);
        } else {
            self.look_further(is_woken, now);
        }
    }

    /// Books budgets before the rest of what EL2's timer is for. Out of line, as what is kept over that call takes registers
    /// that each visit for any interrupt would save.
    #[inline(never)]
    fn book_and_look_further(&mut self, is_woken: bool, now: Instant) {
        if is_woken & cpu::interrupt_pending() {
            // What waits for its budget is booked when this timer fires next, unless it has it by then.
            return;
        }
        self.book_throttling(now);
        if !is_woken && cpu::interrupt_pending() {
            self.look_later(self.known, now);
            return;
        }
        self.look_further(is_woken, now);
    }

    /// Looks at the load, and at the timers that are less urgent, unless one has woken a vCPU.
    #[inline(always)]
    fn look_further(&mut self, is_woken: bool, now: Instant) {
        if self.consolidation.is_due(now) {
            self.look_at_load(now);
        }
        let patient = self.precedence.patient();
        if is_woken || patient.is_empty() {
            // What is due of patient ones does not matter before that one sleeps: then this timer
            // is set for them.
            return;
        }
        if cpu::interrupt_pending() {
            self.look_later(patient, now);
        } else {
            self.look_at_timers(patient, now);
        }
    }

    /// Has timers that may be due looked at in a piece. That is noted, and not left to EL2's timer:
    /// it would fire again at once, before the interrupt for which that waits, so the guests would
    /// never run. It fires for what comes due later.
    #[inline(never)]
    fn look_later(&mut self, left: VcpuSet, now: Instant) {
        self.jobs.look_later(left);
        self.need_resched = true;
        self.arm_for(NEVER, now.after(Duration(1)));
    }

    /// Returns true if the interrupt that pends is taken before a vCPU that was woken has the core, as
    /// timers of these vCPUs are due, too. So it is where none was woken, or only patient ones may have been:
    /// a real-time vCPU that the interrupt wakes would wait for a decision and a switch to another.
    #[inline(never)]
    fn is_interrupt_first(&self, left: VcpuSet, now: Instant) -> bool {
        !self.need_resched
            || left.meets(self.precedence.patient())
            // The piece looks at the load, too.
            || self.consolidation.is_due(now)
            || self.are_due(left, now)
    }

    /// Returns true if timers of these vCPUs are due.
    fn are_due(&self, mut among: VcpuSet, now: Instant) -> bool {
        let mut rounds = Rounds::<MAX_VCPUS, { each::VCPU }>::begin();
        while let Some(id) = among.first() {
            rounds.pass();
            among.remove(id);
            let first = match self.roster.parked(id) {
                Some(vcpu) => vcpu.wakes_at().min(vcpu.physical_timer_deadline()),
                None => match self.roster.loaded().filter(|vcpu| vcpu.id() == id) {
                    Some(vcpu) => vcpu.physical_timer_deadline(),
                    None => continue,
                },
            };
            if first <= now {
                return true;
            }
        }
        false
    }

    /// Wakes those of these vCPUs whose timers are due. If an interrupt comes meanwhile, the rest of them
    /// follow after it, before any guest runs.
    #[inline(never)]
    pub(super) fn look_at_timers(&mut self, mut left: VcpuSet, now: Instant) {
        let mut rounds = Rounds::<MAX_VCPUS, { each::VCPU }>::begin();
        while let Some(id) = left.first() {
            rounds.pass();
            left.remove(id);
            let (level, advance) = match self.roster.parked_mut(id) {
                Some(vcpu) => {
                    let wakes = vcpu.wakes_at() <= now;
                    let advance = wakes.then(|| vcpu.timer_advance());
                    (vcpu.physical_timer_changes(now), advance)
                }
                // The virtual timer of the loaded one is on the hardware.
                None => match self.roster.get(id) {
                    Some(vcpu) => (vcpu.physical_timer_changes(now), None),
                    None => continue,
                },
            };
            if level.is_none() && advance.is_none() {
                continue;
            }
            if let Some(level) = level {
                self.follow_physical_timer(id, level);
            }
            match advance {
                None => {}
                Some(0) => self.wake(id),
                Some(_) => self.wake_before_timer(id, now),
            }
            if !left.is_empty() && cpu::interrupt_pending() {
                if self.is_interrupt_first(left, now) {
                    self.look_later(left, now);
                }
                return;
            }
        }
    }

    /// Has the new level of a vCPU's physical timer delivered before any guest runs. Out of line: few
    /// guests use it.
    #[inline(never)]
    fn follow_physical_timer(&mut self, id: VcpuId, level: bool) {
        if let Some((vm, effects)) = self.set_physical_timer(id, level)
            && let Some(loaded) = self.notify_each(vm, siblings(effects.notify))
        {
            self.list_later(loaded);
        }
    }

    /// Writes a register of the loaded vCPU's physical timer, of those with `op2` from 0 to 2.
    pub fn write_physical_timer(&mut self, op2: u64, value: u64) {
        let Some(vcpu) = self.roster.loaded_mut() else {
            return bug!("a timer is written without a loaded vCPU");
        };
        let now = timer::now();
        let id = vcpu.id();
        vcpu.write_physical_timer(op2, value, now);
        self.update_physical_timer(id, now);
        // EL2's timer has to be set anew.
        self.need_resched = true;
    }

    /// Brings the interrupt line of a vCPU's physical timer up to date, if this core owns
    /// the vCPU.
    pub(super) fn update_physical_timer(&mut self, id: VcpuId, now: Instant) {
        if let Some((vm, effects)) = self.physical_timer_effects(id, now) {
            self.notify(vm, effects);
        }
    }

    /// Sets the interrupt line of a vCPU's physical timer, if it changes and this core owns the
    /// vCPU. Returns its VM, and what that needs.
    pub(super) fn physical_timer_effects(
        &mut self,
        id: VcpuId,
        now: Instant,
    ) -> Option<(usize, Effects)> {
        let level = self.roster.get(id)?.physical_timer_changes(now)?;
        self.set_physical_timer(id, level)
    }

    /// Sets the interrupt line of a vCPU's physical timer, if this core owns the vCPU. Returns its
    /// VM, and what that needs.
    fn set_physical_timer(&mut self, id: VcpuId, level: bool) -> Option<(usize, Effects)> {
        let vcpu = self.roster.get(id)?;
        let (vm, index) = (vcpu.vm(), vcpu.index());
        Some((vm, vcpu.config().shared().gic.set_level(index, PHYSICAL_TIMER, level)))
    }

    /// Lets through what the loaded vCPU may be interrupted by.
    #[inline(always)]
    pub(super) fn mask_for_loaded(&mut self) {
        let keeps = self.roster.loaded().map_or(Mask::Nothing, |vcpu| vcpu.config().keeps());
        if let Some(mask) = self.mask.for_guest(keeps) {
            set_mask(mask);
        }
    }

    /// Lets through what may interrupt a vCPU that is chosen, and everything if there is none.
    pub(super) fn mask_for(&mut self, id: Option<VcpuId>) {
        let vcpu = id.and_then(|id| self.roster.get(id));
        let keeps = vcpu.map_or(Mask::Nothing, |vcpu| vcpu.config().keeps());
        if let Some(mask) = self.mask.for_guest(keeps) {
            set_mask(mask);
        }
    }

    /// Lets all interrupts through.
    #[inline(always)]
    pub(super) fn mask_nothing(&mut self) {
        if let Some(mask) = self.mask.open() {
            set_mask(mask);
        }
    }
}

#[inline(always)]
fn set_mask(mask: Mask) {
    gic::set_mask(match mask {
        Mask::Nothing => gic::MASK_NOTHING,
        Mask::Ordinary => gic::MASK_ORDINARY,
        Mask::LowerRealtime => gic::MASK_LOWER_REALTIME,
    });
}
