//! The virtual interrupt controller's redistributors, one for each vCPU.

use super::bus::{Access, Device, Guest, Outcome, Region};
use super::gic;
use abi::platform::{GICR_BASE, GICR_STRIDE};
use vgic::frames::v3;

/// The redistributors of a VM, side by side.
pub const DEVICE: Device = Device {
    region: |vm| Region { base: GICR_BASE, size: u64::from(vm.vcpu_count) * GICR_STRIDE },
    access,
};

fn access(guest: &mut Guest, access: Access) -> Outcome {
    let Access { size, write, .. } = access;
    let (vcpu, offset) = ((access.offset / GICR_STRIDE) as usize, access.offset % GICR_STRIDE);
    let last = vcpu + 1 == guest.vcpus;
    gic::access(guest, |gic| match write {
        Some(value) => (0, v3::write_redistributor(gic, vcpu, offset, size, value)),
        None => v3::read_redistributor(gic, vcpu, last, offset, size),
    })
}
