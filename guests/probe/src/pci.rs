//! A PCI bus that the VM has, as QEMU's `virt` board has it (PCI Local Bus Specification 3.0, section 6).

use crate::arch::mmio::Window;

/// Configuration space of bus 0.
const ECAM: Window = Window::new(0x3f00_0000, 0x10_0000);
/// Where the guest lets devices have their registers, and how much of it each may take.
const REGISTERS: u64 = 0x2800_0000;
const REGISTERS_STRIDE: u64 = 0x10_0000;
/// Devices of the bus, and configuration space of a device's first function.
const DEVICES: u64 = 32;
const STRIDE: u64 = 0x8000;
const FUNCTION_SIZE: u64 = 0x1000;

const IDENTITY: u64 = 0x00;
const COMMAND: u64 = 0x04;
const BAR0: u64 = 0x10;

/// Bits of the command register: the device answers in memory; it may do DMA.
pub const MEMORY: u32 = 1 << 1;
pub const MASTER: u32 = 1 << 2;

/// Returns where device `number`, as the guest counts them, may have its registers.
pub const fn registers(number: u64) -> Window {
    Window::new(REGISTERS + number * REGISTERS_STRIDE, REGISTERS_STRIDE)
}

/// A device's first function.
#[derive(Clone, Copy)]
pub struct Function {
    /// Its number on the bus.
    pub device: u64,
    space: Window,
}

impl Function {
    /// Finds the device with this number (from 0) among those whose vendor is in the lower half of `identity` and
    /// whose device in the upper half.
    pub fn find(identity: u32, number: usize) -> Option<Self> {
        let of = |device| Self { device, space: ECAM.part(device * STRIDE, FUNCTION_SIZE) };
        let mut all = (0..DEVICES).map(of).filter(|one| one.space.read32(IDENTITY) == identity);
        all.nth(number)
    }

    /// The command register, without the status beside it.
    pub fn command(self) -> u32 {
        self.space.read32(COMMAND) & 0xffff
    }

    /// Sets the command register.
    pub fn set_command(self, command: u32) {
        self.space.write32(COMMAND, command);
    }

    /// Lets the device have the registers of base address `bar` in [`registers`] of this number.
    pub fn place(self, bar: u64, number: u64) {
        self.space.write32(BAR0 + 4 * bar, (REGISTERS + number * REGISTERS_STRIDE) as u32);
    }
}
