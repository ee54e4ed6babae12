//! Global critical sections and ceilings.
//!
//! The vCPU that runs begins most sections itself, and ends them soon. It has the core before,
//! meanwhile and after, so nothing has to be decided. For such sections there is a [`Lane`]:
//! each decision writes into it what the vCPU that runs may do, and what the vCPU does is only
//! noted there. Whatever else asks for the accounts *settles* the lane first, and shuts it.

use super::{ABSENT, POSITION, Scheduler, VcpuId};
use crate::ceiling::Ceiling;
use crate::server::Account;
use crate::{Duration, Instant};
use notes::each;

/// Sections of the vCPU that runs, between two decisions.
#[derive(Clone, Copy)]
pub(super) struct Lane {
    /// The end of its budget or of its period; 0: the lane is shut.
    end: Instant,
    /// How long it may still be raised in this period.
    gcs_left: Duration,
    /// When it began the section that it is in.
    since: Instant,
    /// Until when that may raise it; 0: it is in none.
    until: Instant,
}

impl Lane {
    /// A lane that no vCPU can use.
    pub(super) const SHUT: Self =
        Self { end: Instant(0), gcs_left: Duration(0), since: Instant(0), until: Instant(0) };

    /// Begins a period of the vCPU that runs and is in no section, whose budget ends at `end`.
    #[inline(always)]
    pub(super) fn renew(&mut self, end: Instant, gcs_left: Duration) {
        (self.end, self.gcs_left) = (end, gcs_left);
    }

    /// Returns true if no vCPU can use it.
    #[inline(always)]
    pub(super) const fn is_shut(&self) -> bool {
        self.end.0 == 0
    }

    /// Returns true if the vCPU that runs is in a section: false without looking in a build without
    /// sections.
    #[inline(always)]
    pub(super) const fn is_used(&self) -> bool {
        cfg!(feature = "sections") && self.until.0 != 0
    }

    /// Makes the lane of a vCPU that runs from `now` on and is in no section.
    pub(super) fn open(account: &Account, now: Instant) -> Self {
        let end = now.after(account.left()).min(account.replenished_at());
        Self { end, gcs_left: account.gcs_left(), ..Self::SHUT }
    }
}

impl Scheduler {
    /// Does what [`Self::enter_gcs`] does for the vCPU that runs, if nothing has to be decided.
    /// Returns until when the latest decision stands at most.
    #[inline(always)]
    pub fn open_gcs(&mut self, now: Instant) -> Option<Instant> {
        let lane = &mut self.extras.lane;
        if lane.is_shut() || lane.is_used() {
            return None;
        }
        lane.since = now;
        lane.until = now.after(lane.gcs_left).min(lane.end);
        Some(lane.until)
    }

    /// Does what [`Self::exit_gcs`] does for the vCPU that runs, if nothing has to be decided.
    /// Returns true then: the latest decision stands for as long as it was to before the section.
    #[inline(always)]
    pub fn close_gcs(&mut self, now: Instant) -> bool {
        let lane = &mut self.extras.lane;
        if now >= lane.until {
            return false;
        }
        lane.gcs_left.0 -= now.since(lane.since).0;
        lane.until = Instant(0);
        true
    }

    /// Records that a task of this vCPU holds one more global resource: the vCPU is at its
    /// ceiling, above every vCPU that is not, and may overrun if its server allows that
    /// (`vmpcp_start_gcs`, RTSS 2014, Section III-C). Returns true if the core has to decide
    /// again.
    #[inline(never)]
    pub fn enter_gcs(&mut self, id: VcpuId, now: Instant) -> bool {
        notes::needs::<{ each::SECTION }>();
        self.settle();
        let Some(at) = self.find(id) else { return false };
        let sections = &mut self.extras.sections[usize::from(id.0) & POSITION];
        *sections = sections.saturating_add(1);
        if *sections > 1 {
            return false;
        }
        self.charge_running_settled(now);
        self.raise(at, now);
        true
    }

    /// Records that a task of this vCPU has given a global resource back
    /// (`vmpcp_finish_gcs`, RTSS 2014, Section III-C). Returns true if the core has to decide
    /// again.
    pub fn exit_gcs(&mut self, id: VcpuId, now: Instant) -> bool {
        self.exit_several(id, 1, now)
    }

    /// Records that a vCPU has given all global resources back: it is switched off. Returns true if
    /// the core has to decide again.
    pub fn exit_all(&mut self, id: VcpuId, now: Instant) -> bool {
        self.exit_several(id, u8::MAX, now)
    }

    #[inline(never)]
    fn exit_several(&mut self, id: VcpuId, count: u8, now: Instant) -> bool {
        notes::needs::<{ each::SECTION }>();
        self.settle();
        let Some(at) = self.find(id) else { return false };
        let sections = &mut self.extras.sections[usize::from(id.0) & POSITION];
        let before = *sections;
        *sections = before.saturating_sub(count);
        if before == 0 || *sections > 0 {
            return false;
        }
        self.charge_running_settled(now);
        if let Some(account) = &mut self.extras.accounts[usize::from(id.0) & POSITION] {
            account.lower();
        }
        self.extras.raised &= !(1 << at);
        self.look_at_budget(at, now);
        true
    }

    /// Puts a vCPU that has no server above all that are not at their ceilings, or back to its own
    /// priority: its guest marks it. Returns true if the core has to decide again.
    #[inline(never)]
    pub fn mark(&mut self, id: VcpuId, marked: bool, now: Instant) -> bool {
        let Some(at) = self.find(id) else { return false };
        if (self.extras.raised >> at & 1 == 1) == marked {
            return false;
        }
        self.charge_running_with_extras(now);
        // One section, which no call begins or ends.
        self.extras.sections[usize::from(id.0) & POSITION] = marked.into();
        self.make_special(at);
        self.look_at_budget(at, now);
        true
    }

    /// Raises a vCPU whose first section begins, and which has been charged.
    fn raise(&mut self, at: usize, now: Instant) {
        self.make_special(at);
        let id = self.entries[at].number();
        match &mut self.extras.accounts[id] {
            Some(account) => {
                account.replenish(now);
                account.raise(now);
            }
            None => self.extras.raised |= 1 << at,
        }
        self.look_at_budget(at, now);
    }

    /// Opens the lane for the vCPU that runs from now on.
    pub(super) fn open_lane(&mut self, id: usize, now: Instant) {
        if let Some(account) = &self.extras.accounts[id]
            && self.extras.sections[id] == 0
        {
            self.extras.lane = Lane::open(account, now);
        }
    }

    /// Writes what is in the lane where it belongs, and shuts it.
    #[inline(always)]
    pub(super) fn settle(&mut self) {
        if !self.extras.lane.is_shut() {
            self.settle_lane();
        }
    }

    #[inline(never)]
    fn settle_lane(&mut self) {
        notes::needs::<{ each::EXTRA }>();
        let lane = core::mem::replace(&mut self.extras.lane, Lane::SHUT);
        if self.running == ABSENT {
            return;
        }
        let at = usize::from(self.running) & POSITION;
        let id = self.entries[at].number() & POSITION;
        if let Some(account) = &mut self.extras.accounts[id] {
            account.set_gcs_left(lane.gcs_left);
        }
        if lane.is_used() {
            notes::needs::<{ each::SECTION }>();
            self.extras.sections[id] = 1;
            self.charge_running_settled(lane.since);
            self.raise(at, lane.since);
            self.reach = self.reach_of_running();
        }
    }

    /// Returns the vCPU for which the latest decision was, if it was for one.
    #[must_use]
    #[inline(always)]
    pub fn chosen(&self) -> Option<VcpuId> {
        let is_chosen = self.running != ABSENT;
        is_chosen.then(|| self.entries[usize::from(self.running) & POSITION].id)
    }

    /// Returns true if the latest decision was for this vCPU: it may be in the lane.
    #[must_use]
    #[inline(always)]
    pub fn is_chosen(&self, id: VcpuId) -> bool {
        self.chosen() == Some(id)
    }

    /// Returns true if a task of this vCPU holds a global resource.
    #[must_use]
    pub fn in_gcs(&self, id: VcpuId) -> bool {
        let sections = self.extras.sections.get(usize::from(id.0));
        sections.is_some_and(|&sections| sections > 0) || self.is_in_lane(id)
    }

    /// Returns a vCPU's priority, at its ceiling or not; none when it is not here.
    #[must_use]
    pub fn ceiling(&self, id: VcpuId) -> Option<Ceiling> {
        let at = self.find(id)?;
        let gcs = self.is_in_lane(id) || self.extras.raised >> at & 1 == 1;
        Some(Ceiling { gcs, priority: self.entries[at].priority })
    }

    /// Returns true if this vCPU runs, and is in a section that is only noted.
    fn is_in_lane(&self, id: VcpuId) -> bool {
        self.extras.lane.is_used() && self.is_chosen(id)
    }
}
