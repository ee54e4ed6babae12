//! Where a GICv2 has each core's private interrupts: in the distributor, at the same addresses for all.

use super::ITARGETSR;
use crate::arch::memory::device::read32;
use abi::system::Board;

/// Returns where a core's own are, by the core's index.
#[must_use]
pub fn frame(board: &Board, _index: usize) -> u64 {
    board.gicd_pa
}

/// Returns true if the CPU interface of this core has the number that its affinity says. A
/// GIC with a single interface says no number.
pub fn serves(gicd: u64, affinity: u64) -> bool {
    let own = read32(gicd + ITARGETSR) & 0xff;
    own == 1 << (affinity & 7) || own == 0 && affinity == 0
}

/// Returns where the registers of private interrupts are.
pub const fn open(gicd: u64) -> u64 {
    gicd
}

/// Waits until interrupts that were disabled are: they are at once.
pub const fn settle(_gicd: u64) {}
