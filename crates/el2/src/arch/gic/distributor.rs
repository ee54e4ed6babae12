//! The distributor: shared interrupts, their priorities, and the cores they go to.

use super::PRIORITY_ORDINARY;
use super::offset::{ICACTIVER, ICENABLER, ICFGR, ICPENDR, IGROUPR, IPRIORITYR, ISENABLER};
use super::version::GROUP;
use super::version::distributor::send_to;
use crate::arch::memory::device::{read32, write8, write32};

/// GICD_TYPER.
const TYPER: u64 = 0x004;

/// Disables all shared interrupts and gives them their group and the normal priority.
pub(super) fn reset_interrupts(gicd: u64) {
    let words = (read32(gicd + TYPER) & 0x1f) as u64 + 1;
    for word in 1..words {
        write32(gicd + ICENABLER + 4 * word, u32::MAX);
        write32(gicd + ICPENDR + 4 * word, u32::MAX);
        write32(gicd + ICACTIVER + 4 * word, u32::MAX);
        write32(gicd + IGROUPR + 4 * word, GROUP);
        for quad in 0..8 {
            let priorities = u32::from_ne_bytes([PRIORITY_ORDINARY; 4]);
            write32(gicd + IPRIORITYR + 32 * word + 4 * quad, priorities);
        }
    }
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

/// Makes a shared interrupt neither pending nor active: a line that is high makes it come again.
pub fn clear(gicd: u64, intid: u32) {
    let (word, bit) = (u64::from(intid / 32), 1 << (intid % 32));
    write32(gicd + ICPENDR + 4 * word, bit);
    write32(gicd + ICACTIVER + 4 * word, bit);
}
