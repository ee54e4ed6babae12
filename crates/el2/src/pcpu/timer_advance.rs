//! A real-time vCPU gets its core before its own timer fires.
//!
//! What a timer will do is known beforehand. EL2's own timer is therefore set earlier
//! than that of a vCPU that sleeps, by its *advance*: the switch, the departure of those
//! it displaces, and whatever EL2 is about are over when the timer fires. Its guest has
//! executed WFI and must not notice, so EL2 waits in its stead, with its registers on the
//! hardware; then the timer is an interrupt without a switch.
//!
//! For the scheduler such a vCPU is ready: it has the core. It was *woken early* until it
//! has an interrupt that ends its WFI, or has to give way to one that displaces it, or
//! turns out to sleep on, its timer's interrupt being disabled.

use super::Pcpu;
use crate::arch::{cpu, timer};
use crate::bug::bug;
use crate::parts::wakes_at;
use abi::status::vcpu_state;
use sched::{Instant, State, VcpuId};

/// What comes before a guest that has the core.
pub(super) enum Before {
    /// Nothing more.
    Nothing,
    /// Something was done: the scheduler decides anew.
    Decision,
    /// Something was done, and the vCPU is on the hardware.
    Guest,
}

impl Pcpu {
    /// Some vCPU has a job, or was woken early: `current`, which has the core, or another.
    #[inline(never)]
    pub(super) fn before_guest(&mut self, current: VcpuId, until: Option<Instant>) -> Before {
        for loser in self.timer_advance.early() & self.displacement.losers(current) {
            self.fall_asleep_again(loser);
        }
        if self.jobs.has(current) {
            self.work(current, until);
            return Before::Decision;
        }
        if self.timer_advance.early().has(current) {
            return self.wait_for_timer(current, until);
        }
        Before::Nothing
    }

    /// EL2's timer has fired for this vCPU, which has an advance.
    #[inline(never)]
    pub(super) fn wake_before_timer(&mut self, id: VcpuId, now: Instant) {
        let Some(vcpu) = self.roster.parked(id) else {
            return bug!("a vCPU's timer is due that is not parked here");
        };
        if vcpu.timer_deadline() > now {
            if self.scheduler.state(id) != Some(State::Sleeping) || !self.scheduler.matters(id) {
                return;
            }
            self.timer_advance.begin(id);
        }
        self.wake(id);
    }

    /// The core idles. Returns when the loaded vCPU, if it sleeps here, has to be woken
    /// early: those that it displaces may lie asleep here.
    pub(super) fn loaded_wakes_at(&mut self, now: Instant) -> Option<Instant> {
        let vcpu = self.roster.loaded()?;
        let (id, advance) = (vcpu.id(), vcpu.config().timer_advance());
        if advance == 0 || !vcpu.is_on() {
            return None;
        }
        let wakes_at = wakes_at(timer::loaded_deadline(), advance, now)?;
        let asleep = self.scheduler.state(id) == Some(State::Sleeping);
        (asleep && !self.loaded_timer_is_held()).then_some(wakes_at)
    }

    /// The loaded vCPU is woken early, now.
    pub(super) fn wake_loaded_early(&mut self) {
        if let Some(id) = self.roster.loaded_id() {
            self.timer_advance.begin(id);
            self.wake(id);
        }
    }

    /// A vCPU that was woken early leaves its core to another, and there may be woken
    /// early again. One that has got an interrupt meanwhile is awake.
    #[inline(never)]
    pub(super) fn fall_asleep_again(&mut self, id: VcpuId) {
        if !self.timer_advance.end(id) {
            return;
        }
        let awake = if self.roster.is_loaded(id) {
            self.loaded_has_interrupt()
        } else {
            self.roster.get(id).is_some_and(|vcpu| vcpu.has_news())
        };
        if !awake {
            self.sleep(id, vcpu_state::SLEEPING);
        }
    }

    /// This vCPU has the core and was woken early: puts it on the hardware, sends away
    /// those that it displaces, and waits until an interrupt would end its WFI, or
    /// something else is to be decided.
    fn wait_for_timer(&mut self, id: VcpuId, until: Option<Instant>) -> Before {
        let _ = self.put_on_hardware(id, until);
        loop {
            if self.loaded_has_interrupt() {
                self.timer_advance.end(id);
                return if self.need_resched { Before::Decision } else { Before::Guest };
            }
            if self.need_resched {
                return Before::Decision;
            }
            if !self.loaded_timer_is_near() {
                self.timer_advance.end(id);
                self.loaded_sleeps();
                return Before::Decision;
            }
            cpu::wait_for_interrupt();
            self.entered = timer::now();
            self.take_pending_interrupts();
            if !self.roster.is_loaded(id) || !self.timer_advance.early().has(id) {
                // Its VM was stopped, or it was sent away.
                self.need_resched = true;
                return Before::Decision;
            }
        }
    }

    /// Returns true if the loaded vCPU's timer is still to send its interrupt, within the
    /// advance. If the guest has that already, it is disabled or masked.
    fn loaded_timer_is_near(&mut self) -> bool {
        let Some(vcpu) = self.roster.loaded() else {
            bug!("a vCPU that waits for its timer is not loaded");
            return false;
        };
        let wait = timer::loaded_deadline().since(timer::now());
        wait.0 <= vcpu.config().timer_advance() && !self.loaded_timer_is_held()
    }

    /// Returns true if the loaded guest has its timer's interrupt, and has not ended it.
    fn loaded_timer_is_held(&mut self) -> bool {
        let mut held = false;
        self.with_interface(|interface, gic, hw| {
            held = interface.park(gic, hw, timer::VIRTUAL_INTID);
            0
        });
        held
    }
}
