//! Carrying out what policies say ([`sched::policy`]).
//!
//! A policy is asked when a vCPU that displaces others has the core: its
//! registers are on the hardware by then, and its guest is next. Which vCPUs it
//! displaces was worked out at the start; a core none of whose vCPUs has a
//! policy with a say finds a zero, and that is all it pays.

use crate::arch::{cpu, timer};
use crate::pcpu::Pcpu;
use crate::shared::{IDLE, PLACES};
use abi::system::System;
use core::sync::atomic::Ordering;
use sched::policy::{self, Displaced, Kind, Mode, Policy, Rank, Then};
use sched::{Duration, Members, Message, Params, Priority, VcpuId};

/// Whether this machine can do what the policies need.
///
/// # Errors
/// What is wrong, in words.
pub fn verify(system: &System) -> Result<(), &'static str> {
    for vm in system.vms() {
        let kind = Kind::from_number(vm.policy).ok_or("a VM has an unknown migration policy")?;
        if kind.policy().needs().views && !cpu::has_xnx() {
            return Err("a VM's migration policy needs FEAT_XNX, which this core has not");
        }
    }
    Ok(())
}

/// A vCPU's policy.
pub fn of(system: &System, id: usize) -> &'static dyn Policy {
    kind_of(system, id).policy()
}

/// Unknown numbers have been refused by [`verify`].
fn kind_of(system: &System, id: usize) -> Kind {
    Kind::from_number(system.vms[usize::from(system.vcpus[id].vm)].policy).unwrap_or_default()
}

fn rank(system: &System, id: usize) -> Rank {
    let vcpu = &system.vcpus[id];
    let vm = usize::from(vcpu.vm);
    let realtime = system.vms[vm].is(abi::system::vm_flags::REALTIME);
    Rank { vm, priority: vcpu.priority, realtime }
}

impl Pcpu {
    /// Works out who displaces a vCPU that belongs here.
    pub fn learn_displacers(&mut self, id: usize) {
        let (system, kind) = (self.system, kind_of(self.system, id));
        if !kind.policy().needs().a_say {
            return;
        }
        for other in 0..system.header.vcpu_count as usize {
            if policy::displaces(rank(system, other), rank(system, id), kind) {
                self.displaced_by[other] |= 1 << id;
            }
        }
        self.concerned |= 1 << id;
        self.may_wait |= kind.policy().delays(Mode::Kernel);
    }

    /// This vCPU has the core and is on the hardware: decides who goes or comes
    /// because of it.
    #[inline(never)]
    pub fn migrate(&mut self, current: VcpuId) {
        let losers = self.displaced_by[usize::from(current.0)];
        let free = self.displaced & !losers;
        if free != 0 {
            self.release(free);
        }
        if losers != 0 {
            for id in Members(losers & !self.displaced) {
                self.displace(VcpuId(id as u8));
            }
            self.reschedule = false;
        }
    }

    /// Another vCPU has the core of this one.
    fn displace(&mut self, id: VcpuId) {
        let slot = usize::from(id.0);
        let Some(vcpu) = self.vcpus[slot].as_deref() else { return };
        if !vcpu.on || self.working >> slot & 1 == 1 {
            return;
        }
        let idle =
            if self.tell_idle { IDLE.load(Ordering::Relaxed) & !(1 << self.index) } else { 0 };
        let seen = Displaced { ready: self.scheduler.is_ready(id), idle_core: idle != 0 };
        match vcpu.when_displaced(seen) {
            Then::Stay => {}
            Then::Leave => self.depart(id, self.refuge_of(slot)),
            Then::LeaveUntilFree => {
                self.displaced |= 1 << slot;
                self.depart(id, self.refuge_of(slot));
            }
            Then::LeaveForIdle => {
                self.displaced |= 1 << slot;
                self.depart(id, idle.trailing_zeros() as usize);
            }
            Then::StopOthers => {
                self.displaced |= 1 << slot;
                self.set_awaited(id, true);
            }
        }
    }

    /// The core is free for these vCPUs again.
    #[inline(never)]
    pub fn release(&mut self, free: u64) {
        self.displaced &= !free;
        for id in Members(free) {
            let owner = PLACES[id].find();
            if owner != self.index {
                self.tell(owner, Message::Recalls, id, false);
            } else {
                self.set_awaited(VcpuId(id as u8), false);
            }
        }
    }

    /// The core that a vCPU leaves for.
    pub fn refuge_of(&self, id: usize) -> usize {
        usize::from(self.system.vcpus[id].refuge)
    }

    /// An interrupt came for a vCPU of this core: if that lies displaced, its
    /// policy may want it to leave after all.
    #[inline(never)]
    pub fn interrupted(&mut self, id: VcpuId) {
        let slot = usize::from(id.0);
        let Ok(current) = usize::try_from(self.status.current) else { return };
        let lies_displaced = self.displaced_by.get(current).is_some_and(|set| set >> slot & 1 == 1);
        let Some(vcpu) = self.vcpus[slot].as_deref().filter(|_| lies_displaced) else { return };
        if vcpu.policy.interrupted() == Then::Leave {
            self.depart(id, self.refuge_of(slot));
        }
    }
}

/// What the scheduler knows of a vCPU.
pub fn params(system: &System, id: usize) -> Params {
    let table = &system.vcpus[id];
    let quantum = Duration(timer::ns_to_ticks(table.quantum_ns).max(1));
    Params { priority: Priority(table.priority), quantum }
}
