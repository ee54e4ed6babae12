//! Cores between which vCPUs move must be alike: a guest asks once what its core can do, and what
//! EL2 saves of a vCPU on one core it loads on another.

use crate::arch::{cpu, statics};
use crate::exits::identification;
use abi::MAX_PCPUS;
use core::sync::atomic::{AtomicU64, Ordering};
use sched::CoreSet;
use sched::topology::Topology;

statics! {
    /// What each core is like, from when it has begun; 0 before.
    static KINDS: [AtomicU64; MAX_PCPUS] = [const { AtomicU64::new(0) }; MAX_PCPUS];
}

/// Says what this core is like, and checks that the others between which vCPUs move to and from it
/// are the same, as far as they have begun: of two that differ, at least one sees it.
///
/// # Errors
/// Says in words what is wrong.
pub fn check(topology: &Topology<'_>, index: usize) -> Result<(), &'static str> {
    let own = kind();
    KINDS[index].store(own, Ordering::SeqCst);
    let places = topology.ids().map(|id| topology.vcpu(id).places());
    let partners =
        places.filter(|places| places.has(index)).fold(CoreSet::EMPTY, |all, some| all | some);
    let alike = |core: usize| [0, own].contains(&KINDS[core].load(Ordering::SeqCst));
    if !(0..MAX_PCPUS).filter(|&core| partners.has(core)).all(alike) {
        return Err("vCPUs may move between cores that differ (MIDR_EL1, CTR_EL0, DCZID_EL0, \
                    CNTFRQ_EL0, ICH_VTR_EL2 or identification registers)");
    }
    Ok(())
}

/// Returns a number for all that a guest may find out about this core, and for what there is to
/// save of it; not 0. Different cores have different numbers, but for one pair in 2^64.
fn kind() -> u64 {
    let shown = (0..SHOWN).map(|at| identification(1 + at / 8, at % 8));
    shown.chain(cpu::own_properties()).fold(0, mixed).max(1)
}

/// Registers that [`identification`] shows: CRm 1 to 7, op2 0 to 7.
const SHOWN: u64 = 7 * 8;

/// Mixes a register into what stands for those before it.
#[inline(never)]
fn mixed(sum: u64, word: u64) -> u64 {
    // 2^64 divided by the golden ratio; odd, so that two words never become one.
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    (sum.rotate_left(23) ^ word).wrapping_mul(MIX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::fake::machine;
    use crate::arch::fake::registers::Register;
    use abi::system::Board;
    use sched::policy::{MigrationPolicy, PolicySet};
    use sched::topology::Placed;
    use zerocopy::FromZeros;

    /// Returns what three cores find, one after the other; `different`: which register is another
    /// one on core 1. A vCPU is based at core 0 and may be at `others`.
    fn found(different: &str, others: u64) -> [bool; 3] {
        machine::install(Board::new_zeroed());
        let vcpu = Placed {
            vm: 0,
            priority: 1,
            realtime: false,
            policy: MigrationPolicy::OnDemand,
            others: PolicySet::EMPTY,
            base: 0,
            fallback: 0,
            affinity: CoreSet::from_bits(others | 1),
            target: 0,
        };
        let vcpus = [vcpu];
        let topology = Topology::new(&vcpus, 3);
        [0, 1, 2].map(|core| {
            machine::with(|machine| {
                machine.current = core;
                machine.cores[core].registers[Register::named(different).0] ^=
                    if core == 1 { 1 << 20 } else { 0 };
            });
            check(&topology, core).is_ok()
        })
    }

    #[test]
    fn vcpus_move_between_cores_of_one_kind_only() {
        for register in ["midr_el1", "ctr_el0", "ich_vtr_el2", "cntfrq_el0", "s3_0_c0_c6_0"] {
            assert_eq!(found(register, 0b000), [true, true, true], "{register}: it stays");
            assert_eq!(found(register, 0b100), [true, true, true], "{register}: to one alike");
            assert_eq!(found(register, 0b010), [true, false, true], "{register}: to another one");
            assert_eq!(found(register, 0b110), [true, false, false], "{register}: to both");
        }
        assert_eq!(found("tpidr_el2", 0b110), [true, true, true], "that is no property");
    }
}
