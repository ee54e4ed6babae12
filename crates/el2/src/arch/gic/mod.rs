//! The physical interrupt controller.
//!
//! What EL2 needs of any version: [`place`]; [`reset_distributor`], [`route`], [`send_to`], [`clear`]
//! for shared interrupts; [`check`], a [`Redistributor`] and the functions from
//! [`acknowledge`] to [`ring`] for a core's own; and in [`virtual_interface`]
//! the list registers of guests.
//! `v3` has what only a GICv3 does, `v2`, in an image of its own, what a GICv2 does. Only a GICv3 has
//! `common_group`, what else of guests' registers may trap.

mod distributor;
mod offset;
mod redistributor;
#[cfg(feature = "gic-v2")]
mod v2;
#[cfg(not(feature = "gic-v2"))]
mod v3;
pub mod virtual_interface;

#[cfg(feature = "gic-v2")]
use v2 as version;
#[cfg(not(feature = "gic-v2"))]
use v3 as version;

pub use distributor::{clear, route};
pub use redistributor::Redistributor;
#[cfg(not(feature = "gic-v2"))]
pub use v3::common_group;
#[cfg(all(test, not(feature = "gic-v2")))]
pub use v3::cpu_interface::claim;
pub use version::cpu_interface::{acknowledge, bell, deactivate, drop_priority, ring, set_mask};
pub use version::distributor::{reset_distributor, send_to};
pub use version::redistributor::frame;
pub use version::{check, kind, place};

/// SGI that says: look at your mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Doorbell {
    /// It comes whatever guest runs.
    Realtime = 1,
    /// A real-time vCPU is concerned that another one of its core is above: it stays pending while
    /// that one runs, whose time it would take otherwise.
    LowerRealtime = 2,
    /// It stays pending while a real-time vCPU runs.
    Ordinary = 3,
}

impl Doorbell {
    /// All of them, by INTID.
    pub const ALL: [Self; 3] = [Self::Realtime, Self::LowerRealtime, Self::Ordinary];

    /// Returns the one that has to come while a real-time vCPU runs, or that need not.
    #[must_use]
    pub const fn urgent(urgent: bool) -> Self {
        if urgent { Self::Realtime } else { Self::Ordinary }
    }

    /// Returns the doorbell with this INTID.
    #[must_use]
    #[inline(always)]
    pub const fn with(intid: u32) -> Option<Self> {
        match intid {
            1 => Some(Self::Realtime),
            2 => Some(Self::LowerRealtime),
            3 => Some(Self::Ordinary),
            _ => None,
        }
    }
}

/// Below this INTID are SGIs.
#[cfg(feature = "gic-v2")]
const SGI_END: u32 = 16;
/// Maintenance interrupt of the virtual CPU interface.
pub const MAINTENANCE: u32 = 25;
/// From this INTID on, none is a real interrupt.
pub const SPECIAL: u32 = 1020;

// Where the GIC has two security states and the CPU interface shows priorities as they are
// (SCR_EL3.FIQ = 0), the distributor shows a priority P, and the interface has 0x80 + P / 2
// (IHI 0069, section 4.8.6). These priorities and masks serve there too.
/// The highest: timers. Doorbells, which other cores could keep pending for ever, must not keep
/// them waiting.
pub const PRIORITY_TIMER: u8 = 0x10;
/// Real-time guests, and what EL2 has to do for them.
pub const PRIORITY_REALTIME: u8 = 0x20;
/// Real-time guests that others of their cores are above.
pub const PRIORITY_LOWER_REALTIME: u8 = 0xa0;
/// Everything else.
pub const PRIORITY_ORDINARY: u8 = 0xe0;
/// Priority mask that lets everything through.
pub const MASK_NOTHING: u64 = 0xff;
/// Priority mask that keeps ordinary interrupts pending.
pub const MASK_ORDINARY: u64 = 0xe0;
/// Priority mask that keeps those of lower real-time guests pending, too.
pub const MASK_LOWER_REALTIME: u64 = 0xa0;

#[cfg(test)]
mod tests {
    use super::*;

    /// The masks separate what they are to, however the distributor's priorities and those of
    /// the CPU interface differ, and with as few bits as there may be.
    #[test]
    fn masks_hold_in_every_view_of_priorities() {
        let same: fn(u8) -> u64 = u64::from;
        // The non-secure half, of which at least 5 bits are implemented.
        let shifted: fn(u8) -> u64 = |priority| 0x80 | u64::from(priority) >> 1;
        for (bits, interface) in [(4, same), (5, same), (8, same), (5, shifted), (8, shifted)] {
            let implemented = 0xff << (8 - bits) & 0xff;
            let priorities =
                [PRIORITY_TIMER, PRIORITY_REALTIME, PRIORITY_LOWER_REALTIME, PRIORITY_ORDINARY];
            let [timer, realtime, lower, ordinary] = priorities.map(|priority| {
                let priority = interface(priority);
                assert_eq!(priority & !implemented, 0, "{priority:#x} in {bits} bits");
                priority
            });
            let masks = [MASK_LOWER_REALTIME, MASK_ORDINARY, MASK_NOTHING];
            let [keeps_lower, keeps_ordinary, nothing] = masks.map(|mask| mask & implemented);
            assert!(timer < realtime && realtime < keeps_lower, "{bits} bits");
            assert!(keeps_lower <= lower && lower < keeps_ordinary, "{bits} bits");
            assert!(keeps_ordinary <= ordinary && ordinary < nothing, "{bits} bits");
        }
    }
}
