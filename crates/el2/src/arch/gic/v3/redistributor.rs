//! What a GICv3's redistributor needs before its private interrupts can be set up.

use crate::arch::memory::device::{read32, write32};
use abi::system::Board;

const CTLR: u64 = 0x0000;
/// The upper half of GICR_TYPER: the affinity of the core.
const TYPER_AFFINITY: u64 = 0x000c;
const WAKER: u64 = 0x0014;
/// GICR_CTLR.EnableLPIs.
const ENABLE_LPIS: u32 = 1 << 0;
/// GICR_CTLR.RWP: a write is still on its way.
const PENDING_WRITE: u32 = 1 << 3;
/// The second frame, with the registers of SGIs and PPIs.
const SGI_FRAME: u64 = 0x1_0000;
const PROCESSOR_SLEEP: u32 = 1 << 1;
const CHILDREN_ASLEEP: u32 = 1 << 2;

/// Returns where a core's own is, by the core's index.
#[must_use]
pub fn frame(board: &Board, index: usize) -> u64 {
    board.gicr_pa + index as u64 * board.gicr_stride
}

/// Returns true if the redistributor at `frame` is that of the core with this affinity.
pub fn serves(frame: u64, affinity: u64) -> bool {
    u64::from(read32(frame + TYPER_AFFINITY)) == affinity >> 32 << 24 | affinity & 0xff_ffff
}

/// Wakes the redistributor at `frame`. Returns where it has the registers of private interrupts.
pub fn open(frame: u64) -> u64 {
    write32(frame + WAKER, read32(frame + WAKER) & !PROCESSOR_SLEEP);
    while read32(frame + WAKER) & CHILDREN_ASLEEP != 0 {}
    // LPIs may be a boot loader's; where they cannot be switched off, they are spurious.
    write32(frame + CTLR, read32(frame + CTLR) & !ENABLE_LPIS);
    frame + SGI_FRAME
}

/// Waits until interrupts that were disabled are.
pub fn settle(frame: u64) {
    while read32(frame + CTLR) & PENDING_WRITE != 0 {}
}
