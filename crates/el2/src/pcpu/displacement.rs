//! Carrying out what policies say ([`sched::policy`]).
//!
//! A policy is asked when a vCPU that displaces others has the core: its registers are
//! on the hardware by then, and its guest is next. Which vCPUs it displaces was worked
//! out at the start; a core none of whose vCPUs has a policy with a say finds that there
//! are no migration candidates, and that is all it pays.

use super::Pcpu;
use super::visitors::{destination, destination_among, idle_elsewhere};
use crate::shared::{BOARD, TAKEN};
use core::sync::atomic::Ordering;
use sched::policy::{Displaced, Then};
use sched::{Recall, VcpuId, VcpuSet};

impl Pcpu {
    /// This vCPU has the core and is on the hardware: carries out which vCPUs leave or
    /// come back because of it. `crowded`: equals are ready, too.
    #[inline(never)]
    pub(super) fn migrate(&mut self, current: VcpuId, crowded: bool) {
        let switch = self.displacement.on_switch(current);
        if !switch.free.is_empty() {
            self.release(switch.free);
        }
        if switch.taken {
            for id in switch.displaced {
                self.displace(id);
            }
            self.need_resched = false;
        }
        if self.displacement.tells_taken() {
            TAKEN[self.index].store(switch.taken, Ordering::Relaxed);
        }
        if !self.visitors.present().is_empty() {
            self.make_room(current, crowded);
        }
    }

    /// Another vCPU has the core of this one: does what its policy says.
    fn displace(&mut self, id: VcpuId) {
        // It may have left before, for good: then it is not awaited.
        let Some(parked) = self.roster.parked(id) else { return };
        let config = parked.config();
        if !parked.is_on() || self.jobs.has(id) {
            return;
        }
        let idle = idle_elsewhere(config);
        let seen = Displaced { ready: self.scheduler.is_ready(id), idle_core: !idle.is_empty() };
        let then = config.when_displaced(seen);
        match then {
            Then::Stay => {}
            Then::StopOthers => {
                self.displacement.awaits(id);
                self.set_stalled(id, true);
            }
            Then::LeaveUntilFree | Then::LeaveForIdle | Then::Leave => {
                let to = destination_among(config, idle, seen.ready);
                if to == self.index {
                    // There is nowhere to go, or no longer.
                    return;
                }
                // One that just leaves comes back by itself.
                if then != Then::Leave {
                    self.displacement.awaits(id);
                }
                self.hand_over(id, to);
            }
        }
    }

    /// The core is free for these vCPUs again.
    #[inline(never)]
    pub(super) fn release(&mut self, free: VcpuSet) {
        let recalled = self.displacement.release(free);
        if !recalled.is_empty() {
            BOARD.want(recalled);
        }
        for id in free {
            match BOARD.recall(id, self.index) {
                Recall::Here => self.set_stalled(id, false),
                Recall::Asked { core, wake: true } => self.ring(core, false),
                Recall::Asked { wake: false, .. } => {}
            }
        }
    }

    /// An interrupt came for a vCPU of this core: if that lies displaced, its policy may
    /// want it to leave after all.
    #[inline(never)]
    pub(super) fn interrupted(&mut self, id: VcpuId) {
        let Some(current) = self.ledger.current() else { return };
        // One that has a job for its VM stays, as in [`Self::displace`]: elsewhere its guest
        // would run without it.
        if !(self.displacement.losers(current) - self.jobs.pending()).has(id) {
            return;
        }
        // It does not lie here if its registers are still on the hardware.
        let Some(parked) = self.roster.parked(id) else { return };
        let config = parked.config();
        if config.policy().interrupted() == Then::Leave {
            let to = destination(config);
            if to != self.index {
                self.depart(id, to);
            }
        }
    }
}
