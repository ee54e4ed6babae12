//! What only a GICv3's distributor has: affinities, and writes that take their time.

use super::super::distributor::reset_interrupts;
use crate::arch::memory::device::{read32, write32, write64};

const CTLR: u64 = 0x0000;
const IROUTER: u64 = 0x6000;
/// ARE_NS: affinity routing, of which it is unpredictable what follows if it is cleared.
const AFFINITY: u32 = 1 << 4;
/// Both non-secure group enables.
const GROUPS: u32 = 1 << 1 | 1 << 0;
/// GICD_CTLR.RWP: a write is still on its way.
const PENDING_WRITE: u32 = 1 << 31;

/// Brings the distributor into a known state: everything in group 1, disabled,
/// of normal priority. Boot core only.
pub fn reset_distributor(gicd: u64) {
    write32(gicd + CTLR, AFFINITY);
    while read32(gicd + CTLR) & PENDING_WRITE != 0 {}
    reset_interrupts(gicd);
    write32(gicd + CTLR, AFFINITY | GROUPS);
    while read32(gicd + CTLR) & PENDING_WRITE != 0 {}
}

/// Sends a shared interrupt to another core from now on.
pub fn send_to(gicd: u64, intid: u32, affinity: u64) {
    write64(gicd + IROUTER + 8 * u64::from(intid), affinity);
}
