//! One core's private interrupts. They are in the registers of the distributor, which each core finds
//! for itself.

use super::cpu_interface;
use super::offset::{
    ICACTIVER, ICENABLER, ICFGR, ICPENDR, IGROUPR, IPRIORITYR, ISACTIVER, ISENABLER, ITARGETSR,
};
use crate::arch::gic::{Doorbell, MAINTENANCE, private_priority};
use crate::arch::memory::device::{read32, write8, write32};
use crate::arch::timer::{EL2_INTID, VIRTUAL_INTID, WATCH_INTID};
use abi::system::Board;

/// What a GICv3's redistributor is: one core's private interrupts.
#[derive(Clone, Copy)]
pub struct Redistributor {
    /// The distributor.
    private: u64,
}

impl Redistributor {
    /// Returns where a core's own is, by the core's index.
    #[must_use]
    pub fn frame(board: &Board, _index: usize) -> u64 {
        board.gicd_pa
    }

    /// Returns true if the CPU interface of this core has the number that its affinity says. A
    /// GIC with a single interface says no number.
    #[must_use]
    pub fn serves(frame: u64, affinity: u64) -> bool {
        let own = read32(frame + ITARGETSR) & 0xff;
        own == 1 << (affinity & 7) || own == 0 && affinity == 0
    }

    /// Takes over this core's own: enables those that EL2 takes.
    /// `separate`: see docs/src/design/decisions.md, 7.
    pub fn start(frame: u64, separate: bool) -> Self {
        write32(frame + ICENABLER, u32::MAX);
        write32(frame + ICPENDR, u32::MAX);
        write32(frame + ICACTIVER, u32::MAX);
        write32(frame + IGROUPR, 0);
        // All PPIs are levels, as the timers' and the maintenance interrupt are; a boot loader may have
        // left them otherwise. Where this cannot be set, it is so.
        write32(frame + ICFGR + 4, 0);
        for intid in 0..32 {
            write8(frame + IPRIORITYR + u64::from(intid), private_priority(intid, separate));
        }
        let doorbells = Doorbell::ALL.iter().fold(0, |set, &doorbell| set | 1 << doorbell as u32);
        let taken = [MAINTENANCE, EL2_INTID, VIRTUAL_INTID];
        let taken = taken.iter().fold(doorbells, |set, intid| set | 1 << intid);
        write32(frame + ISENABLER, taken);
        cpu_interface::start();
        Self { private: frame }
    }

    /// Enables the interrupt of the watchdog's timer.
    pub fn enable_watch(self) {
        write32(self.private + ISENABLER, 1 << WATCH_INTID);
    }

    /// Makes the virtual timer's physical interrupt active, as it was when its
    /// guest last ran.
    pub fn set_timer_active(self) {
        // The guest's end of interrupt goes to the same GIC, by the virtual interface, and the write
        // is there before: reading it back makes sure.
        write32(self.private + ISACTIVER, 1 << VIRTUAL_INTID);
        read32(self.private + ISACTIVER);
    }

    /// Makes the virtual timer's physical interrupt inactive, for the next guest.
    pub fn set_timer_inactive(self) {
        write32(self.private + ICACTIVER, 1 << VIRTUAL_INTID);
    }
}
