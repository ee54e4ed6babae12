//! Global critical sections and ceilings.
//!
//! The vCPU that runs begins most sections itself, and ends them soon. It has the core before,
//! meanwhile and after, so nothing has to be decided: when the section began is all that is
//! noted, and when it ends, how long the vCPU was raised. Everything else charges the accounts
//! and asks for a decision.

use super::{POSITION, Scheduler, VcpuId};
use crate::Instant;
use crate::ceiling::Ceiling;

/// What the beginning or the end of a global critical section has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Nothing: it is inside another one, or the vCPU is not here.
    Nothing,
    /// The latest decision stands, but until this instant at most.
    StandsUntil(Instant),
    /// The latest decision stands, for as long as it was to stand before the section began.
    Stands,
    /// The core has to decide again.
    Decide,
}

impl Scheduler {
    /// Records that a task of this vCPU holds one more global resource: the vCPU is at its
    /// ceiling, above every vCPU that is not, and may overrun if its server allows that
    /// (`vmpcp_start_gcs`, RTSS 2014, Section III-C).
    pub fn enter_gcs(&mut self, id: VcpuId, now: Instant) -> Section {
        let Some(at) = self.find(id) else { return Section::Nothing };
        let sections = &mut self.extras.sections[usize::from(id.0) & POSITION];
        *sections = sections.saturating_add(1);
        if *sections > 1 {
            return Section::Nothing;
        }
        if usize::from(self.running) == at
            && let Some(account) = &mut self.extras.accounts[usize::from(id.0) & POSITION]
            && account.has_budget(now.since(self.charged), now)
            && account.gcs_left().0 > 0
        {
            account.raise(now);
            let until = now.after(account.gcs_left());
            self.extras.raised |= 1 << at;
            self.extras.section_began = true;
            self.reach = self.reach_of_running();
            return Section::StandsUntil(until);
        }
        self.enter_gcs_decided(at, now)
    }

    #[cold]
    #[inline(never)]
    fn enter_gcs_decided(&mut self, at: usize, now: Instant) -> Section {
        self.charge(now);
        self.make_special(at);
        let id = usize::from(self.entries[at].id.0);
        match &mut self.extras.accounts[id] {
            Some(account) => {
                account.replenish(now);
                account.raise(now);
            }
            None => self.extras.raised |= 1 << at,
        }
        self.look_at_budget(at, now);
        Section::Decide
    }

    /// Records that a task of this vCPU has given a global resource back
    /// (`vmpcp_finish_gcs`, RTSS 2014, Section III-C).
    pub fn exit_gcs(&mut self, id: VcpuId, now: Instant) -> Section {
        let Some(at) = self.find(id) else { return Section::Nothing };
        let sections = &mut self.extras.sections[usize::from(id.0) & POSITION];
        match *sections {
            0 => return Section::Nothing,
            1 => *sections = 0,
            _ => {
                *sections -= 1;
                return Section::Nothing;
            }
        }
        if self.extras.section_began
            && usize::from(self.running) == at
            && let Some(account) = &mut self.extras.accounts[usize::from(id.0) & POSITION]
            && account.has_budget(now.since(self.charged), now)
        {
            self.extras.section_began = false;
            // No decision since: whatever of the section is over has not been charged.
            account.charge_raised(self.charged, now);
            account.lower();
            self.extras.raised &= !(1 << at);
            self.reach = self.reach_of_running();
            let others = (self.ready | self.extras.pending) & self.reach & !(1 << at);
            return if others == 0 { Section::Stands } else { Section::Decide };
        }
        self.exit_gcs_decided(at, now)
    }

    #[cold]
    #[inline(never)]
    fn exit_gcs_decided(&mut self, at: usize, now: Instant) -> Section {
        self.charge(now);
        let id = usize::from(self.entries[at].id.0);
        if let Some(account) = &mut self.extras.accounts[id] {
            account.lower();
        }
        self.extras.raised &= !(1 << at);
        self.look_at_budget(at, now);
        Section::Decide
    }

    /// Returns true if a task of this vCPU holds a global resource.
    #[must_use]
    pub fn in_gcs(&self, id: VcpuId) -> bool {
        self.extras.sections.get(usize::from(id.0)).is_some_and(|&sections| sections > 0)
    }

    /// Returns a vCPU's priority, at its ceiling or not; none when it is not here.
    #[must_use]
    pub fn ceiling(&self, id: VcpuId) -> Option<Ceiling> {
        let at = self.find(id)?;
        let gcs = self.extras.raised >> at & 1 == 1;
        Some(Ceiling { gcs, priority: self.entries[at].priority })
    }
}
