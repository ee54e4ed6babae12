//! A real-time vCPU gets its core ahead of its own timer.
//!
//! What a timer will do is known beforehand. EL2's own timer is therefore set a
//! *lead* before that of a vCPU that sleeps: the switch, the departure of those it
//! displaces, and whatever EL2 is about are over when the timer fires. Its guest
//! has executed WFI and must not notice, so EL2 waits in its stead, with its
//! registers on the hardware; then the timer is an interrupt without a switch.
//!
//! For the scheduler such a vCPU is ready: it has the core. It is *ahead* until it
//! has an interrupt that ends its WFI, or has to give way to one that displaces
//! it, or turns out to sleep on, its timer's interrupt being disabled.

use crate::arch::{cpu, timer};
use crate::pcpu::Pcpu;
use abi::status::vcpu_state;
use sched::{Instant, Members, State, VcpuId};

/// What comes before a guest that has the core.
pub enum Before {
    /// Nothing more.
    Nothing,
    /// Something was done: the scheduler decides anew.
    Decision,
    /// Something was done, and it is on the hardware.
    Guest,
}

impl Pcpu {
    /// Some vCPU has work to do first, or is ahead of its timer: `current`, which
    /// has the core, or another.
    #[inline(never)]
    pub fn before_guest(&mut self, current: VcpuId, until: Option<Instant>) -> Before {
        let slot = usize::from(current.0);
        for loser in Members(self.ahead & self.displaced_by[slot]) {
            self.fall_asleep_again(VcpuId(loser as u8));
        }
        if self.working >> slot & 1 == 1 {
            self.work(current, until);
            return Before::Decision;
        }
        if self.ahead >> slot & 1 == 1 {
            return self.wait_for_timer(current, until);
        }
        Before::Nothing
    }

    /// EL2's timer has fired for this vCPU, which has a lead.
    #[inline(never)]
    pub fn wake_before_timer(&mut self, id: VcpuId, now: Instant) {
        let Some(vcpu) = self.vcpus[usize::from(id.0)].as_deref() else { return };
        if vcpu.timer.deadline() > now {
            if self.scheduler.state(id) != Some(State::Sleeping) || !self.scheduler.matters(id) {
                return;
            }
            self.ahead |= 1 << id.0;
        }
        self.wake(id);
    }

    /// The core idles: when the loaded vCPU, if it sleeps here, should go ahead of
    /// its timer. Whom it displaces may lie asleep here.
    pub fn lead_of_loaded(&mut self, now: Instant) -> Option<Instant> {
        let vcpu = self.loaded.as_deref().filter(|vcpu| vcpu.lead != 0 && vcpu.on)?;
        let (id, lead) = (vcpu.id, vcpu.lead);
        let deadline = timer::loaded_deadline();
        let comes = deadline > now && deadline != timer::NEVER;
        let asleep = self.scheduler.state(id) == Some(State::Sleeping);
        (comes && asleep && !self.loaded_timer_is_held())
            .then(|| Instant(deadline.0.saturating_sub(lead)))
    }

    /// It goes ahead now.
    pub fn begin_lead_of_loaded(&mut self) {
        if let Some(id) = self.loaded.as_ref().map(|vcpu| vcpu.id) {
            self.ahead |= 1 << id.0;
            self.wake(id);
        }
    }

    /// A vCPU that is ahead leaves its core to another, and there may go ahead
    /// again. One that has got an interrupt meanwhile is awake.
    #[inline(never)]
    pub fn fall_asleep_again(&mut self, id: VcpuId) {
        if self.ahead >> id.0 & 1 == 0 {
            return;
        }
        self.ahead &= !(1 << id.0);
        let awake = if self.is_loaded(id) {
            self.loaded_has_interrupt()
        } else {
            self.vcpu(id).is_some_and(|vcpu| vcpu.has_news())
        };
        if !awake {
            self.sleep(id, vcpu_state::SLEEPING);
        }
    }

    /// This vCPU has the core and is ahead: puts it on the hardware, sends away
    /// whom it displaces, and waits until an interrupt would end its WFI, or
    /// something else is to be decided.
    fn wait_for_timer(&mut self, id: VcpuId, until: Option<Instant>) -> Before {
        let bit = 1 << id.0;
        if !self.is_loaded(id) {
            self.switch_to(id);
        }
        self.set_mask(self.mask_of_loaded());
        self.arm(until);
        if self.concerned != 0 {
            self.migrate(id, until.is_some());
        }
        loop {
            if self.loaded_has_interrupt() {
                self.ahead &= !bit;
                return if self.reschedule { Before::Decision } else { Before::Guest };
            }
            if self.reschedule {
                return Before::Decision;
            }
            if !self.loaded_timer_is_near() {
                self.ahead &= !bit;
                self.loaded_sleeps();
                return Before::Decision;
            }
            cpu::wait_for_interrupt();
            self.entered = timer::now();
            self.take_pending_interrupts();
            if !self.is_loaded(id) || self.ahead & bit == 0 {
                // Its VM was stopped, or it was sent away.
                self.reschedule = true;
                return Before::Decision;
            }
        }
    }

    /// Whether the loaded vCPU's timer is still to send its interrupt, within the
    /// lead. If the guest has that already, it is disabled or masked.
    fn loaded_timer_is_near(&mut self) -> bool {
        let Some(vcpu) = self.loaded.as_deref() else { return false };
        let wait = timer::loaded_deadline().since(timer::now());
        wait.0 <= vcpu.lead && !self.loaded_timer_is_held()
    }

    /// Whether the loaded guest has its timer's interrupt, and has not ended it.
    fn loaded_timer_is_held(&mut self) -> bool {
        let mut held = false;
        self.with_interface(|interface, gic, hw| {
            held = interface.park(gic, hw, timer::VIRTUAL_INTID);
            0
        });
        held
    }
}
