//! What the trace has of budgets, sections, mutexes and list registers.

use super::Pcpu;
use super::sections::Claim;
use crate::shared::MUTEXES;
use crate::shared::mutex::Locked;
use crate::status::trace::{self, Kind, Outcome, Trace};
use crate::vcpu::Listing;
use sched::server::{Account, Counts};
use sched::{Instant, VcpuId};

/// Records what is `new` of a vCPU's budget.
#[inline(always)]
pub(super) fn note_budget(
    trace: &mut Trace,
    id: VcpuId,
    account: &Account,
    new: Counts,
    now: Instant,
) {
    if !Trace::IS_ON {
        return;
    }
    // An overrun is booked when it is charged, and in the period in which it was.
    let overran = account.server().overrun.0 - account.overrun_left().0;
    let begun = Instant(now.0 - overran);
    for (kind, times, at) in [
        (Kind::Replenish, new.replenished, begun),
        (Kind::Overrun, new.overruns, begun),
        (Kind::OverrunStop, new.overrun_stops, now),
        (Kind::Lowered, new.lowered, now),
    ] {
        if times > 0 {
            trace.note(kind, id, times as u32, at);
        }
    }
}

impl Pcpu {
    /// Records that the loaded vCPU is raised or lowered.
    #[inline(always)]
    pub(super) fn note_loaded(&mut self, kind: Kind, now: Instant) {
        if Trace::IS_ON
            && let Some(id) = self.roster.loaded_id()
        {
            self.trace.note(kind, id, 0, now);
        }
    }

    /// Records what the loaded vCPU has asked for; `otherwise`: what it means not to have it.
    #[inline(always)]
    pub(super) fn note_request<E>(
        &mut self,
        claim: Claim,
        locked: &Result<Locked, E>,
        otherwise: Outcome,
    ) {
        let outcome = match locked {
            Ok(Locked::Held { owner_died: false }) => Outcome::Done,
            Ok(Locked::Held { owner_died: true }) => Outcome::OwnerDied,
            Ok(Locked::Waits) => otherwise,
            Err(_) => return,
        };
        self.note_claim(Kind::Lock, claim, outcome);
    }

    /// Records something about a mutex.
    #[inline(always)]
    pub(super) fn note_claim(&mut self, kind: Kind, claim: Claim, outcome: Outcome) {
        let Claim { id, mutex, rank } = claim;
        let claim = trace::Claim { mutex: mutex as u8, rank, outcome };
        self.trace.note_now(kind, id, claim.argument());
    }

    /// Records that the loaded vCPU has given a mutex back; `owner_died`: for a task that died.
    #[inline(always)]
    pub(super) fn note_unlock(&mut self, claim: Claim, owner_died: bool) {
        let outcome = if owner_died { Outcome::OwnerDied } else { Outcome::Done };
        self.note_claim(Kind::Unlock, claim, outcome);
    }

    /// Records that a vCPU that is switched off gives a mutex back, if it holds it.
    #[inline(always)]
    pub(super) fn note_death(&mut self, id: VcpuId, mutex: usize) {
        if !Trace::IS_ON {
            return;
        }
        let vcpus = &self.system.mutexes[mutex].vcpus;
        if let Some((rank, _)) = MUTEXES[mutex].holder()
            && vcpus[usize::from(rank)] == id.0
        {
            self.note_claim(Kind::Unlock, Claim { id, mutex, rank }, Outcome::OwnerDied);
        }
    }

    /// Records interrupts that were put into list registers.
    #[inline(always)]
    pub(super) fn note_listed(&mut self, id: VcpuId, listing: Listing) {
        if Trace::IS_ON && listing.listed > 0 {
            self.trace.note_now(Kind::Inject, id, listing.listed as u32);
        }
    }
}
