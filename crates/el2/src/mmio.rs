//! Data aborts: emulated devices, and what a guest has not.

use crate::arch::context::{self, Fault, Syndrome};
use crate::arch::{gic, timer};
use crate::exits;
use crate::pcpu::Pcpu;
use crate::shared::VMS;
use abi::platform::{GICD_BASE, GICD_SIZE, GICR_BASE, GICR_STRIDE, UART_BASE, UART_SIZE};
use abi::status::Exit;
use abi::system::vm_flags;
use el2::vgic::Effects;
use el2::vgic::interface::Hardware;

/// A load or store, as the syndrome describes it (DDI 0487, ISS encoding for a
/// data abort).
#[derive(Clone, Copy)]
struct Access {
    write: bool,
    /// Bytes.
    size: u8,
    register: usize,
    sign_extend: bool,
    /// The destination is 64 bits wide.
    wide: bool,
}

impl Access {
    /// None when the syndrome does not describe the instruction.
    fn decode(iss: u64) -> Option<Self> {
        const VALID: u64 = 1 << 24;
        const CACHE_MAINTENANCE: u64 = 1 << 8;
        (iss & VALID != 0 && iss & CACHE_MAINTENANCE == 0).then_some(Self {
            write: iss & 1 << 6 != 0,
            size: 1 << (iss >> 22 & 3),
            register: (iss >> 16 & 0x1f) as usize,
            sign_extend: iss & 1 << 21 != 0,
            wide: iss & 1 << 15 != 0,
        })
    }

    /// What the guest's register gets of a value that was read.
    fn extend(self, value: u64) -> u64 {
        let unused = 64 - 8 * u32::from(self.size);
        let narrow = value << unused;
        let extended =
            if self.sign_extend { ((narrow as i64) >> unused) as u64 } else { narrow >> unused };
        if self.wide { extended } else { extended & 0xffff_ffff }
    }
}

enum Device {
    Distributor(u64),
    Redistributor(usize, u64),
    Uart(u64),
}

/// A guest accessed an address that stage 2 does not map.
#[inline(never)]
pub fn data_abort(core: &mut Pcpu, syndrome: Syndrome) -> Exit {
    /// Stage 2 fault on a stage 1 table walk.
    const ON_WALK: u64 = 1 << 7;
    let (address, ipa) = context::fault_addresses();
    let iss = syndrome.iss();
    let access = Access::decode(iss).filter(|_| iss & ON_WALK == 0);
    match access.zip(device(core, ipa)) {
        Some((access, device)) => {
            emulate(core, access, &device);
            context::skip_instruction();
            Exit::Mmio
        }
        None => {
            exits::deliver(core, Fault::Data(address, iss & 1 << 6 != 0));
            Exit::Abort
        }
    }
}

/// The emulated device at a guest-physical address.
fn device(core: &Pcpu, ipa: u64) -> Option<Device> {
    let table = &core.system.vms[core.loaded.as_ref()?.vm];
    let redistributors = u64::from(table.vcpu_count) * GICR_STRIDE;
    if let Some(offset) = within(ipa, GICD_BASE, GICD_SIZE) {
        return Some(Device::Distributor(offset));
    }
    if let Some(offset) = within(ipa, GICR_BASE, redistributors) {
        return Some(Device::Redistributor((offset / GICR_STRIDE) as usize, offset % GICR_STRIDE));
    }
    within(ipa, UART_BASE, UART_SIZE).filter(|_| table.is(vm_flags::CONSOLE)).map(Device::Uart)
}

fn within(address: u64, base: u64, size: u64) -> Option<u64> {
    address.checked_sub(base).filter(|&offset| offset < size)
}

fn emulate(core: &mut Pcpu, access: Access, device: &Device) {
    let Some(vcpu) = core.loaded.as_deref_mut() else { return };
    let value = vcpu.general.get(access.register);
    let read = match *device {
        Device::Uart(offset) => uart(core, access, offset, value),
        Device::Distributor(offset) => interrupt_controller(core, |gic, vcpu, _| {
            if access.write {
                (0, gic.write_distributor(vcpu, offset, access.size, value))
            } else {
                gic.read_distributor(vcpu, offset, access.size)
            }
        }),
        Device::Redistributor(index, offset) => interrupt_controller(core, |gic, _, count| {
            if access.write {
                (0, gic.write_redistributor(index, offset, access.size, value))
            } else {
                gic.read_redistributor(index, index + 1 == count, offset, access.size)
            }
        }),
    };
    if !access.write
        && let Some(vcpu) = core.loaded.as_deref_mut()
    {
        vcpu.general.set(access.register, access.extend(read));
    }
}

/// A register access with everything in the banks, then everything that should
/// be in the list registers back in them.
fn interrupt_controller(
    core: &mut Pcpu,
    act: impl FnOnce(&el2::vgic::Gic, usize, usize) -> (u64, Effects),
) -> u64 {
    let Some(vcpu) = core.loaded.as_deref() else { return 0 };
    let (vm, index) = (vcpu.vm, vcpu.index);
    let count = usize::from(core.system.vms[vm].vcpu_count);
    let mut result = (0, Effects::default());
    core.with_interface(|interface, gic, hw| {
        let words = interface.take_back(gic, hw);
        // The hardware would have withdrawn a timer that no longer asserts.
        if !timer::loaded_is_asserted() && gic.retract(index, timer::VIRTUAL_INTID) {
            hw.deactivate(timer::VIRTUAL_INTID);
        }
        result = act(gic, index, count);
        interface.list(gic, hw, words)
    });
    let (value, effects) = result;
    deactivate_physical(vm, effects);
    core.notify(vm, Effects { notify: effects.notify & !(1 << index), ..effects });
    value
}

/// Interrupts the guest declared inactive: so are those behind them.
fn deactivate_physical(vm: usize, effects: Effects) {
    let Some((word, bits)) = effects.deactivate else { return };
    for bit in sched::Members(u64::from(bits)) {
        if let Some(physical) = VMS[vm].gic.physical((word * 32 + bit) as u32) {
            gic::deactivate(physical);
        }
    }
}

fn uart(core: &mut Pcpu, access: Access, offset: u64, value: u64) -> u64 {
    let Some(vm) = core.loaded.as_ref().map(|vcpu| vcpu.vm) else { return 0 };
    let uart = &VMS[vm].uart;
    let mut read = 0;
    if !access.write {
        read = uart.read(offset);
    } else if uart.write(offset, value) {
        core.console_has_output(vm);
    }
    core.update_console_interrupt(vm);
    read
}
