//! Carrying out what policies say ([`sched::policy`]).
//!
//! A policy is asked when a vCPU that displaces others has the core: its registers are
//! on the hardware by then, and its guest runs next. Which vCPUs it displaces was computed
//! when the core started. A core without migration candidates only tests for that.

use super::Pcpu;
use super::visitors::{destination, destination_among, idle_elsewhere};
use crate::arch::context::General;
use crate::arch::gic::Doorbell;
use crate::arch::{cpu, timer};
use crate::bug::bug;
use crate::shared::{BOARD, TAKEN};
use abi::MAX_VCPUS;
use core::sync::atomic::Ordering;
use notes::{Rounds, each};
use sched::policy::{Choice, Displaced, Mode, Then};
use sched::{Recall, VcpuId, VcpuSet};

impl Pcpu {
    /// Makes vCPUs leave or come back because `current` has the core and is loaded.
    /// `ends`: the turn or the budget of `current` ends.
    #[inline(never)]
    pub(super) fn migrate(&mut self, current: VcpuId, ends: bool) {
        notes::needs::<{ each::CANDIDATE }>();
        let asked = self.need_resched;
        let switch = self.displacement.on_switch(current);
        if !switch.free.is_empty() {
            self.release(switch.free);
        }
        if self.displacement.tells_taken() {
            // First: one that leaves by this switch may ask.
            TAKEN[self.index].store(switch.taken, Ordering::Relaxed);
        }
        if switch.taken {
            let mut left = switch.displaced;
            let patient = self.displacement.patient();
            if !patient.is_empty() && self.waits_first(current, left) {
                left -= patient;
            }
            let mut rounds = Rounds::<MAX_VCPUS, { each::VCPU }>::begin();
            while let Some(id) = left.first() {
                rounds.pass();
                left.remove(id);
                if self.displace(id) && !left.is_empty() && cpu::interrupt_pending() {
                    // The others are asked when `current` has the core after that interrupt.
                    self.need_resched = true;
                    return;
                }
            }
            // That vCPUs have left changes nothing for `current`, which may not be ready to enter.
            self.need_resched = asked || self.jobs.before_guest().has(current);
        } else if let Some(winner) = self.displacement.take_observed() {
            self.learn(winner, current);
        }
        if !self.visitors.present().is_empty() {
            self.make_room(current, ends);
        }
    }

    /// Returns true if what `current` displaces and is patient waits before it leaves. Then it is asked
    /// again when EL2's timer fires, if some of it is `left` on this core. Out of line: under most
    /// policies nothing is patient.
    #[inline(never)]
    fn waits_first(&mut self, current: VcpuId, left: VcpuSet) -> bool {
        notes::needs::<{ each::CANDIDATE }>();
        let patient = self.displacement.patient();
        if !self.displacement.losers(current).meets(patient) {
            return false;
        }
        self.displacement.observe(current);
        let foreseen = self.timer_advance.early().has(current);
        let Some(vcpu) = self.roster.loaded_mut() else {
            bug!("a vCPU has the core, and none is loaded");
            return false;
        };
        let until = match vcpu.activations().choose(self.ledger.since(), foreseen) {
            Choice::LeaveAfter(until) if timer::now() >= until => return false,
            Choice::LeaveAfter(until) | Choice::WaitUntil(until) => until,
        };
        if left.meets(patient)
            && let Some(deadline) = self.deadlines.add(until)
        {
            timer::arm(deadline);
        }
        true
    }

    /// Learns from what has displaced others: `current` has the core, and displaces none.
    #[inline(never)]
    fn learn(&mut self, winner: VcpuId, current: VcpuId) {
        notes::needs::<{ each::CANDIDATE }>();
        let stayed = self.displacement.losers(winner).has(current);
        // It may have left since it had the core.
        let Some(vcpu) = self.roster.parked_mut(winner) else { return };
        if stayed {
            // It is loaded, and goes on where it was.
            let in_kernel = General::kernel_mode() != 0;
            vcpu.activations().meets(if in_kernel { Mode::Kernel } else { Mode::User });
        }
        let ran = vcpu.account().ran();
        vcpu.activations().learn(ran, self.displacement.patience());
    }

    /// Learns in which mode the loaded vCPU has met one that it displaces.
    #[inline(never)]
    fn meets(&mut self, mode: Mode) {
        if let Some(vcpu) = self.roster.loaded_mut() {
            vcpu.activations().meets(mode);
        }
    }

    /// Does what the policy of a vCPU says whose core another vCPU has. Returns true if it leaves.
    fn displace(&mut self, id: VcpuId) -> bool {
        // It may have left earlier, without a recall: then it is not awaited.
        let Some(parked) = self.roster.parked(id) else { return false };
        let config = parked.config();
        if !parked.is_on() || self.jobs.has(id) {
            return false;
        }
        let idle = idle_elsewhere(config);
        let seen = Displaced { ready: self.scheduler.is_ready(id), idle_core: !idle.is_empty() };
        let then = config.when_displaced(seen);
        match then {
            Then::Stay => false,
            Then::StopOthers => {
                self.displacement.awaits(id);
                self.set_stalled(id, true);
                true
            }
            Then::LeaveUntilFree | Then::LeaveForIdle | Then::Leave | Then::LeaveIfItPays => {
                let to = destination_among(config, idle, seen.ready);
                if then == Then::LeaveIfItPays {
                    let mode = parked.mode();
                    self.meets(mode);
                }
                if to == self.index {
                    // There is nowhere to go, or no longer.
                    return false;
                }
                // After `Leave` a vCPU comes back without a recall.
                if then != Then::Leave {
                    self.displacement.awaits(id);
                }
                self.hand_over(id, to);
                true
            }
        }
    }

    /// Recalls these vCPUs, or lets their siblings go on: the core is free for them again.
    #[inline(never)]
    pub(super) fn release(&mut self, free: VcpuSet) {
        notes::needs::<{ each::CANDIDATE }>();
        let recalled = self.displacement.release(free);
        if !recalled.is_empty() {
            BOARD.want(recalled);
        }
        for id in free {
            match BOARD.recall(id, self.index) {
                Recall::Here => self.set_stalled(id, false),
                Recall::Asked { core, wake: true } => self.ring(core, Doorbell::Ordinary),
                Recall::Asked { wake: false, .. } => {}
            }
        }
    }

    /// Applies the interrupt rule: a vCPU of this core that is displaced leaves now, if its
    /// policy says so, because an interrupt came for it. Returns true if it has left.
    #[inline(always)]
    #[must_use]
    pub(super) fn interrupted(&mut self, id: VcpuId) -> bool {
        notes::needs::<{ each::CANDIDATE }>();
        // No vCPU is displaced while none has the core.
        let Some(current) = self.ledger.current() else { return false };
        // A vCPU with a job stays, as in [`Self::displace`]: elsewhere its guest would run
        // before the job is done.
        if !(self.displacement.losers(current) - self.jobs.pending()).has(id) {
            return false;
        }
        // A vCPU whose registers are still on the hardware does not leave.
        let Some(parked) = self.roster.parked(id) else { return false };
        let config = parked.config();
        if config.policy().interrupted() != Then::Leave {
            return false;
        }
        let to = destination(config);
        if to == self.index {
            return false;
        }
        self.hand_over_parked(id, to);
        true
    }
}
