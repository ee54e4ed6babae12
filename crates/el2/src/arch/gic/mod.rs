//! The physical interrupt controller.
//!
//! What EL2 needs of any version: [`reset_distributor`], [`route`], [`send_to`]
//! for shared interrupts; a [`Redistributor`] and the functions from
//! [`acknowledge`] to [`ring`] for a core's own; and in [`virtual_interface`]
//! the list registers of guests. [`v3`] has them for a GICv3.

mod v3;

pub use v3::cpu_interface::{acknowledge, bell, deactivate, drop_priority, ring, set_mask};
pub use v3::distributor::{reset_distributor, route, send_to};
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

/// Upper half of the priorities: real-time guests and EL2's own timer.
pub const PRIORITY_REALTIME: u8 = 0x40;
/// Lower half: everything else.
pub const PRIORITY_NORMAL: u8 = 0xa0;
/// Priority mask that lets everything through.
pub const MASK_NOTHING: u64 = 0xf0;
/// Priority mask that keeps the lower half pending.
pub const MASK_LOWER_HALF: u64 = 0x80;
