//! Global critical sections and mutexes: vCPUs are raised to their ceilings.
//!
//! A vCPU that may have global critical sections has a server and stays on its core. That core
//! alone raises and lowers it: for a call of its own it does so at once, and for what happens
//! elsewhere when it reads its mail. Then it looks at what holds now ([`SECTIONS`], [`MUTEXES`]):
//! a message says no more than that something may have changed, so that none can be lost.

use super::Pcpu;
use crate::arch::gic::Doorbell;
use crate::arch::{cpu, timer};
use crate::bug::bug;
use crate::shared::mutex::Locked;
use crate::shared::sections::Misuse;
use crate::shared::{EPOCH, MUTEXES, POWER, SECTIONS};
use crate::status::trace::{Kind, Outcome, Trace};
use crate::vcpu::{Change, Ending, hold_byte};
use abi::platform::ppi::GRANT;
use abi::service::{BUSY, HELD, INVALID_PARAMETER, NOT_SUPPORTED, OWNER_DIED, QUEUED};
use abi::system::{MAX_CLAIMANTS, MAX_MUTEXES, Mutex, parts};
use core::sync::atomic::Ordering;
use notes::{Bounded, Rounds, each};
use sched::{Duration, Instant, Member, Members, Message, VcpuId};

/// This image has sections. Without them it has nothing of all this: no call begins or ends one, and no vCPU
/// has any.
pub(crate) const BUILT: bool = parts::has(parts::SECTIONS);

/// A claimant of a mutex: a task of a vCPU.
#[derive(Clone, Copy)]
pub(super) struct Claim {
    pub(super) id: VcpuId,
    pub(super) mutex: usize,
    pub(super) rank: u8,
}

/// Returns the claimants of a mutex by rank: each one's vCPU, and its task.
fn claimants(mutex: &Mutex) -> impl Iterator<Item = (u8, u32)> {
    let claimants = mutex.vcpus.iter().copied().zip(mutex.tasks.iter().copied());
    let claimants = claimants.take(mutex.claimant_count as usize);
    claimants.one_for::<{ each::CLAIMANT }, MAX_CLAIMANTS>()
}

/// Forgets how often siblings have raised a vCPU of a VM that is halted.
pub(super) fn reset(id: VcpuId) {
    if BUILT {
        SECTIONS[id.number()].reset();
    }
}

impl Pcpu {
    /// Begins a section of a vCPU that the loaded one names by its index in their VM. The answer
    /// is 0 unless another is written.
    #[inline(always)]
    pub fn start_gcs(&mut self, index: u64) {
        match self.roster.loaded_mut().filter(|vcpu| vcpu.is_for_itself(index)) {
            None => self.start_gcs_of_sibling(index),
            Some(vcpu) => match vcpu.begin_own_section() {
                Some(true) => self.raise_loaded(),
                Some(false) => {}
                None => self.refuse_call(),
            },
        }
    }

    /// Ends a section of a vCPU that the loaded one names by its index in their VM. The answer
    /// is 0 unless another is written.
    #[inline(always)]
    pub fn finish_gcs(&mut self, index: u64) {
        match self.roster.loaded_mut().filter(|vcpu| vcpu.is_for_itself(index)) {
            None => self.finish_gcs_of_sibling(index),
            Some(vcpu) => match vcpu.end_own_section() {
                Some(true) => self.lower_loaded(),
                Some(false) => {}
                // A sibling may have begun one.
                None => self.finish_gcs_of_sibling(index),
            },
        }
    }

    #[cold]
    #[inline(never)]
    fn refuse_call(&mut self) {
        let answer = self.refuse();
        self.answer(answer);
    }

    fn answer(&mut self, answer: i64) {
        if let Some(vcpu) = self.roster.loaded_mut() {
            vcpu.set_register(0, answer as u64);
        }
    }

    /// Raises the loaded vCPU, which has the core.
    #[inline(always)]
    fn raise_loaded(&mut self) {
        let now = timer::now();
        self.note_loaded(Kind::Raise, now);
        match self.scheduler.open_gcs(now) {
            Some(end) => {
                if let Some(deadline) = self.deadlines.shorten(end) {
                    timer::rearm(deadline);
                }
            }
            None => self.raise_decided(now),
        }
    }

    /// Lowers the loaded vCPU, which has the core.
    #[inline(always)]
    fn lower_loaded(&mut self) {
        let now = timer::now();
        self.note_loaded(Kind::Lower, now);
        if !self.scheduler.close_gcs(now) {
            self.lower_decided(now);
        } else if let Some(deadline) = self.deadlines.restore() {
            timer::rearm(deadline);
        }
    }

    #[cold]
    #[inline(never)]
    fn raise_decided(&mut self, now: Instant) {
        notes::needs::<{ each::SECTION }>();
        if let Some(id) = self.roster.loaded_id() {
            self.need_resched |= self.scheduler.enter_gcs(id, now);
        }
    }

    #[cold]
    #[inline(never)]
    fn lower_decided(&mut self, now: Instant) {
        notes::needs::<{ each::SECTION }>();
        if let Some(id) = self.roster.loaded_id() {
            self.need_resched |= self.scheduler.exit_gcs(id, now);
        }
    }

    #[cold]
    #[inline(never)]
    fn start_gcs_of_sibling(&mut self, index: u64) {
        let answer = match self.sibling(index) {
            Err(answer) => answer,
            Ok(id) => self.start_for(id),
        };
        self.answer(answer);
    }

    #[cold]
    #[inline(never)]
    fn finish_gcs_of_sibling(&mut self, index: u64) {
        let answer = match self.sibling(index) {
            Err(answer) => answer,
            Ok(id) => {
                let finished = SECTIONS[id.number()].finish();
                self.follow_call(id, finished)
            }
        };
        self.answer(answer);
    }

    /// Returns the vCPU that the loaded one names by its index in their VM, if it may have
    /// sections.
    fn sibling(&mut self, index: u64) -> Result<VcpuId, i64> {
        let Some(loaded) = self.roster.loaded() else {
            bug!("a call without a loaded vCPU");
            return Err(INVALID_PARAMETER);
        };
        let Some(id) = self.vcpus_of(loaded.vm()).nth(index as usize) else {
            return Err(self.refuse());
        };
        if self.has_sections(id) { Ok(id) } else { Err(NOT_SUPPORTED) }
    }

    /// Lets the core of a sibling follow what a call for it has changed.
    fn follow_call(&mut self, id: VcpuId, changed: Result<bool, Misuse>) -> i64 {
        match changed {
            Ok(false) => {}
            Ok(true) if self.base_of(id) == self.index => self.follow_after_a_look(id),
            Ok(true) => {
                // One that is off looks when it is switched on.
                let urgent = POWER[id.number()].hears();
                self.tell(
                    self.base_of(id),
                    Message::Sections,
                    id.number(),
                    Doorbell::urgent(urgent),
                );
            }
            Err(Misuse) => return self.refuse(),
        }
        0
    }

    /// Begins a section of another vCPU, unless siblings did so often enough. One on this core
    /// counts, too: a sibling on another may end it, and that interrupts this one.
    fn start_for(&mut self, id: VcpuId) -> i64 {
        notes::needs::<{ each::SECTION }>();
        let (table, sections) = (&self.system.vcpu(id.number()), &SECTIONS[id.number()]);
        let period = Duration(timer::ns_to_ticks(table.period_ns));
        let epoch = Instant(EPOCH.load(Ordering::Relaxed));
        let first = epoch.after(Duration(timer::ns_to_ticks(table.offset_ns)));
        if !sections.count_call(table.gcs_calls, period, first, timer::now()) {
            self.count_misuse();
            return BUSY;
        }
        let begun = sections.begin();
        self.follow_call(id, begun)
    }

    /// Counts a call that makes no sense, and refuses it. To a vCPU without global critical sections
    /// there is no such call.
    fn refuse(&mut self) -> i64 {
        if !self.roster.loaded_id().is_some_and(|id| self.has_sections(id)) {
            return NOT_SUPPORTED;
        }
        self.count_misuse();
        INVALID_PARAMETER
    }

    fn count_misuse(&mut self) {
        if let Some(vcpu) = self.roster.loaded_mut() {
            vcpu.account().count_misuse();
        }
    }

    /// Lets a task of the loaded vCPU use a mutex. Returns whether others do, and the handle.
    pub fn open_mutex(&mut self, name: u64, task: u64) -> Option<(bool, u64)> {
        let id = self.roster.loaded_id()?;
        let mutexes = &self.system.mutexes[..self.system.header.mutex_count as usize];
        let number = mutexes
            .iter()
            .one_for::<{ each::MUTEX }, MAX_MUTEXES>()
            .position(|mutex| mutex.name == name)?;
        let own = (id.0, task as u32);
        let rank = claimants(&mutexes[number]).position(|claimant| claimant == own)?;
        let shared = MUTEXES[number].open(rank as u8);
        Some((shared, (rank as u64) << 8 | number as u64))
    }

    /// Ends the use of a mutex by a task of the loaded vCPU.
    pub fn close_mutex(&mut self, handle: u64) -> i64 {
        let Some(Claim { mutex, rank, .. }) = self.claim(handle) else { return self.refuse() };
        match MUTEXES[mutex].close(rank) {
            Ok(()) => 0,
            Err(_) => self.refuse(),
        }
    }

    /// Locks a mutex for a task of the loaded vCPU, which waits if it must.
    #[inline(never)]
    pub fn lock_mutex(&mut self, handle: u64) -> i64 {
        let Some(claim) = self.claim(handle) else { return self.refuse() };
        let locked = MUTEXES[claim.mutex].lock(claim.rank);
        self.note_request(claim, &locked, Outcome::Waits);
        self.locked(claim, locked, QUEUED)
    }

    /// Locks a mutex for a task of the loaded vCPU, if no other one holds it.
    #[inline(never)]
    pub fn try_lock_mutex(&mut self, handle: u64) -> i64 {
        let Some(claim) = self.claim(handle) else { return self.refuse() };
        let locked = MUTEXES[claim.mutex].try_lock(claim.rank);
        self.note_request(claim, &locked, Outcome::Busy);
        self.locked(claim, locked, BUSY)
    }

    #[inline]
    fn locked<E>(&mut self, claim: Claim, locked: Result<Locked, E>, waits: i64) -> i64 {
        match locked {
            Ok(Locked::Waits) => waits,
            Ok(Locked::Held { owner_died }) => {
                self.set_own_hold(claim.mutex, hold_byte(claim.rank, owner_died));
                if owner_died { OWNER_DIED } else { HELD }
            }
            Err(_) => self.refuse(),
        }
    }

    /// Gives a mutex back that a task of the loaded vCPU holds, or died with: then the next holder
    /// is told.
    #[inline(never)]
    pub fn unlock_mutex(&mut self, handle: u64, owner_died: bool) -> i64 {
        let Some(claim) = self.claim(handle) else { return self.refuse() };
        let Claim { mutex, rank, .. } = claim;
        match MUTEXES[mutex].unlock(rank, owner_died) {
            Ok(next) => {
                self.note_unlock(claim, owner_died);
                // The other core begins while this one does the rest.
                let here = next.and_then(|next| self.grant_elsewhere(mutex, next));
                self.set_own_hold(mutex, 0);
                if let Some(here) = here {
                    self.follow_after_a_look(here);
                }
                0
            }
            Err(_) => self.refuse(),
        }
    }

    /// Returns the claimant of the loaded vCPU that a handle stands for, if it uses the mutex.
    #[inline]
    fn claim(&self, handle: u64) -> Option<Claim> {
        let id = self.roster.loaded_id()?;
        let (mutex, rank) = ((handle & 0xff) as usize, (handle >> 8) as usize);
        let table = self.system.mutexes.get(mutex)?;
        // Only a claimant can have opened it, and only a mutex that is there.
        let own = *table.vcpus.get(rank)? == id.0 && MUTEXES[mutex].is_open(rank as u8);
        if !own {
            return None;
        }
        notes::needs::<{ each::MUTEX }>();
        Some(Claim { id, mutex, rank: rank as u8 })
    }

    /// Lets the core of the claimant that a mutex was given to follow that, if it is another
    /// one; returns the claimant's vCPU otherwise.
    #[inline(never)]
    fn grant_elsewhere(&mut self, mutex: usize, rank: u8) -> Option<VcpuId> {
        notes::needs::<{ each::SECTION }>();
        let id = VcpuId(self.system.mutexes[mutex].vcpus[usize::from(rank)]);
        let base = self.base_of(id);
        self.note_claim(Kind::Grant, Claim { id, mutex, rank }, Outcome::Done);
        if base == self.index {
            return Some(id);
        }
        self.tell(base, Message::Sections, id.number(), Doorbell::Realtime);
        None
    }

    /// Does [`Self::follow_sections`], now or after the interrupts that pend.
    #[inline(never)]
    pub(super) fn follow_after_a_look(&mut self, id: VcpuId) {
        if cpu::interrupt_pending() {
            self.follow_later(id);
        } else {
            self.follow_sections(id);
        }
    }

    /// Brings a vCPU of this core that was just switched on up to date with what raises it, after the
    /// interrupts that pend: it may have got some itself.
    pub(super) fn follow_if_raised(&self, id: VcpuId) {
        if self.system.vcpu(id.number()).has_sections() {
            self.follow_later(id);
        }
    }

    /// Returns true if the description gives a vCPU global critical sections.
    fn has_sections(&self, id: VcpuId) -> bool {
        self.system.vcpu(id.number()).has_ceiling()
    }

    /// Has what is left to do for a vCPU's sections done after the interrupts that pend: the next
    /// holder of a mutex may be of any VM.
    fn follow_later(&self, id: VcpuId) {
        self.go_on_later(Message::Sections, id.number(), Doorbell::Realtime);
    }

    /// Brings a vCPU of this core up to date with what raises it, and interrupts it if a task of
    /// its own was granted a mutex.
    #[inline(never)]
    pub(super) fn follow_sections(&mut self, id: VcpuId) {
        let table = &self.system.vcpu(id.number());
        // When it is switched on, or has come, this is done again.
        let Some(vcpu) = self.roster.get(id).filter(|vcpu| vcpu.is_on()) else { return };
        let (index, shared) = (vcpu.index(), vcpu.config().shared());
        let change = vcpu.follow_calls();
        if change != Change::None {
            self.follow(id, change);
            if cpu::interrupt_pending() {
                // Its mutexes follow after that interrupt.
                return self.follow_later(id);
            }
        }
        let mut granted = false;
        for mutex in Members::of(table.mutexes.into()).one_for::<{ each::MUTEX }, MAX_MUTEXES>() {
            let byte = self.held_byte(id, mutex);
            let change = self.set_hold(id, mutex, byte);
            if change == Change::None {
                continue;
            }
            self.follow(id, change);
            let holds = matches!(change, Change::More | Change::Passed);
            if Trace::IS_ON && holds {
                let rank = (byte & 0x7f).wrapping_sub(1);
                self.note_claim(Kind::Granted, Claim { id, mutex, rank }, Outcome::Done);
            }
            granted |= holds;
            if cpu::interrupt_pending() {
                // The others follow after that interrupt.
                self.follow_later(id);
                break;
            }
        }
        if granted {
            notes::needs::<{ each::MUTEX }>();
            // Only this vCPU is concerned, and the task may be late already: at once.
            let _ = shared.gic.post(index, GRANT);
            self.deliver_pending(id);
        }
    }

    /// Returns what a vCPU's guest is to read of a mutex, as it stands now.
    pub(super) fn held_byte(&self, id: VcpuId, mutex: usize) -> u8 {
        let vcpus = &self.system.mutexes[mutex].vcpus;
        let holder = MUTEXES[mutex].holder();
        let own = holder.filter(|&(rank, _)| vcpus[usize::from(rank)] == id.0);
        own.map_or(0, |(rank, owner_died)| hold_byte(rank, owner_died))
    }

    /// Records what a vCPU of this core holds. Returns what has to be followed.
    fn set_hold(&mut self, id: VcpuId, mutex: usize, byte: u8) -> Change {
        let Some(vcpu) = self.roster.get(id) else {
            bug!("a mutex of a vCPU that another core owns");
            return Change::None;
        };
        vcpu.set_hold(mutex, byte)
    }

    /// Records what the loaded vCPU holds, which has the core, and raises or lowers it.
    #[inline(always)]
    fn set_own_hold(&mut self, mutex: usize, byte: u8) {
        let Some(vcpu) = self.roster.loaded_mut() else {
            return bug!("a mutex without a loaded vCPU");
        };
        match vcpu.set_hold(mutex, byte) {
            Change::None | Change::Passed => {}
            Change::More => self.raise_loaded(),
            Change::Less => self.lower_loaded(),
        }
    }

    /// Raises or lowers a vCPU of this core.
    #[inline(never)]
    fn follow(&mut self, id: VcpuId, change: Change) {
        // A decision for another vCPU may not be carried out yet: what is noted of the vCPU that runs
        // would be that one's.
        let runs =
            self.ledger.is_current(id) && self.roster.is_loaded(id) && self.scheduler.is_chosen(id);
        match change {
            Change::None | Change::Passed => {}
            Change::More if runs => self.raise_loaded(),
            Change::Less if runs => self.lower_loaded(),
            Change::More => {
                let now = timer::now();
                self.trace.note(Kind::Raise, id, 0, now);
                self.need_resched |= self.scheduler.enter_gcs(id, now);
            }
            Change::Less => {
                let now = timer::now();
                self.trace.note(Kind::Lower, id, 0, now);
                self.need_resched |= self.scheduler.exit_gcs(id, now);
            }
        }
    }

    /// Records that a vCPU of this core has one reason less to be raised, if it has.
    #[inline]
    fn note_lowered(&mut self, id: VcpuId, change: Change, now: Instant) {
        if Trace::IS_ON && change == Change::Less {
            self.trace.note(Kind::Lower, id, 0, now);
        }
    }

    /// Begins to end all sections of a vCPU of this core that does not run any more, and to give
    /// back what it holds; its mark ends, too. Returns true if there may be any sections.
    #[inline(never)]
    pub(super) fn begin_to_end_sections(&mut self, id: VcpuId) -> bool {
        if self.system.vcpu(id.number()).is_markable() {
            self.mark(id, false);
        }
        if self.system.vcpu(id.number()).may_be_boosted() {
            self.end_boost(id);
        }
        if !self.system.vcpu(id.number()).has_sections() {
            return false;
        }
        notes::needs::<{ each::SECTION }>();
        let table = &self.system.vcpu(id.number());
        let Some(vcpu) = self.roster.get(id) else {
            bug!("sections of a vCPU end that another core owns");
            return false;
        };
        vcpu.begin_to_end_sections(Members::of(table.mutexes.into()));
        true
    }

    /// Has all sections of a vCPU ended before others wait for it, after the interrupts that pend.
    pub(super) fn end_sections_soon(&mut self, id: VcpuId) {
        if self.begin_to_end_sections(id) {
            self.follow_later(id);
        }
    }

    /// Does what a message about sections asks for.
    #[inline]
    pub(super) fn read_sections(&mut self, id: VcpuId) {
        if !BUILT {
            bug!("a message about sections that no vCPU has");
        } else if !self.roster.get(id).is_some_and(|vcpu| vcpu.is_ending_sections()) {
            self.follow_sections(id);
        } else if !self.end_sections(id) {
            self.follow_later(id);
        }
    }

    /// Goes on to end sections. Returns false if an interrupt has come before all was done: then
    /// this has to be called again.
    #[inline(always)]
    pub(super) fn end_sections(&mut self, id: VcpuId) -> bool {
        !BUILT || self.end_next_sections(id)
    }

    #[inline(never)]
    fn end_next_sections(&mut self, id: VcpuId) -> bool {
        let mut rounds = Rounds::<{ MAX_MUTEXES + 1 }>::begin();
        while let Some(piece) = self.roster.get(id).and_then(|vcpu| vcpu.next_section_to_end()) {
            rounds.pass();
            notes::needs::<{ each::SECTION }>();
            match piece {
                Ending::Mutex(mutex) => self.give_up(id, mutex),
                Ending::Rest => self.end_all(id),
            }
            if cpu::interrupt_pending() {
                return false;
            }
        }
        true
    }

    /// Gives a mutex back for a vCPU that died with it, or waits for it no longer: the next holder
    /// is told.
    #[inline(never)]
    fn give_up(&mut self, id: VcpuId, mutex: usize) {
        self.note_death(id, mutex);
        let ranks = claimants(&self.system.mutexes[mutex]).enumerate();
        let own = ranks.filter(|&(_, (vcpu, _))| vcpu == id.0);
        let dead = own.fold(0, |ranks, (rank, _)| ranks | 1 << rank);
        let next = MUTEXES[mutex].forget(dead);
        if let Some(here) = next.and_then(|next| self.grant_elsewhere(mutex, next)) {
            // As if it were elsewhere: the vCPU may hold many.
            self.follow_later(here);
        }
    }

    /// Ends all sections of a vCPU that has no mutex any more.
    #[inline(never)]
    fn end_all(&mut self, id: VcpuId) {
        SECTIONS[id.number()].reset();
        let now = timer::now();
        let table = &self.system.vcpu(id.number());
        if let Some(vcpu) = self.roster.get(id) {
            let (own, called) = (vcpu.forget_own_sections(), vcpu.forget_calls());
            self.note_lowered(id, own, now);
            self.note_lowered(id, called, now);
        }
        for mutex in Members::of(table.mutexes.into()).one_for::<{ each::MUTEX }, MAX_MUTEXES>() {
            if let Some(vcpu) = self.roster.get(id) {
                let change = vcpu.set_hold(mutex, 0);
                self.note_lowered(id, change, now);
            }
        }
        self.need_resched |= self.scheduler.exit_all(id, now);
    }
}
