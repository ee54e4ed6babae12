//! Boosts: what guests say of how urgent it is what they run, and what their interrupts say.
//!
//! A guest says it by calls, or in its line ([`abi::preemption::Line`]), which EL2 reads when it
//! decides which vCPU has the core: it costs the guest no exit. Where a guest says nothing, each
//! interrupt boosts its vCPU for a window. The scheduler keeps all limits ([`sched::Boost`]).

use super::Pcpu;
use crate::arch::timer;
use crate::bug::bug;
use crate::parts::NEVER;
use abi::service::{BUSY, INVALID_PARAMETER, NOT_ALLOWED, NOT_SUPPORTED, boost};
use core::sync::atomic::Ordering;
use notes::each;
use sched::{Compact, Instant, Member, Reported, VcpuId};

/// The priorities of Linux's real-time processes.
const PRIORITIES: core::ops::RangeInclusive<u64> = 1..=99;
/// X1 of a call: the calling vCPU.
const MYSELF: u64 = u64::MAX;

/// What a guest says of what a vCPU runs; none: nothing urgent.
type Report = Option<u64>;

impl Pcpu {
    /// Carries out what a guest says of what one of its vCPUs runs. Returns the answer to that call.
    #[inline(never)]
    pub fn boost(&mut self, which: u64, policy: u64, priority: u64) -> i64 {
        let report = match policy {
            boost::NORMAL if priority == 0 => None,
            boost::FIFO | boost::RR if PRIORITIES.contains(&priority) => {
                Some(policy | priority << 8)
            }
            _ => return INVALID_PARAMETER,
        };
        let Some(vcpu) = self.roster.loaded() else {
            bug!("a call without a loaded vCPU");
            return NOT_SUPPORTED;
        };
        let table = self.table(vcpu.vm());
        let id = match which {
            MYSELF => vcpu.id(),
            index if index < u64::from(table.vcpu_count) => {
                VcpuId::numbered(usize::from(table.vcpu_first) + index as usize)
            }
            _ => return INVALID_PARAMETER,
        };
        if !self.system.vcpu(id.number()).may_be_boosted() {
            NOT_SUPPORTED
        } else if !self.roster.owns(id) {
            NOT_ALLOWED
        } else {
            let reported = self.follow_report(id, report, timer::now());
            self.need_resched |= reported == Reported::Decide;
            if reported == Reported::Refused { BUSY } else { 0 }
        }
    }

    /// Boosts a vCPU or ends its boost, as its guest says.
    fn follow_report(&mut self, id: VcpuId, report: Report, now: Instant) -> Reported {
        notes::needs::<{ each::BOOST }>();
        let reported = match report {
            Some(_) => self.scheduler.boost(id, now),
            None if self.scheduler.end_boost(id) => Reported::Decide,
            None => Reported::Stands,
        };
        if let Some(vcpu) = self.roster.get(id) {
            vcpu.account().count_report(report.unwrap_or(0), reported == Reported::Refused);
        }
        reported
    }

    /// Ends a vCPU's boost: it is switched off.
    pub(super) fn end_boost(&mut self, id: VcpuId) {
        self.need_resched |= self.scheduler.end_boost(id);
    }

    /// Asks the scheduler what to do, where vCPUs may be boosted.
    #[cold]
    #[inline(never)]
    pub(super) fn decide_with_boosts(&mut self, now: Instant) -> Compact {
        notes::needs::<{ each::BOOST }>();
        self.follow_line(now);
        self.foresee_rise();
        let mut decision = self.scheduler.decide_with_boosts(now);
        // What a timer far ahead boosts is no reason not to look at the load.
        decision.decide_by(self.consolidation.look_at());
        self.say_awaited(&decision);
        decision
    }

    /// Does what the line of the loaded vCPU says; the scheduler decides thereafter.
    fn follow_line(&mut self, now: Instant) {
        notes::needs::<{ each::BOOST }>();
        let Some(vcpu) = self.roster.loaded().filter(|vcpu| vcpu.is_on()) else { return };
        let (id, Some(line)) = (vcpu.id(), vcpu.config().line()) else { return };
        let task = u64::from(line.task.load(Ordering::Relaxed));
        let is_boosted = self.scheduler.is_boosted(id);
        let before = self.roster.loaded_mut().map_or(0, |vcpu| vcpu.says(task));
        // It may have been refused before; and what an interrupt began lasts for a window only.
        if task != 0 && (!is_boosted || before == 0) {
            self.follow_report(id, Some(task), now);
        } else if task == 0 && before != 0 {
            // One that began by a call or an interrupt does not end by this.
            self.follow_report(id, None, now);
        }
    }

    /// Has the scheduler know when the loaded vCPU is to be boosted for its timer, by its timer advance before that
    /// fires: another one may have the core then. It may be due: the guest masks interrupts, or has not ended the
    /// one before and set its timer anew.
    fn foresee_rise(&mut self) {
        if let Some(vcpu) = self.roster.loaded().filter(|vcpu| vcpu.is_on()) {
            let at = match timer::loaded_deadline() {
                NEVER => NEVER,
                deadline => Instant(deadline.0.saturating_sub(vcpu.timer_advance())),
            };
            self.scheduler.rises_at(vcpu.id(), at);
        }
    }

    /// Says in the line of a vCPU that has the core whether others may wait for it: then the guest has to
    /// say at once that what it runs is not urgent any more.
    fn say_awaited(&mut self, decision: &Compact) {
        let Some(id) = decision.owner() else { return };
        let Some(line) = self.roster.get(id).and_then(|vcpu| vcpu.config().line()) else { return };
        line.awaited.store(self.scheduler.boost_is_awaited().into(), Ordering::Relaxed);
    }
}
