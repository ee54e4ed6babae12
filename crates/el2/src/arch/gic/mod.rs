//! The physical interrupt controller.
//!
//! What EL2 needs of any version: [`reset_distributor`], [`route`], [`send_to`], [`clear`]
//! for shared interrupts; [`claim`], a [`Redistributor`] and the functions from
//! [`acknowledge`] to [`ring`] for a core's own; and in [`virtual_interface`]
//! the list registers of guests, in [`common_group`] what else of theirs may trap.
//! [`v3`] has them for a GICv3.

mod v3;

pub use v3::common_group;
pub use v3::cpu_interface::{
    acknowledge, bell, claim, deactivate, drop_priority, reaches, ring, set_mask,
};
pub use v3::distributor::{clear, reset_distributor, route, send_to};
pub use v3::redistributor::Redistributor;
pub use v3::virtual_interface;

/// SGI that says: look at your mailbox, a real-time vCPU is concerned.
pub const DOORBELL_REALTIME: u32 = 1;
/// SGI that says: look at your mailbox.
pub const DOORBELL: u32 = 2;
/// Maintenance interrupt of the virtual CPU interface.
pub const MAINTENANCE: u32 = 25;
/// From this INTID on, none is a real interrupt.
pub const SPECIAL: u32 = 1020;

// Where the GIC has two security states and the CPU interface shows priorities as they are
// (SCR_EL3.FIQ = 0), the distributor shows a priority P, and the interface has 0x80 + P / 2
// (IHI 0069, section 4.8.6). These priorities and masks serve there too.
/// Upper half of the priorities, its upper part: timers. Doorbells, which other cores could
/// keep pending for ever, must not keep them waiting.
pub const PRIORITY_TIMER: u8 = 0x20;
/// Upper half of the priorities: real-time guests, and what EL2 has to do for them.
pub const PRIORITY_REALTIME: u8 = 0x40;
/// Lower half: everything else.
pub const PRIORITY_NORMAL: u8 = 0xe0;
/// Priority mask that lets everything through.
pub const MASK_NOTHING: u64 = 0xff;
/// Priority mask that keeps the lower half pending.
pub const MASK_LOWER_HALF: u64 = 0xc0;

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
            let [timer, realtime, normal] = [PRIORITY_TIMER, PRIORITY_REALTIME, PRIORITY_NORMAL]
                .map(|priority| {
                    let priority = interface(priority);
                    assert_eq!(priority & !implemented, 0, "{priority:#x} in {bits} bits");
                    priority
                });
            let [nothing, lower] = [MASK_NOTHING, MASK_LOWER_HALF].map(|mask| mask & implemented);
            assert!(timer < realtime && realtime < lower, "{bits} bits");
            assert!(lower <= normal && normal < nothing, "{bits} bits");
        }
    }
}
