//! A core's physical CPU interface: taking interrupts, masking them, ringing.

use super::{gicc, gicd};
use crate::arch::gic::{MASK_NOTHING, SGI_END};
use crate::arch::machine::instructions;
use crate::arch::memory::device::{read32, write32};

const CTLR: u64 = 0x0000;
const PMR: u64 = 0x0004;
const BPR: u64 = 0x0008;
const IAR: u64 = 0x000c;
const EOIR: u64 = 0x0010;
const APR: u64 = 0x00d0;
const NSAPR: u64 = 0x00e0;
const DIR: u64 = 0x1000;

/// GICD_SGIR.
const SGIR: u64 = 0x0f00;

/// An acknowledged interrupt's number; above it, an SGI has its sender's.
const INTID: u32 = 0x3ff;

/// Switches the interface on: everything comes, priority drop and deactivation are two steps.
pub fn start() {
    /// Both groups, which interrupt as IRQs. Where the view is non-secure, bit 0 is group 1.
    const GROUPS: u32 = 1 << 1 | 1 << 0;
    /// EOImodeS and EOImodeNS; EOImodeNS in a non-secure view.
    const EOI_MODES: u32 = 1 << 10 | 1 << 9;
    write32(gicc(CTLR), 0);
    // What a boot loader has taken and not ended would keep the rest waiting.
    for number in 0..4 {
        write32(gicc(APR + 4 * number), 0);
        write32(gicc(NSAPR + 4 * number), 0);
    }
    write32(gicc(PMR), MASK_NOTHING as u32);
    write32(gicc(BPR), 0);
    write32(gicc(CTLR), EOI_MODES | GROUPS);
    instructions::synchronize();
}

/// Acknowledges the most urgent interrupt; [`super::super::SPECIAL`] and above:
/// none. An SGI is ended with that.
pub fn acknowledge() -> u32 {
    let taken = read32(gicc(IAR));
    let intid = taken & INTID;
    if intid < SGI_END {
        write32(gicc(EOIR), taken);
        write32(gicc(DIR), taken);
    }
    // What a doorbell's sender wrote before it is read after this.
    instructions::complete();
    intid
}

/// Lets interrupts of its priority come again.
pub fn drop_priority(intid: u32) {
    if intid >= SGI_END {
        write32(gicc(EOIR), intid);
    }
}

/// Lets this interrupt come again.
pub fn deactivate(intid: u32) {
    if intid >= SGI_END {
        write32(gicc(DIR), intid);
    }
}

/// Chooses which interrupts stay pending.
pub fn set_mask(mask: u64) {
    write32(gicc(PMR), mask as u32);
    // It is the interface's when the next instruction asks what pends.
    instructions::complete();
}

/// Returns how [`ring`] names the core of this affinity (GICD_SGIR.CPUTargetList).
pub const fn bell(affinity: u64) -> u64 {
    1 << (16 + (affinity & 7))
}

/// Interrupts another core, or this one.
pub fn ring(bell: u64, doorbell: u32) {
    instructions::publish();
    write32(gicd(SGIR), bell as u32 | doorbell);
    instructions::synchronize();
}
