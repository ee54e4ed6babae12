//! What EL2 finds out about a core, and what it writes there once.

use crate::arch::fake::machine;
use crate::arch::fake::registers::Register;
use crate::arch::gic;
use abi::system::Board;
use zerocopy::FromZeros;

fn install() {
    machine::install(Board::new_zeroed());
}

fn register(name: &str) -> u64 {
    machine::with(|machine| machine.register(0, Register::named(name)))
}

#[test]
fn a_guest_cannot_switch_the_interrupt_interface_off() {
    const SRE_EL1: Register = Register::named("icc_sre_el1");
    const SRE_EL2: Register = Register::named("icc_sre_el2");
    install();
    assert!(gic::claim(), "its accesses trap");
    assert_eq!((register("icc_sre_el1"), register("icc_sre_el2")), (7, 7));

    // They do not trap: a core with a GICv2's interface.
    machine::with(|machine| machine.fixed.push((SRE_EL2, 8)));
    assert!(!gic::claim());
    // They do not trap, and the interface cannot be switched off: as in QEMU.
    machine::with(|machine| machine.fixed.push((SRE_EL1, 7)));
    assert!(gic::claim());
}
