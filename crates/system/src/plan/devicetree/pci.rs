//! A PCI host bridge, as the binding `host-generic-pci` wants it, with the one bus that its VM has.

use super::{GIC, Written};
use crate::board::Window;
use vm_fdt::FdtWriter;

/// First cell of a bus address (IEEE 1275, PCI bus binding): memory with 32-bit addresses, not
/// prefetchable.
const MEMORY_32: u32 = 0x0200_0000;
/// Cells of an interrupt of the interrupt controller.
const INTERRUPT: usize = 3;
/// In the first cell: from here on the number of a device.
const DEVICE_SHIFT: u32 = 11;
/// How many interrupts a function may have: INTA to INTD, which are numbered from 1.
const PINS: u32 = 4;

/// Writes what is a host bridge's. `interrupts` are those that functions share, as three cells each.
///
/// The pins of neighbouring devices lead to different ones: QEMU turns them by one for each (`create_pcie`
/// in hw/arm/virt.c), as boards commonly do.
pub(super) fn host_bridge(fdt: &mut FdtWriter, window: Window, interrupts: &[u32]) -> Written {
    let lines: Vec<_> = interrupts.chunks(INTERRUPT).collect();
    let entry = |device: u32, pin: u32| {
        let line = lines[(device + pin) as usize % lines.len()];
        let function = [device << DEVICE_SHIFT, 0, 0, pin + 1, GIC];
        function.into_iter().chain(line.iter().copied())
    };
    // All that it depends on is which of the lines is meant.
    let devices = lines.len().next_power_of_two() as u32;
    let map = (0..devices).flat_map(|device| (0..PINS).map(move |pin| (device, pin)));
    let map: Vec<_> = map.flat_map(|(device, pin)| entry(device, pin)).collect();
    fdt.property_string("device_type", "pci")?;
    fdt.property_u32("#address-cells", 3)?;
    fdt.property_u32("#size-cells", 2)?;
    fdt.property_u32("#interrupt-cells", 1)?;
    fdt.property_array_u32("bus-range", &[0, 0])?;
    fdt.property_u32("linux,pci-domain", 0)?;
    let halves = |word: u64| [(word >> 32) as u32, word as u32];
    let [address, size] = [window.address, window.size].map(halves);
    let range = [&[MEMORY_32][..], &address, &address, &size].concat();
    fdt.property_array_u32("ranges", &range)?;
    fdt.property_array_u32("interrupt-map-mask", &[(devices - 1) << DEVICE_SHIFT, 0, 0, 7])?;
    fdt.property_array_u32("interrupt-map", &map)
}
