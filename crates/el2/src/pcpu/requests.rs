//! What guests and an operator ask for while a system runs: that a vCPU go to another core
//! (migration on request), or that a VM have another migration policy.
//!
//! The host has admitted every core to which a vCPU may be asked to go, so nothing is computed here.
//! A request is a word that all cores read, and a message to the core that owns the vCPU. A core that
//! receives a vCPU reads the word, too: the message may have gone to the core where it was before.

use super::Pcpu;
use crate::shared::{BOARD, REQUESTED, VMS};
use crate::{status, tables};
use abi::console::Order;
use abi::service;
use abi::system::System;
use core::sync::atomic::Ordering;
use sched::policy::{Answers, MigrationPolicy};
use sched::{Member, Message, VcpuId};

/// Gives each VM the policy that its tables say. Boot core only, before the others run.
pub fn set_policies(system: &System) {
    (0..system.header.vm_count as usize).for_each(|vm| set_first_policy(system, vm));
}

#[inline(never)]
fn set_first_policy(system: &System, vm: usize) {
    let kind = tables::policy(system, vm);
    set_policy(system, vm, kind as u16, Answers::of(kind.policy()));
}

/// Records that a VM has the policy with this number, which says this.
fn set_policy(system: &System, vm: usize, number: u16, says: Answers) {
    VMS[vm].answers.store(says.bits(), Ordering::Relaxed);
    status::note_policy(system, vm, number as u8);
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
        if to >= 16 || table.affinity >> to & 1 == 0 {
            return service::NOT_ALLOWED;
        }
        REQUESTED[id.number()].store(to as u8, Ordering::Relaxed);
        let owner = BOARD.find(id);
        if owner as u64 == to {
            return service::ALREADY_THERE;
        }
        self.pass_request(owner, id);
        0
    }

    /// Has the core that owns a vCPU send it to where it was asked to be.
    #[inline(never)]
    fn pass_request(&self, owner: usize, id: VcpuId) {
        self.tell(owner, Message::Recalls, id.number(), self.is_urgent(id));
    }

    /// Has a vCPU that was switched on just now go to where it was asked to be while it was off.
    #[inline(never)]
    pub(super) fn follow_request(&self, id: VcpuId) {
        if self.moves_on_request(self.vm_of(id)) && self.wanted_at(id) != self.index {
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
                let others =
                    self.system.vms().get(usize::from(vm)).map_or(0, |vm| vm.other_policies);
                // EL2 has refused others than the switchable ones when it started.
                if policy < 16 && others >> policy & 1 == 1 {
                    let (vm, number) = (vm.into(), policy.into());
                    set_policy(self.system, vm, number, Answers::of_switchable(number));
                }
            }
        }
    }
}
