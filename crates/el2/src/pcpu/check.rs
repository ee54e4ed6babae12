//! What must hold on a core whenever a guest is about to run, or the core to idle.

use super::Pcpu;
use crate::parts::{Mask, NEVER};
use crate::shared::{BOARD, EPOCH, SIGNS};
use crate::vcpu::budget;
use core::sync::atomic::Ordering;
use sched::{Instant, Member, VcpuId, VcpuSet};

impl Pcpu {
    /// Returns the vCPUs that this core owns. It looks only at those that may come here,
    /// because it runs after each exit.
    pub(super) fn owned(&self) -> VcpuSet {
        self.known.iter().filter(|&id| self.roster.owns(id)).collect()
    }

    /// Stops if an invariant of this core, or of one of its parts, does not hold before a guest
    /// runs.
    pub fn check(&self) {
        assert!(self.loaded_is_current(), "the guest that runs is not the one that has the core");
        let partly = self.roster.loaded().is_some_and(|vcpu| vcpu.is_partly_listed());
        assert!(!partly, "a guest runs whose interrupts are not all listed");
        self.mask.check(self.roster.loaded().map_or(Mask::Nothing, |vcpu| vcpu.config().keeps()));
        self.check_at_rest();
    }

    /// Stops if an invariant of this core, or of one of its parts, does not hold before it waits
    /// for an interrupt.
    pub(super) fn check_idle(&self) {
        assert_eq!(self.ledger.current(), None, "a vCPU has the core, which idles");
        let ready = self.known.iter().find(|&id| self.scheduler.is_ready(id));
        assert_eq!(ready, None, "the core idles, and this vCPU could run");
        self.check_at_rest();
    }

    /// What does not depend on whether a guest is to run.
    fn check_at_rest(&self) {
        let owned = self.owned();
        for id in owned {
            let place = BOARD.find(id);
            assert_eq!(place, self.index, "vCPU {} is owned here, but said to be there", id.0);
        }
        self.scheduler.check();
        for id in owned {
            let raised = self.roster.peek(id).is_some_and(|vcpu| vcpu.reasons_to_be_raised() > 0);
            let in_gcs = self.scheduler.in_gcs(id);
            let marked = in_gcs && self.system.vcpu(id.number()).is_markable();
            assert_eq!(in_gcs, raised || marked, "vCPU {} and its ceiling", id.0);
            let is_on = self.roster.peek(id).is_some_and(|vcpu| vcpu.is_on());
            assert!(!marked || is_on, "vCPU {} is off, and marked", id.0);
        }
        self.known.iter().for_each(|id| self.check_budget(id, owned));
        self.roster.check();
        self.ledger.check();
        self.jobs.check(owned);
        self.displacement.check();
        self.visitors.check(owned);
        self.kernel_wait.check(self.roster.loaded_id());
        self.timer_advance.check(owned);
        // In the checked build tests judge times, which contain what its checks take.
        #[cfg(test)]
        for id in self.timer_advance.early() {
            let sleeping = Some(sched::State::Sleeping);
            assert_ne!(self.scheduler.state(id), sleeping, "it was woken early");
        }
        self.consolidation.check();
        self.coordination.check();
        self.idle_news.check(self.ledger.since());
        self.watchdog.check(Instant(SIGNS[self.index].load(Ordering::Relaxed)));
        self.deadlines.check();
        self.precedence.check();
        let armed = self.deadlines.armed();
        for id in self.scheduler.sleepers_that_matter() {
            let Some(vcpu) = self.roster.parked(id) else { continue };
            assert!(armed <= vcpu.wakes_at(), "the timer fires after vCPU {} is due", id.0);
            let physical = vcpu.physical_timer_deadline();
            assert!(armed <= physical, "the timer fires after the other one of vCPU {}", id.0);
        }
        let loaded = self.roster.loaded();
        let physical = loaded.map_or(NEVER, |vcpu| vcpu.physical_timer_deadline());
        assert!(armed <= physical, "the timer fires after that of the loaded vCPU is due");
    }

    /// Stops if the account of a vCPU is not where the vCPU is, and there once; if its periods
    /// do not begin at multiples of one length from the instant that all count from; or if it has
    /// more than a whole budget.
    fn check_budget(&self, id: VcpuId, owned: VcpuSet) {
        let VcpuId(number) = id;
        let account = self.scheduler.account(id);
        let opened = budget(self.system, id, Instant(EPOCH.load(Ordering::Relaxed)));
        let is_here = opened.is_some() && owned.has(id);
        assert_eq!(account.is_some(), is_here, "the account of vCPU {number} is where that is not");
        let packed = self.roster.peek(id).is_some_and(|vcpu| vcpu.has_budget_packed());
        assert!(!packed, "vCPU {number} has come, and has its budget still with it");
        if let (Some(account), Some(opened)) = (account, opened) {
            let (server, first) = (account.server(), opened.replenished_at());
            let since = account.replenished_at().since(first).0;
            assert_eq!(server, opened.server(), "the server of vCPU {number}");
            assert!(since.is_multiple_of(server.period.0), "vCPU {number}: periods have moved");
            assert!(account.left() <= server.budget, "vCPU {number} has more than its budget");
        }
    }
}
