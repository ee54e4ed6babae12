//! The vCPUs of a description as [`sched::topology`] reasons about them.

use crate::model::Vm;
use sched::Set;
use sched::topology::{Placed, Topology};

/// A vCPU by its VM and its index there.
pub(crate) type Id = (usize, usize);

/// Returns all vCPUs in the order of the tables.
pub(crate) fn ids(vms: &[Vm]) -> impl Iterator<Item = Id> + '_ {
    vms.iter().enumerate().flat_map(|(vm, owner)| (0..owner.vcpus.len()).map(move |i| (vm, i)))
}

/// Returns a vCPU whose base stays on.
pub(crate) fn placed(vms: &[Vm], (vm, index): Id) -> Placed {
    let (owner, vcpu) = (&vms[vm], &vms[vm].vcpus[index]);
    Placed {
        vm,
        priority: vcpu.priority,
        realtime: owner.realtime,
        policy: owner.migration_policy,
        others: owner.other_policies,
        base: vcpu.pcpu,
        fallback: vcpu.fallback,
        affinity: Set::from_bits(vcpu.affinity.into()),
        target: vcpu.pcpu,
    }
}

/// Returns all vCPUs, in the order of the tables. `targets`: where those of each pCPU
/// are while it is powered down.
pub(crate) fn all_placed(vms: &[Vm], targets: &[usize]) -> Vec<Placed> {
    let moved = |vcpu: Placed| Placed { target: targets[vcpu.base], ..vcpu };
    ids(vms).map(|id| moved(placed(vms, id))).collect()
}

/// Returns true if a vCPU displaces `loser` wherever it may be.
pub(crate) fn may_displace(vcpu: &Placed, loser: &Placed) -> bool {
    vcpu.places().has(loser.base) && vcpu.displaces(loser)
}

/// Returns the pCPU that drives the UART.
pub(crate) fn uart_core(vms: &[Vm], pcpus: usize) -> usize {
    let placed: Vec<Placed> = ids(vms).map(|id| placed(vms, id)).collect();
    Topology::new(&placed, pcpus).uart_core()
}
