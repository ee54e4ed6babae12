//! A core is not interrupted for a vCPU that is off: its sibling could do that as often as it likes, and a neighbour
//! would pay.

use super::program::{self, loaded, trap};
use crate::arch::fake::machine;
use crate::arch::gic::Doorbell;
use crate::arch::sysreg::ec;
use crate::pcpu::Pcpu;
use sched::VcpuId;

/// The first of a VM with three vCPUs, each on a core of its own.
const FIRST: VcpuId = VcpuId(0);
/// A sibling, and its core.
const SIBLING: usize = 1;

/// The loaded guest interrupts its sibling: it writes x1 to ICC_SGI1R_EL1.
fn interrupt_sibling(core: &mut Pcpu) {
    const WRITE: u64 = ec::SYSREG << 26 | 1 << 25 | 3 << 20 | 5 << 17 | 12 << 10 | 1 << 5 | 11 << 1;
    core.loaded_mut().expect("a guest runs").general().x[1] = 1 << SIBLING;
    trap(core, WRITE);
}

/// Returns true if a doorbell of the sibling's core rings, and has it ring no more.
fn rings() -> bool {
    let doorbells = Doorbell::ALL.iter().fold(0, |all, doorbell| all | 1 << *doorbell as u32);
    machine::with(|machine| {
        let latched = &mut machine.cores[SIBLING].private.latched;
        let rings = *latched & doorbells != 0;
        *latched &= !doorbells;
        rings
    })
}

#[test]
fn no_core_is_interrupted_for_a_vcpu_that_is_off() {
    program::run("boosted", |core| {
        assert_eq!(loaded(core), Some(FIRST));
        rings();
        interrupt_sibling(core);
        assert!(!rings(), "it is off");
        program::switch_on(core, SIBLING as u64);
        assert_eq!(core.loaded_mut().expect("a guest runs").general().x[0], 0, "CPU_ON");
        assert!(rings(), "it is switched on");
    });
}
