//! Global critical sections and mutexes: vCPUs are raised to their ceilings.
//!
//! A vCPU that may have global critical sections has a server and stays on its core. That core
//! alone raises and lowers it: for a call of its own it does so at once, and for what happens
//! elsewhere when it reads its mail. Then it looks at what holds now ([`SECTIONS`], [`MUTEXES`]):
//! a message says no more than that something may have changed, so that none can be lost.

use super::Pcpu;
use crate::arch::timer;
use crate::bug::bug;
use crate::shared::mutex::Locked;
use crate::shared::sections::Misuse;
use crate::shared::{EPOCH, MUTEXES, SECTIONS};
use crate::vcpu::{Change, hold_byte};
use abi::platform::ppi::GRANT;
use abi::service::{BUSY, HELD, INVALID_PARAMETER, NOT_SUPPORTED, OWNER_DIED, QUEUED};
use core::sync::atomic::Ordering;
use sched::{Duration, Instant, Member, Members, Message, Section, VcpuId};

/// A claimant of a mutex, on this core's loaded vCPU.
#[derive(Clone, Copy)]
struct Claim {
    id: VcpuId,
    mutex: usize,
    rank: u8,
}

impl Pcpu {
    /// Begins a section of a vCPU that the loaded one names by its index in their VM.
    pub fn start_gcs(&mut self, index: u64) -> i64 {
        match self.target(index) {
            Err(answer) => answer,
            Ok(id) if self.base_of(id) == self.index => {
                let begun = SECTIONS[id.number()].begin();
                self.follow_call(id, begun)
            }
            Ok(id) => self.start_elsewhere(id),
        }
    }

    /// Ends a section of a vCPU that the loaded one names by its index in their VM.
    pub fn finish_gcs(&mut self, index: u64) -> i64 {
        match self.target(index) {
            Err(answer) => answer,
            Ok(id) if self.base_of(id) == self.index => {
                let finished = SECTIONS[id.number()].finish();
                self.follow_call(id, finished)
            }
            Ok(id) => {
                let finished = SECTIONS[id.number()].finish();
                self.send_call(id, finished)
            }
        }
    }

    /// Returns the vCPU that the loaded one names by its index in their VM.
    #[inline]
    fn target(&self, index: u64) -> Result<VcpuId, i64> {
        let Some(loaded) = self.roster.loaded() else {
            bug!("a call without a loaded vCPU");
            return Err(INVALID_PARAMETER);
        };
        let table = &self.system.vms[loaded.vm()];
        if index >= u64::from(table.vcpu_count) {
            return Err(INVALID_PARAMETER);
        }
        let id = VcpuId::numbered(usize::from(table.vcpu_first) + index as usize);
        if self.system.vcpus[id.number()].gcs_ns == 0 { Err(NOT_SUPPORTED) } else { Ok(id) }
    }

    /// Follows what a call for a vCPU of this core has changed.
    #[inline]
    fn follow_call(&mut self, id: VcpuId, changed: Result<bool, Misuse>) -> i64 {
        match changed {
            Ok(false) => 0,
            Ok(true) => {
                let called = SECTIONS[id.number()].raise();
                let vcpu = self.roster.get(id).filter(|vcpu| vcpu.is_on());
                if let Some(vcpu) = vcpu {
                    let change = vcpu.holds().set_called(called);
                    self.follow(id, change);
                }
                0
            }
            Err(Misuse) => self.refuse(),
        }
    }

    /// Begins a section of a vCPU of another core, unless that was interrupted for this one's
    /// VM often enough.
    #[inline(never)]
    fn start_elsewhere(&mut self, id: VcpuId) -> i64 {
        let (table, sections) = (&self.system.vcpus[id.number()], &SECTIONS[id.number()]);
        let period = Duration(timer::ns_to_ticks(table.period_ns));
        let epoch = Instant(EPOCH.load(Ordering::Relaxed));
        if !sections.count_call(table.gcs_calls, period, epoch, timer::now()) {
            self.count_misuse();
            return BUSY;
        }
        let begun = sections.begin();
        self.send_call(id, begun)
    }

    fn send_call(&mut self, id: VcpuId, changed: Result<bool, Misuse>) -> i64 {
        match changed {
            Ok(false) => 0,
            Ok(true) => {
                self.tell(self.base_of(id), Message::Sections, id.number(), true);
                0
            }
            Err(Misuse) => self.refuse(),
        }
    }

    /// Counts a call that makes no sense, and refuses it.
    fn refuse(&mut self) -> i64 {
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
        let number = mutexes.iter().position(|mutex| mutex.name == name)?;
        let mutex = &mutexes[number];
        let claimants = mutex.vcpus.iter().zip(&mutex.tasks);
        let mut claimants = claimants.take(mutex.claimant_count as usize);
        let own = (id.0, task as u32);
        let rank = claimants.position(|(&vcpu, &task)| (vcpu, task) == own)?;
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
        self.locked(claim, locked, QUEUED)
    }

    /// Locks a mutex for a task of the loaded vCPU, if no other one holds it.
    #[inline(never)]
    pub fn try_lock_mutex(&mut self, handle: u64) -> i64 {
        let Some(claim) = self.claim(handle) else { return self.refuse() };
        let locked = MUTEXES[claim.mutex].try_lock(claim.rank);
        self.locked(claim, locked, BUSY)
    }

    #[inline]
    fn locked<E>(&mut self, claim: Claim, locked: Result<Locked, E>, waits: i64) -> i64 {
        match locked {
            Ok(Locked::Waits) => waits,
            Ok(Locked::Held { owner_died }) => {
                self.set_hold(claim.id, claim.mutex, hold_byte(claim.rank, owner_died));
                if owner_died { OWNER_DIED } else { HELD }
            }
            Err(_) => self.refuse(),
        }
    }

    /// Gives a mutex back that a task of the loaded vCPU holds.
    #[inline(never)]
    pub fn unlock_mutex(&mut self, handle: u64) -> i64 {
        let Some(Claim { id, mutex, rank }) = self.claim(handle) else { return self.refuse() };
        match MUTEXES[mutex].unlock(rank) {
            Ok(next) => {
                self.set_hold(id, mutex, 0);
                if let Some(next) = next {
                    self.grant(mutex, next);
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
        // Whoever has opened it is a claimant, and the mutex there is.
        let own = *table.vcpus.get(rank)? == id.0 && MUTEXES[mutex].is_open(rank as u8);
        own.then_some(Claim { id, mutex, rank: rank as u8 })
    }

    /// Lets the core of the claimant that a mutex was given to follow that.
    #[inline(never)]
    fn grant(&mut self, mutex: usize, rank: u8) {
        let id = VcpuId(self.system.mutexes[mutex].vcpus[usize::from(rank)]);
        let base = self.base_of(id);
        if base == self.index {
            self.follow_sections(id);
        } else {
            self.tell(base, Message::Sections, id.number(), true);
        }
    }

    /// Brings a vCPU of this core up to date with what raises it, and interrupts it if a task of
    /// its own was granted a mutex.
    #[inline(never)]
    pub(super) fn follow_sections(&mut self, id: VcpuId) {
        let table = &self.system.vcpus[id.number()];
        let Some(vcpu) = self.roster.get(id).filter(|vcpu| vcpu.is_on()) else { return };
        let (vm, index) = (vcpu.vm(), vcpu.index());
        let shared = vcpu.config().shared();
        let change = vcpu.holds().set_called(SECTIONS[id.number()].raise());
        self.follow(id, change);
        let mut granted = false;
        for mutex in Members(table.mutexes.into()) {
            let holder = MUTEXES[mutex].holder();
            let vcpus = &self.system.mutexes[mutex].vcpus;
            let own = holder.filter(|&(rank, _)| vcpus[usize::from(rank)] == id.0);
            let byte = own.map_or(0, |(rank, owner_died)| hold_byte(rank, owner_died));
            granted |= self.set_hold(id, mutex, byte);
        }
        if granted {
            let effects = shared.gic.post(index, GRANT);
            self.notify(vm, effects);
        }
    }

    /// Records what a vCPU of this core holds, and raises or lowers it. Returns true if one of
    /// its tasks holds the mutex that did not before.
    #[inline]
    fn set_hold(&mut self, id: VcpuId, mutex: usize, byte: u8) -> bool {
        let Some(vcpu) = self.roster.get(id) else {
            bug!("a mutex of a vCPU that another core owns");
            return false;
        };
        let change = vcpu.holds().set(mutex, byte);
        self.follow(id, change);
        matches!(change, Change::More | Change::Passed)
    }

    /// Raises or lowers a vCPU of this core.
    #[inline]
    fn follow(&mut self, id: VcpuId, change: Change) {
        let section = match change {
            Change::None | Change::Passed => return,
            Change::More => {
                if let Some(vcpu) = self.roster.get(id) {
                    vcpu.account().count_raise();
                }
                self.scheduler.enter_gcs(id, timer::now())
            }
            Change::Less => self.scheduler.exit_gcs(id, timer::now()),
        };
        let deadline = match section {
            Section::Nothing => return,
            Section::Decide => {
                self.need_resched = true;
                return;
            }
            Section::StandsUntil(end) => self.deadlines.shorten(end),
            Section::Stands => self.deadlines.restore(),
        };
        if let Some(deadline) = deadline {
            timer::arm(deadline);
        }
    }

    /// Ends all sections of a vCPU of this core, which is switched off, and gives back what it
    /// holds: the next holder is told.
    pub(super) fn end_sections(&mut self, id: VcpuId) {
        let table = &self.system.vcpus[id.number()];
        if table.gcs_ns == 0 {
            return;
        }
        SECTIONS[id.number()].reset();
        if let Some(vcpu) = self.roster.get(id) {
            let change = vcpu.holds().set_called(false);
            self.follow(id, change);
        }
        for mutex in Members(table.mutexes.into()) {
            self.set_hold(id, mutex, 0);
            let table = &self.system.mutexes[mutex];
            let claimants = table.vcpus.iter().take(table.claimant_count as usize).enumerate();
            let dead = claimants.filter(|&(_, &vcpu)| vcpu == id.0);
            let dead = dead.fold(0, |dead, (rank, _)| dead | 1 << rank);
            if let Some(next) = MUTEXES[mutex].forget(dead) {
                self.grant(mutex, next);
            }
        }
    }
}
