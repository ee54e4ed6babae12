//! The distributor: shared interrupts, their priorities, and the cores they go to.

use super::offset::{ICACTIVER, ICENABLER, ICFGR, ICPENDR, IGROUPR, IPRIORITYR, ISENABLER};
use crate::arch::gic::PRIORITY_ORDINARY;
use crate::arch::memory::device::{read32, write8, write32, write64};

const CTLR: u64 = 0x0000;
const TYPER: u64 = 0x0004;
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
    let words = (read32(gicd + TYPER) & 0x1f) as u64 + 1;
    for word in 1..words {
        write32(gicd + ICENABLER + 4 * word, u32::MAX);
        write32(gicd + ICPENDR + 4 * word, u32::MAX);
        write32(gicd + ICACTIVER + 4 * word, u32::MAX);
        write32(gicd + IGROUPR + 4 * word, u32::MAX);
        for quad in 0..8 {
            let priorities = u32::from_ne_bytes([PRIORITY_ORDINARY; 4]);
            write32(gicd + IPRIORITYR + 32 * word + 4 * quad, priorities);
        }
    }
    write32(gicd + CTLR, AFFINITY | GROUPS);
    while read32(gicd + CTLR) & PENDING_WRITE != 0 {}
}

/// Enables a shared interrupt, which is disabled, and sends it to one core.
/// Boot core only.
pub fn route(gicd: u64, intid: u32, affinity: u64, priority: u8, edge: bool) {
    let number = u64::from(intid);
    let triggers = gicd + ICFGR + 4 * (number / 16);
    let others = read32(triggers) & !(0b11 << (2 * (number % 16)));
    write32(triggers, others | u32::from(edge) << (2 * (number % 16) + 1));
    write8(gicd + IPRIORITYR + number, priority);
    send_to(gicd, intid, affinity);
    write32(gicd + ISENABLER + 4 * (number / 32), 1 << (number % 32));
}

/// Sends a shared interrupt to another core from now on.
pub fn send_to(gicd: u64, intid: u32, affinity: u64) {
    write64(gicd + IROUTER + 8 * u64::from(intid), affinity);
}

/// Makes a shared interrupt neither pending nor active: a line that is high makes it come again.
pub fn clear(gicd: u64, intid: u32) {
    let (word, bit) = (u64::from(intid / 32), 1 << (intid % 32));
    write32(gicd + ICPENDR + 4 * word, bit);
    write32(gicd + ICACTIVER + 4 * word, bit);
}
