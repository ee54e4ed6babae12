//! A VM's console: an emulated PL011 ([`crate::shared::pl011`]).

use super::bus::{Access, Caller, Device, Guest, Outcome, Region};
use crate::shared::{self, pl011};
use abi::MAX_PCPUS;
use abi::platform::{UART_BASE, UART_INTID, UART_SIZE};
use abi::system::vm_flags;
use notes::each;
use vgic::Effects;

/// The console, if the VM has one.
pub const DEVICE: Device = Device {
    region: |vm| Region {
        base: UART_BASE,
        size: if vm.is(vm_flags::CONSOLE) { UART_SIZE } else { 0 },
    },
    stride: UART_SIZE,
    state: pl011::TAKEN_BY_READING,
    peek,
    access,
};

/// The interrupt's line was brought up to date with what changed it.
fn peek(caller: &Caller, access: Access) -> u64 {
    caller.shared.uart.read(access.offset)
}

fn access(guest: &mut Guest, access: Access) -> Outcome {
    let uart = &guest.caller.shared.uart;
    let (value, has_output) = match access.write {
        Some(value) => (0, uart.write(access.offset, value)),
        None => (uart.read(access.offset), false),
    };
    Outcome { value, effects: update_interrupt(guest.caller.shared), has_output, again: false }
}

/// Brings the console's interrupt line up to date. Another core may change the
/// console between the look and the line: the core that changes it looks again.
pub fn update_interrupt(vm: &shared::Vm) -> Effects {
    // Another core that changes it meanwhile needs a trap each time, which takes
    // longer than this.
    let level = || vm.uart.interrupt();
    vm.gic.follow_level::<{ each::CORE }, MAX_PCPUS>(0, UART_INTID, level)
}
