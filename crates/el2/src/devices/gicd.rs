//! The virtual interrupt controller's distributor.

use super::bus::{Access, Device, Guest, Outcome, Region};
use super::gic;
use abi::platform::{GICD_BASE, GICD_SIZE};
use vgic::frames::v3;

/// The distributor, which every VM has.
pub const DEVICE: Device =
    Device { region: |_| Region { base: GICD_BASE, size: GICD_SIZE }, access };

fn access(guest: &mut Guest, access: Access) -> Outcome {
    let Access { offset, size, write } = access;
    let vcpu = guest.index;
    gic::access(guest, |gic| match write {
        Some(value) => (0, v3::write_distributor(gic, vcpu, offset, size, value)),
        None => v3::read_distributor(gic, vcpu, offset, size),
    })
}
