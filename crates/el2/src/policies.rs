//! Carrying out what policies say ([`sched::policy`]).
//!
//! A policy is asked when a vCPU that displaces others has the core: its
//! registers are on the hardware by then, and its guest is next. Which vCPUs it
//! displaces was worked out at the start; a core none of whose vCPUs has a
//! policy with a say finds a zero, and that is all it pays.

use crate::arch::{cpu, timer};
use crate::pcpu::Pcpu;
use crate::shared::{PLACES, RECALLS, TAKEN};
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

/// Whether there is more than one core that a vCPU could leave for.
pub fn chooses(system: &System, id: usize) -> bool {
    let (needs, havens) = (of(system, id).needs(), system.vcpus[id].havens.count_ones());
    needs.wanders && (havens > 1 || havens == 1 && !needs.refuge)
}

/// Whether a vCPU that is away from its base may go on, or back by itself.
pub fn moves_on(system: &System, id: usize) -> bool {
    let asks_base = system.vcpus[id].havens != 0 && of(system, id).needs().asks_base;
    chooses(system, id) || asks_base
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
        self.wanderers |= u64::from(moves_on(system, id)) << id;
        self.tell_taken |= kind.policy().needs().asks_base;
        self.may_wait |= kind.policy().delays(Mode::Kernel);
    }

    /// This vCPU has the core and is on the hardware: decides who goes or comes
    /// because of it. `shared`: equals are ready, too.
    #[inline(never)]
    pub fn migrate(&mut self, current: VcpuId, shared: bool) {
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
        if self.tell_taken {
            TAKEN[self.index].store(losers != 0, Ordering::Relaxed);
        }
        if self.visitors != 0 {
            self.make_room(current, shared);
        }
    }

    /// Another vCPU has the core of this one.
    fn displace(&mut self, id: VcpuId) {
        let slot = usize::from(id.0);
        let Some(vcpu) = self.vcpus[slot].as_deref() else { return };
        if !vcpu.on || self.working >> slot & 1 == 1 {
            return;
        }
        let idle = self.idle_havens_of(slot);
        let seen = Displaced { ready: self.scheduler.is_ready(id), idle_core: idle != 0 };
        let then = vcpu.when_displaced(seen);
        match then {
            Then::Stay => {}
            Then::StopOthers => {
                self.displaced |= 1 << slot;
                self.set_awaited(id, true);
            }
            Then::LeaveUntilFree | Then::LeaveForIdle | Then::Leave => {
                let to = self.haven_among(slot, idle, seen.ready);
                if to == self.index {
                    // There is nowhere to go, or no longer.
                    return;
                }
                // Who just leaves comes back by itself.
                self.displaced |= u64::from(then != Then::Leave) << slot;
                self.hand_over(id, to);
            }
        }
    }

    /// The core is free for these vCPUs again.
    #[inline(never)]
    pub fn release(&mut self, free: u64) {
        self.displaced &= !free;
        // Left before anybody asks where they are: whoever takes one in sees it.
        let wanderers = free & self.wanderers;
        if wanderers != 0 {
            RECALLS.want(wanderers);
        }
        for id in Members(free) {
            let owner = PLACES[id].find();
            if owner != self.index {
                self.tell(owner, Message::Recalls, id, false);
            } else {
                RECALLS.settle(VcpuId(id as u8));
                self.set_awaited(VcpuId(id as u8), false);
            }
        }
    }

    /// An interrupt came for a vCPU of this core: if that lies displaced, its
    /// policy may want it to leave after all.
    #[inline(never)]
    pub fn interrupted(&mut self, id: VcpuId) {
        let slot = usize::from(id.0);
        let Ok(current) = usize::try_from(self.status.current) else { return };
        // Who has work for its VM to do stays, as in [`Self::displace`]: elsewhere
        // its guest would run without it.
        let lies = |set: &u64| (set & !self.working) >> slot & 1 == 1;
        let may_go = self.displaced_by.get(current).is_some_and(lies);
        let Some(vcpu) = self.vcpus[slot].as_deref().filter(|_| may_go) else { return };
        if vcpu.policy.interrupted() == Then::Leave {
            let to = self.haven_of(slot);
            if to != self.index {
                self.depart(id, to);
            }
        }
    }
}

/// What the scheduler knows of a vCPU.
pub fn params(system: &System, id: usize) -> Params {
    let table = &system.vcpus[id];
    let quantum = Duration(timer::ns_to_ticks(table.quantum_ns).max(1));
    Params { priority: Priority(table.priority), quantum }
}
