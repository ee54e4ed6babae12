//! The second page of a virtual GICv2's CPU interface, where an interrupt is deactivated. The first one is
//! the board's virtual CPU interface.

use super::bus::{Access, Caller, Device, Guest, Outcome, Region};
use abi::platform::{GICC_BASE, GICC_PAGE};

/// The page, which every VM has.
pub const DEVICE: Device = Device {
    region: |_| Region { base: GICC_BASE + GICC_PAGE, size: GICC_PAGE },
    stride: GICC_PAGE,
    state: 0..0,
    peek,
    access,
};

/// Nothing there can be read.
fn peek(_caller: &Caller, _access: Access) -> u64 {
    0
}

/// GICC_DIR, which is written only (IHI 0048B, section 4.4.15); the rest of the page has nothing.
fn access(guest: &mut Guest, access: Access) -> Outcome {
    const INTID: u64 = 0x3ff;
    let Access { offset: 0, size: 4, write: Some(value) } = access else {
        return Outcome::default();
    };
    let (gic, hw) = (&guest.caller.shared.gic, &mut *guest.list_registers);
    let done = guest.interface.deactivate(gic, hw, (value & INTID) as u32);
    Outcome { again: !done, ..Outcome::default() }
}
