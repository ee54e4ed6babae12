//! The distributor of a virtual GICv2, and the register of its CPU interface that is emulated.

use super::bus::{Access, Device, Guest, Outcome, Region};
use super::gic;
use abi::platform::{GICC_BASE, GICC_PAGE, GICD_BASE, GICD_V2_SIZE};
use vgic::frames::v2;

/// The distributor, which every VM has.
pub const DISTRIBUTOR: Device =
    Device { region: |_| Region { base: GICD_BASE, size: GICD_V2_SIZE }, access: distribute };

/// The second page of the CPU interface. The first one is the board's virtual CPU interface.
pub const DEACTIVATION: Device = Device {
    region: |_| Region { base: GICC_BASE + GICC_PAGE, size: GICC_PAGE },
    access: deactivate,
};

fn distribute(guest: &mut Guest, access: Access) -> Outcome {
    let Access { offset, size, write } = access;
    let (vcpu, vcpus) = (guest.index, guest.vcpus);
    gic::access(guest, |gic| match write {
        Some(value) => (0, v2::write(gic, vcpu, vcpus, offset, size, value)),
        None => v2::read(gic, vcpu, vcpus, offset, size),
    })
}

/// GICC_DIR, which is written only (IHI 0048B, section 4.4.15); the rest of the page has nothing.
fn deactivate(guest: &mut Guest, access: Access) -> Outcome {
    const INTID: u64 = 0x3ff;
    let Access { offset: 0, size: 4, write: Some(value) } = access else {
        return Outcome::default();
    };
    let (gic, hw) = (&guest.shared.gic, &mut *guest.list_registers);
    let done = guest.interface.deactivate(gic, hw, (value & INTID) as u32);
    Outcome { again: !done, ..Outcome::default() }
}
