//! A redistributor: one core's private interrupts.

use super::cpu_interface;
use super::offset::{ICACTIVER, ICENABLER, ICPENDR, IGROUPR, IPRIORITYR, ISACTIVER, ISENABLER};
use crate::arch::gic::{
    DOORBELL, DOORBELL_REALTIME, MAINTENANCE, PRIORITY_NORMAL, PRIORITY_REALTIME,
};
use crate::arch::memory::device::{read32, write8, write32};
use crate::arch::timer::{EL2_INTID, VIRTUAL_INTID};

const WAKER: u64 = 0x0014;
/// The second frame, with the registers of SGIs and PPIs.
const SGI_FRAME: u64 = 0x1_0000;
const PROCESSOR_SLEEP: u32 = 1 << 1;
const CHILDREN_ASLEEP: u32 = 1 << 2;

/// One core's redistributor.
#[derive(Clone, Copy)]
pub struct Redistributor(u64);

impl Redistributor {
    /// Takes over the redistributor at `frame`, this core's own: wakes it, puts
    /// all its interrupts into group 1 and enables those that EL2 takes.
    /// `separate`: see docs/src/design/decisions.md, 7.
    pub fn start(frame: u64, separate: bool) -> Self {
        write32(frame + WAKER, read32(frame + WAKER) & !PROCESSOR_SLEEP);
        while read32(frame + WAKER) & CHILDREN_ASLEEP != 0 {}
        let sgi = frame + SGI_FRAME;
        write32(sgi + ICENABLER, u32::MAX);
        write32(sgi + ICPENDR, u32::MAX);
        write32(sgi + ICACTIVER, u32::MAX);
        write32(sgi + IGROUPR, u32::MAX);
        let urgent = [DOORBELL_REALTIME, MAINTENANCE, EL2_INTID, VIRTUAL_INTID];
        for intid in 0..32 {
            let upper = separate && urgent.contains(&intid);
            let priority = if upper { PRIORITY_REALTIME } else { PRIORITY_NORMAL };
            write8(sgi + IPRIORITYR + u64::from(intid), priority);
        }
        let taken = urgent.iter().fold(1 << DOORBELL, |set, intid| set | 1 << intid);
        write32(sgi + ISENABLER, taken);
        cpu_interface::start();
        Self(frame)
    }

    /// Makes the virtual timer's physical interrupt active or inactive, as it
    /// was when its guest last ran.
    pub fn set_timer_active(self, active: bool) {
        let register = SGI_FRAME + if active { ISACTIVER } else { ICACTIVER };
        write32(self.0 + register, 1 << VIRTUAL_INTID);
    }
}
