//! A redistributor: one core's private interrupts.

use super::cpu_interface;
use super::offset::{
    ICACTIVER, ICENABLER, ICFGR, ICPENDR, IGROUPR, IPRIORITYR, ISACTIVER, ISENABLER,
};
use crate::arch::gic::{Doorbell, MAINTENANCE, private_priority};
use crate::arch::memory::device::{read32, write8, write32};
use crate::arch::timer::{EL2_INTID, VIRTUAL_INTID, WATCH_INTID};
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

/// One core's redistributor.
#[derive(Clone, Copy)]
pub struct Redistributor {
    /// The second frame.
    private: u64,
}

impl Redistributor {
    /// Returns where a core's own is, by the core's index.
    #[must_use]
    pub fn frame(board: &Board, index: usize) -> u64 {
        board.gicr_pa + index as u64 * board.gicr_stride
    }

    /// Returns true if the redistributor at `frame` is that of the core with this affinity.
    #[must_use]
    pub fn serves(frame: u64, affinity: u64) -> bool {
        u64::from(read32(frame + TYPER_AFFINITY)) == affinity >> 32 << 24 | affinity & 0xff_ffff
    }

    /// Takes over the redistributor at `frame`, this core's own: wakes it, puts
    /// all its interrupts into group 1 and enables those that EL2 takes.
    /// `separate`: see docs/src/design/decisions.md, 7.
    pub fn start(frame: u64, separate: bool) -> Self {
        write32(frame + WAKER, read32(frame + WAKER) & !PROCESSOR_SLEEP);
        while read32(frame + WAKER) & CHILDREN_ASLEEP != 0 {}
        // LPIs may be a boot loader's; where they cannot be switched off, they are spurious.
        write32(frame + CTLR, read32(frame + CTLR) & !ENABLE_LPIS);
        let sgi = frame + SGI_FRAME;
        write32(sgi + ICENABLER, u32::MAX);
        while read32(frame + CTLR) & PENDING_WRITE != 0 {}
        write32(sgi + ICPENDR, u32::MAX);
        write32(sgi + ICACTIVER, u32::MAX);
        write32(sgi + IGROUPR, u32::MAX);
        // All PPIs are levels, as the timers' and the maintenance interrupt are; a boot loader may have
        // left them otherwise. Where this cannot be set, it is so.
        write32(sgi + ICFGR + 4, 0);
        for intid in 0..32 {
            write8(sgi + IPRIORITYR + u64::from(intid), private_priority(intid, separate));
        }
        let doorbells = Doorbell::ALL.iter().fold(0, |set, &doorbell| set | 1 << doorbell as u32);
        let taken = [MAINTENANCE, EL2_INTID, VIRTUAL_INTID];
        let taken = taken.iter().fold(doorbells, |set, intid| set | 1 << intid);
        write32(sgi + ISENABLER, taken);
        cpu_interface::start();
        Self { private: sgi }
    }

    /// Enables the interrupt of the watchdog's timer.
    pub fn enable_watch(self) {
        write32(self.private + ISENABLER, 1 << WATCH_INTID);
    }

    /// Makes the virtual timer's physical interrupt active, as it was when its
    /// guest last ran.
    pub fn set_timer_active(self) {
        let register = self.private + ISACTIVER;
        write32(register, 1 << VIRTUAL_INTID);
        // Reading it back lets the write arrive: it may be held in a buffer on the way, and the
        // guest's end of interrupt, which goes another way, overtake it. Then the interrupt
        // would be active with no guest to end it.
        read32(register);
    }

    /// Makes the virtual timer's physical interrupt inactive, for the next guest.
    pub fn set_timer_inactive(self) {
        write32(self.private + ICACTIVER, 1 << VIRTUAL_INTID);
    }
}
