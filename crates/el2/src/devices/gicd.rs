//! The virtual interrupt controller's distributor.

use super::bus::{Access, Caller, Device, Guest, Outcome, Region};
use super::gic;
use abi::platform::{GICD_BASE, GICD_SIZE};
use vgic::frames::v3;

/// The distributor, which every VM has.
pub const DEVICE: Device = Device {
    region: |_| Region { base: GICD_BASE, size: GICD_SIZE },
    stride: GICD_SIZE,
    state: v3::DISTRIBUTOR_STATE,
    peek,
    access,
};

fn peek(caller: &Caller, access: Access) -> u64 {
    v3::peek_distributor(&caller.shared.gic, caller.index, access.offset, access.size)
}

fn access(guest: &mut Guest, access: Access) -> Outcome {
    let Access { offset, size, write } = access;
    let vcpu = guest.caller.index;
    gic::access(guest, |gic| match write {
        Some(value) => (0, v3::write_distributor(gic, vcpu, offset, size, value)),
        None => v3::read_distributor_state(gic, vcpu, offset, size),
    })
}
