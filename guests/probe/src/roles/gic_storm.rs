//! Neighbours that give EL2 as much work at their interrupt controller as they can, for ever: in
//! each, every INTID that there is is in play, and each step is one stay at EL2.

use crate::arch::cpu;
use crate::arch::sysreg::write;
use crate::gic::{self, gicd, offset::*};
use crate::platform::GICD;
use crate::println;
use crate::suite::{Check, Done};
use abi::platform::INTID_END;

/// Writes all ones to a bit register of every word.
fn write_all(register: u64) {
    gic::sgi_frame(cpu::index()).write32(register, !0);
    for word in 1..u64::from(INTID_END / 32) {
        GICD.write32(register + word * 4, !0);
    }
}

/// Everything is pending and masked, and EL2 has to choose anew at each access.
pub fn pending() -> Check<Done> {
    write::icc_pmr_el1(0);
    write_all(ISENABLER);
    write_all(ISPENDR);
    println!("writing GICD_CTLR");
    loop {
        GICD.write32(gicd::CTLR, gicd::CTLR_ARE | gicd::CTLR_ENABLE_GROUP1);
    }
}

/// Everything is active, nearly all of it in no list register: each end of an interrupt is a
/// maintenance interrupt, for which EL2 looks for the interrupt that it ends.
pub fn ends() -> Check<Done> {
    /// Any SPI.
    const INTID: u32 = 200;
    write::icc_pmr_el1(0);
    write_all(ISACTIVER);
    println!("ending interrupts");
    loop {
        // Made active again as soon as few are left.
        for _ in 0..INTID_END / 2 {
            write::icc_ap1r0_el1(u64::from(u32::MAX));
            gic::end(INTID);
        }
        write_all(ISACTIVER);
    }
}
