//! What only a GICv2's distributor has: the numbers of the CPU interfaces.

use super::super::distributor::reset_interrupts;
use super::ITARGETSR;
use crate::arch::memory::device::{write8, write32};

const CTLR: u64 = 0x000;
/// Both group enables; in a non-secure view, bit 0 is that of group 1.
const GROUPS: u32 = 1 << 1 | 1 << 0;

/// Brings the distributor into a known state: everything in group 0, or in the one group that a
/// non-secure view has; disabled, of normal priority. Boot core only.
pub fn reset_distributor(gicd: u64) {
    write32(gicd + CTLR, 0);
    reset_interrupts(gicd);
    write32(gicd + CTLR, GROUPS);
}

/// Sends a shared interrupt to another core from now on.
pub fn send_to(gicd: u64, intid: u32, affinity: u64) {
    write8(gicd + ITARGETSR + u64::from(intid), 1 << (affinity & 7));
}
