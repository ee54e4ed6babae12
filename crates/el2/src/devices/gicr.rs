//! The virtual interrupt controller's redistributors, one for each vCPU.

use super::bus::{Access, Caller, Device, Guest, Outcome, Region};
use super::gic;
use abi::platform::{GICR_BASE, GICR_STRIDE};
use vgic::frames::v3;

/// The redistributors of a VM, side by side.
pub const DEVICE: Device = Device {
    region: |vm| Region { base: GICR_BASE, size: u64::from(vm.vcpu_count) * GICR_STRIDE },
    stride: GICR_STRIDE,
    state: v3::REDISTRIBUTOR_STATE,
    peek,
    access,
};

/// Returns whose redistributor an access is to, whether that is the last one, and the offset there.
fn place(caller: &Caller, access: Access) -> (usize, bool, u64) {
    let vcpu = (access.offset / GICR_STRIDE) as usize;
    (vcpu, vcpu + 1 == caller.vcpus, access.offset % GICR_STRIDE)
}

fn peek(caller: &Caller, access: Access) -> u64 {
    let (vcpu, last, offset) = place(caller, access);
    v3::peek_redistributor(&caller.shared.gic, vcpu, last, offset, access.size)
}

fn access(guest: &mut Guest, access: Access) -> Outcome {
    let Access { size, write, .. } = access;
    let (vcpu, _, offset) = place(&guest.caller, access);
    gic::access(guest, |gic| match write {
        Some(value) => (0, v3::write_redistributor(gic, vcpu, offset, size, value)),
        None => v3::read_redistributor_state(gic, vcpu, offset, size),
    })
}
