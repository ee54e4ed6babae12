//! The distributor of a virtual GICv2.

use super::bus::{Access, Caller, Device, Guest, Outcome, Region};
use super::gic;
use abi::platform::{GICD_BASE, GICD_V2_SIZE};
use vgic::frames::v2;

/// The distributor, which every VM has.
pub const DEVICE: Device = Device {
    region: |_| Region { base: GICD_BASE, size: GICD_V2_SIZE },
    stride: GICD_V2_SIZE,
    state: v2::STATE,
    peek,
    access,
};

fn peek(caller: &Caller, access: Access) -> u64 {
    let Caller { index, vcpus, shared } = *caller;
    v2::peek(&shared.gic, index, vcpus, access.offset, access.size)
}

fn access(guest: &mut Guest, access: Access) -> Outcome {
    let Access { offset, size, write } = access;
    let Caller { index, vcpus, .. } = guest.caller;
    gic::access(guest, |gic| match write {
        Some(value) => (0, v2::write(gic, index, vcpus, offset, size, value)),
        None => v2::read_state(gic, index, vcpus, offset, size),
    })
}
