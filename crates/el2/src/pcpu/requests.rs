//! What guests and an operator ask for while a system runs: that a vCPU go to another core
//! (migration on request), or that a VM have another migration policy.
//!
//! The host has admitted every core to which a vCPU may be asked to go, so nothing is computed here.
//! A request is a word that all cores read, and a message to the core that owns the vCPU. A core that
//! receives a vCPU reads the word, too: the message may have gone to the core where it was before.

use super::Pcpu;
use crate::shared::{BOARD, POWER, REQUESTED, VMS};
use crate::{status, tables};
use abi::MAX_PCPUS;
use abi::console::Order;
use abi::service;
use abi::system::System;
use core::sync::atomic::{Ordering, fence};
use sched::policy::{Answers, MigrationPolicy};
use sched::{CoreSet, Member, Message, VcpuId};

/// Gives each VM the policy that its tables say. Boot core only, before the others run.
pub fn set_policies(system: &System) {
    (0..system.header.vm_count as usize).for_each(|vm| set_first_policy(system, vm));
}

#[inline(never)]
fn set_first_policy(system: &System, vm: usize) {
    let kind = tables::policy(system, vm);
    set_policy(system, vm, kind, kind.policy().answers());
}

/// Gives a VM this policy, which says this.
fn set_policy(system: &System, vm: usize, kind: MigrationPolicy, says: Answers) {
    VMS[vm].answers.store(says.bits(), Ordering::Relaxed);
    status::note_policy(system, vm, kind as u8);
}

impl Pcpu {
    /// Returns the core where a vCPU belongs when it is not displaced: the one that was asked for, or
    /// its base.
    pub(super) fn wanted_at(&self, id: VcpuId) -> usize {
        REQUESTED[id.number()].load(Ordering::Relaxed).into()
    }

    /// Asks that a vCPU of this system go to a core. Returns what [`service::MIGRATE`] answers.
    #[inline(never)]
    pub fn request_move(&self, id: VcpuId, to: u64) -> i64 {
        let table = self.system.vcpu(id.number());
        let vm = usize::from(table.vm);
        if !self.moves_on_request(vm) {
            return service::NOT_SUPPORTED;
        }
        let may_run_on = CoreSet::from_bits(table.affinity.into());
        if to >= MAX_PCPUS as u64 || !may_run_on.has(to as usize) {
            return service::NOT_ALLOWED;
        }
        REQUESTED[id.number()].store(to as u8, Ordering::Relaxed);
        let owner = BOARD.find(id);
        if owner as u64 == to {
            return service::ALREADY_THERE;
        }
        // One that is off goes when it is switched on. Its core would be interrupted for nothing.
        if !POWER[id.number()].hears() {
            return 0;
        }
        self.pass_request(owner, id);
        0
    }

    /// Has the core that owns a vCPU send it to where it was asked to be.
    #[inline(never)]
    fn pass_request(&self, owner: usize, id: VcpuId) {
        self.tell(owner, Message::Recalls, id.number(), self.doorbell_for(id));
    }

    /// Has a vCPU that was switched on just now go to where it was asked to be while it was off.
    #[inline(never)]
    pub(super) fn follow_request(&self, id: VcpuId) {
        if !self.moves_on_request(self.vm_of(id)) {
            return;
        }
        // It says that it is on; a core that asks reads that behind a fence, too, after it has written.
        fence(Ordering::SeqCst);
        if self.wanted_at(id) != self.index {
            self.pass_request(self.index, id);
        }
    }

    /// Returns true if the vCPUs of a VM go where they are asked to go.
    pub fn moves_on_request(&self, vm: usize) -> bool {
        self.system.vm(vm).migration_policy == MigrationPolicy::OnRequest as u16
    }

    /// Does what an operator asks for. The host says why one is refused: it knows as much.
    #[inline(never)]
    pub(super) fn follow_order(&self, order: Order) {
        match order {
            Order::Move { vcpu, pcpu } => {
                if u32::from(vcpu) < self.system.header.vcpu_count {
                    self.request_move(VcpuId(vcpu), pcpu.into());
                }
            }
            Order::Policy { vm, policy } => {
                // EL2 has refused others than the switchable ones when it started.
                if let Some(kind) = MigrationPolicy::from_number(policy.into())
                    && let Some(table) = self.system.vms().get(usize::from(vm))
                    && tables::other_policies(table).has(kind)
                {
                    set_policy(self.system, vm.into(), kind, kind.policy().answers());
                }
            }
        }
    }
}
