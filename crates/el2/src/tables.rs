//! The tables that the host packed: where they are, and what [`sched::topology`] makes
//! of them.

use crate::arch::{boot, memory};
use abi::MAX_VCPUS;
use abi::system::{HYPERVISOR_SIZE, System, Vm, vm_flags};
#[cfg(feature = "checked")]
use notes::each;
#[cfg(feature = "checked")]
use sched::policy::Request;
use sched::policy::{MigrationPolicy, PolicySet};
use sched::topology::{Placed, Topology};
use sched::{CoreSet, Member, VcpuId};

/// Finds the tables, right behind the hypervisor's memory: not yet verified.
pub fn find() -> &'static System {
    let bundle = memory::at::<System>(boot::image_pa() + HYPERVISOR_SIZE);
    // SAFETY: the boot loader put the bundle there; any bytes are a `System`,
    // and no core writes them. Should there be no RAM, we cannot run either.
    unsafe { &*bundle }
}

/// Each vCPU of a system.
pub struct Vcpus {
    all: [Placed; MAX_VCPUS],
    count: usize,
    cores: usize,
}

impl Vcpus {
    /// Reads them from tables that have been validated.
    #[must_use]
    pub fn of(system: &System) -> Self {
        Self {
            all: core::array::from_fn(|id| placed(system, VcpuId::numbered(id))),
            count: system.header.vcpu_count as usize,
            cores: system.board.pcpu_count as usize,
        }
    }

    /// Returns what follows from where they are placed.
    #[must_use]
    pub fn topology(&self) -> Topology<'_> {
        Topology::new(&self.all[..self.count], self.cores)
    }

    /// Says what the system has, so that the checks stop where something happens for which it has
    /// no reason ([`notes::needs`]).
    #[cfg(feature = "checked")]
    pub fn tell_notes(&self, system: &System) {
        let tables = &system.vcpus[..self.count];
        let count =
            |has: fn(&abi::system::Vcpu) -> bool| tables.iter().filter(|table| has(table)).count();
        let (topology, cores) = (self.topology(), &system.board.consolidation_target);
        let leaves = |&(core, &target): &(usize, &u16)| core != usize::from(target);
        let leavers = cores.iter().enumerate().take(self.cores).filter(leaves).count();
        let marks = count(abi::system::Vcpu::is_markable);
        let boosts = count(abi::system::Vcpu::may_be_boosted);
        let servers = count(|table| table.period_ns > 0);
        let extras = topology.stop_others().len() + servers + marks + boosts;
        let is_peeked = |vm: &usize| policy(system, *vm).policy().request() == Request::Peek;
        let peeked = (0..system.vms().len()).filter(is_peeked).count();
        for (of, count) in [
            (each::MIGRANT, topology.migrants().len()),
            (each::CANDIDATE, topology.candidates().len()),
            (each::EXTRA, extras),
            (each::SECTION, count(abi::system::Vcpu::has_sections)),
            (each::ADVANCE, count(|table| table.timer_advance_ns > 0)),
            (each::LEAVER, leavers),
            (each::WATCHED, usize::from(system.header.watchdog_ns > 0)),
            (each::LINE, system.vms().iter().filter(|vm| vm.lines_pa != 0).count()),
            (each::PEEK, peeked),
            (each::MARK, marks),
            (each::BOOST, boosts),
            (each::MUTEX, system.header.mutex_count as usize),
        ] {
            notes::there_are(of, count);
        }
    }
}

/// The migration policy of a VM. EL2 has refused unknown numbers when it started.
pub fn policy(system: &System, vm: usize) -> MigrationPolicy {
    MigrationPolicy::from_number(system.vm(vm).migration_policy).unwrap_or_default()
}

/// The policies that a VM may have from some moment on.
pub fn other_policies(vm: &Vm) -> PolicySet {
    PolicySet::from_bits(vm.other_policies.into())
}

fn placed(system: &System, id: VcpuId) -> Placed {
    let table = system.vcpu(id.number());
    let (vm, base) = (usize::from(table.vm), usize::from(table.pcpu));
    Placed {
        vm,
        priority: table.priority,
        realtime: system.vm(vm).is(vm_flags::REALTIME),
        policy: policy(system, vm),
        others: other_policies(system.vm(vm)),
        base,
        fallback: table.fallback.into(),
        affinity: CoreSet::from_bits(table.affinity.into()),
        target: system.board.consolidation_target[base].into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::VcpuSet;

    #[test]
    fn a_vcpu_is_placed_as_the_tables_say() {
        let mut system = Box::<System>::default();
        (system.header.vm_count, system.header.vcpu_count) = (1, 2);
        system.board.pcpu_count = 4;
        system.board.consolidation_target = [0, 1, 1, 3, 4, 5, 6, 7];
        system.vms[0].migration_policy = MigrationPolicy::OnDemand as u16;
        system.vcpus[1].pcpu = 2;
        system.vcpus[1].affinity = 0b1101;
        let vcpus = Vcpus::of(&system);
        let topology = vcpus.topology();
        assert_eq!(topology.vcpu(VcpuId(1)).policy, MigrationPolicy::OnDemand);
        assert_eq!(topology.vcpu(VcpuId(1)).places(), CoreSet::from_bits(0b1111));
        assert_eq!(topology.based_at(2), VcpuSet::of(VcpuId(1)));
        assert_eq!(topology.ids().count(), 2);
    }
}
