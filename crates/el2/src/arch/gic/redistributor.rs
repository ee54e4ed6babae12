//! One core's private interrupts: in a GICv3, those of its redistributor; in a GICv2, those of which it
//! finds its own in the distributor.

use super::offset::{
    ICACTIVER, ICENABLER, ICFGR, ICPENDR, IGROUPR, IPRIORITYR, ISACTIVER, ISENABLER,
};
use super::version::redistributor::{open, settle};
use super::version::{GROUP, cpu_interface};
use super::{
    Doorbell, MAINTENANCE, PRIORITY_LOWER_REALTIME, PRIORITY_ORDINARY, PRIORITY_REALTIME,
    PRIORITY_TIMER,
};
use crate::arch::memory::device::{read32, write8, write32};
use crate::arch::timer::{EL2_INTID, VIRTUAL_INTID, WATCH_INTID};

/// One core's private interrupts.
#[derive(Clone, Copy)]
pub struct Redistributor {
    /// Where their registers are.
    private: u64,
}

impl Redistributor {
    /// Takes over those of the redistributor at `frame`, this core's own: puts all into one group and
    /// enables those that EL2 takes. `separate`: see docs/src/design/decisions.md, 7.
    pub fn start(frame: u64, separate: bool) -> Self {
        let private = open(frame);
        write32(private + ICENABLER, u32::MAX);
        settle(frame);
        write32(private + ICPENDR, u32::MAX);
        write32(private + ICACTIVER, u32::MAX);
        write32(private + IGROUPR, GROUP);
        // All PPIs are levels, as the timers' and the maintenance interrupt are; a boot loader may have
        // left them otherwise. Where this cannot be set, it is so.
        write32(private + ICFGR + 4, 0);
        for intid in 0..32 {
            write8(private + IPRIORITYR + u64::from(intid), priority(intid, separate));
        }
        let doorbells = Doorbell::ALL.iter().fold(0, |set, &doorbell| set | 1 << doorbell as u32);
        let taken = [MAINTENANCE, EL2_INTID, VIRTUAL_INTID];
        let taken = taken.iter().fold(doorbells, |set, intid| set | 1 << intid);
        write32(private + ISENABLER, taken);
        cpu_interface::start();
        Self { private }
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

/// Returns the priority of an interrupt of one core.
#[inline(always)]
fn priority(intid: u32, separate: bool) -> u8 {
    const REALTIME: u32 = Doorbell::Realtime as u32;
    const LOWER_REALTIME: u32 = Doorbell::LowerRealtime as u32;
    match intid {
        _ if !separate => PRIORITY_ORDINARY,
        EL2_INTID | VIRTUAL_INTID | WATCH_INTID => PRIORITY_TIMER,
        REALTIME | MAINTENANCE => PRIORITY_REALTIME,
        LOWER_REALTIME => PRIORITY_LOWER_REALTIME,
        _ => PRIORITY_ORDINARY,
    }
}
