//! The bus of a VM: which device stands at a guest-physical address.

use super::uart;
#[cfg(feature = "gic-v2")]
use super::{gicc_v2, gicd_v2};
#[cfg(not(feature = "gic-v2"))]
use super::{gicd, gicr};
use crate::arch::gic::virtual_interface::Loaded;
use crate::shared;
use abi::system::Vm;
use core::ops::Range;
use vgic::Effects;
use vgic::interface::CpuInterface;

/// Every device there is; the tables say where in a VM it stands, if at all.
#[cfg(not(feature = "gic-v2"))]
const DEVICES: [Device; 3] = [gicd::DEVICE, gicr::DEVICE, uart::DEVICE];
#[cfg(feature = "gic-v2")]
const DEVICES: [Device; 3] = [gicd_v2::DEVICE, gicc_v2::DEVICE, uart::DEVICE];

/// A kind of device.
pub struct Device {
    /// Returns where it stands in a VM; an empty region if the VM has none.
    pub region: fn(&Vm) -> Region,
    /// After so many bytes, a power of two, the registers of another vCPU begin.
    pub stride: u64,
    /// Offsets at which reading changes something, or tells what may depend on what is in list registers.
    pub state: Range<u64>,
    /// Reads elsewhere: nothing has to be brought up to date for it.
    pub peek: fn(&Caller, Access) -> u64,
    /// Carries out an access.
    pub access: fn(&mut Guest, Access) -> Outcome,
}

/// Guest-physical addresses.
#[derive(Clone, Copy)]
pub struct Region {
    /// The first, in bytes.
    pub base: u64,
    /// How many, in bytes.
    pub size: u64,
}

/// A load or store of a device's registers.
#[derive(Clone, Copy)]
pub struct Access {
    /// Distance from the beginning of the device's region, bytes.
    pub offset: u64,
    /// Width, bytes.
    pub size: u8,
    /// The value, if it is a store.
    pub write: Option<u64>,
}

/// The vCPU that accesses a device.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// The index of the vCPU in its VM.
    pub index: usize,
    /// How many vCPUs the VM has.
    pub vcpus: usize,
    /// What the VM's vCPUs share.
    pub shared: &'a shared::Vm,
}

/// What a device sees of the guest that accesses it.
pub struct Guest<'a> {
    /// The vCPU.
    pub caller: Caller<'a>,
    /// What is in the vCPU's list registers, and why.
    pub interface: &'a mut CpuInterface,
    /// The list registers.
    pub list_registers: &'a mut Loaded,
    /// How many interrupts were put there.
    pub injected: usize,
}

/// What comes of an access.
#[derive(Default)]
#[must_use]
pub struct Outcome {
    /// What a load reads.
    pub value: u64,
    /// Interrupts that have changed.
    pub effects: Effects,
    /// The VM's console has something to send.
    pub has_output: bool,
    /// The access was not carried out: an interrupt came before it. The guest has to execute it
    /// again.
    pub again: bool,
}

impl Device {
    /// Returns true if the register at an offset can be [peeked](Self::peek).
    #[inline(always)]
    pub fn can_peek(&self, offset: u64) -> bool {
        !self.state.contains(&(offset & (self.stride - 1)))
    }
}

/// Finds the device at a guest-physical address of a VM, and the distance of the
/// address from the beginning of the device's region.
pub fn find(vm: &Vm, ipa: u64) -> Option<(&'static Device, u64)> {
    DEVICES.iter().find_map(|device| {
        let Region { base, size } = (device.region)(vm);
        let offset = ipa.checked_sub(base).filter(|&offset| offset < size)?;
        Some((device, offset))
    })
}
