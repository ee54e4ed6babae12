//! All consoles over one UART.
//!
//! Guests' bytes and the hypervisor's own wait in rings. One core, without real-time
//! vCPUs if there is one, writes them to the physical UART, a few at a time, and
//! delivers to the guests what arrives there.

use super::Pcpu;
use crate::arch::{cpu, firmware, memory};
use crate::bug::bug;
use crate::devices::uart;
use crate::shared::{ALIVE, LOG, VMS};
use abi::console::{Demux, HYPERVISOR, Mux};
use abi::system::{System, flags};
use arm_pl011_uart::{Interrupts, PL011Registers, Uart, UniqueMmioPointer};
use core::fmt::{self, Write};
use core::ptr::NonNull;
use core::sync::atomic::Ordering;
use sched::Message;
use sched::topology::Topology;

/// Bytes written at once, if no interrupt comes meanwhile.
const BURST: usize = 32;

/// The physical UART and what goes over it.
pub struct Console {
    uart: Uart<'static>,
    mux: Mux,
    demux: Demux,
}

impl Console {
    /// Takes the UART over as the firmware left it, if this core drives it.
    pub fn of(core: usize, system: &System, topology: &Topology<'_>) -> Option<Self> {
        if core != topology.uart_core() {
            return None;
        }
        let registers = NonNull::new(memory::at::<PL011Registers>(system.board.uart_pa))?;
        // SAFETY: the host mapped the board's UART as device memory; one core only
        // drives it.
        let mut uart = Uart::new(unsafe { UniqueMmioPointer::new(registers) });
        uart.set_interrupt_masks(Interrupts::RXI | Interrupts::RTI);
        Some(Self { uart, mux: Mux::new(), demux: Demux::default() })
    }

    fn send(&mut self, channel: u8, byte: u8) {
        let uart = &mut self.uart;
        self.mux.push(channel, byte, |byte| {
            // Framing adds a byte or two to what there was room for. If the FIFO
            // is full then, this waits for one character's time.
            while uart.is_tx_fifo_full() {}
            uart.write_word(byte);
        });
    }

    /// Returns true if there is room; if not, an interrupt will tell when there is.
    fn has_room(&mut self) -> bool {
        let full = self.uart.is_tx_fifo_full();
        let receive = Interrupts::RXI | Interrupts::RTI;
        self.uart.set_interrupt_masks(if full { receive | Interrupts::TXI } else { receive });
        !full
    }
}

impl Pcpu {
    /// Has the output of a VM's console written to the UART, or (`channel` is
    /// `MAX_VMS`) that of the hypervisor's own.
    #[inline(never)]
    pub fn console_has_output(&mut self, channel: usize) {
        if self.console.is_some() {
            self.keep_carrying();
        } else {
            self.tell(self.uart_core, Message::Consoles, channel, false);
        }
    }

    /// Writes one burst to the UART, if this core drives it. Returns true if more waits and
    /// the UART has room.
    pub(super) fn carry_console(&mut self) -> bool {
        let Some(mut console) = self.console.take() else { return false };
        let more = self.carry_burst(&mut console);
        self.console = Some(console);
        // There may be more, for which the FIFO has no room.
        if !more && ALIVE.load(Ordering::Acquire) == 0 && !self.output_waits() {
            self.finish();
        }
        more
    }

    fn carry_burst(&mut self, console: &mut Console) -> bool {
        let mut budget = BURST;
        // One byte is written in any case, or a guest that causes interrupts all the time
        // could keep all others from the UART.
        let goes_on = |budget| budget == BURST || budget > 0 && !cpu::interrupt_pending();
        while goes_on(budget) && !LOG.is_empty() {
            if !console.has_room() {
                return false;
            }
            LOG.pop().into_iter().for_each(|byte| console.send(HYPERVISOR, byte));
            budget -= 1;
        }
        let vms = self.system.header.vm_count as usize;
        for (vm, shared) in VMS.iter().enumerate().take(vms) {
            let uart = &shared.uart;
            if uart.is_idle() {
                continue;
            }
            while goes_on(budget) && !uart.is_idle() {
                if !console.has_room() {
                    self.update_console_interrupt(vm);
                    return false;
                }
                uart.carry().into_iter().for_each(|byte| console.send(vm as u8 + 1, byte));
                budget -= 1;
            }
            self.update_console_interrupt(vm);
        }
        self.output_waits()
    }

    /// Returns true if there are bytes that were not written yet.
    fn output_waits(&self) -> bool {
        let vms = self.system.header.vm_count as usize;
        !LOG.is_empty() || (0..vms).any(|vm| !VMS[vm].uart.is_idle())
    }

    /// Brings the interrupt line of a VM's console up to date.
    fn update_console_interrupt(&mut self, vm: usize) {
        let effects = uart::update_interrupt(&VMS[vm]);
        self.notify(vm, effects);
    }

    /// Handles the physical UART's interrupt: there is room again, or a byte arrived.
    pub(super) fn console_interrupt(&mut self) {
        let Some(mut console) = self.console.take() else {
            return bug!("the UART interrupts a core that does not drive it");
        };
        // Before the bytes are read: a byte that comes later interrupts again.
        console.uart.clear_interrupts(Interrupts::all());
        for _ in 0..BURST {
            let Ok(Some(byte)) = console.uart.read_word() else { break };
            let Some((channel, byte)) = console.demux.push(byte) else { continue };
            let Some(vm) = usize::from(channel).checked_sub(1) else { continue };
            if vm < self.system.header.vm_count as usize {
                VMS[vm].uart.deliver(byte);
                self.update_console_interrupt(vm);
            }
        }
        self.console = Some(console);
        self.keep_carrying();
    }

    /// Writes one burst; if there is more, the next comes after the interrupts that
    /// are pending.
    #[inline(never)]
    pub(super) fn keep_carrying(&mut self) {
        if self.carry_console() {
            self.tell(self.index, Message::Consoles, 0, false);
        }
    }

    /// Ends the system: no VM is left and all output is written.
    fn finish(&self) {
        if self.system.header.flags & flags::OFF_WHEN_DONE != 0 {
            firmware::power_off();
        }
    }
}

/// Writes a line to the hypervisor's own console: `log!(core, "...", ...)`.
macro_rules! log {
    ($core:expr, $($argument:tt)*) => {{
        $crate::pcpu::console::write(format_args!($($argument)*));
        $crate::pcpu::Pcpu::console_has_output($core, abi::MAX_VMS);
    }};
}
pub(crate) use log;

/// Puts a line into the hypervisor's ring; what does not fit is lost.
pub fn write(arguments: fmt::Arguments) {
    struct ToRing;
    impl Write for ToRing {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            text.bytes().for_each(|byte| {
                LOG.push(byte);
            });
            Ok(())
        }
    }
    let _ = writeln!(ToRing, "cassata: {arguments}");
}

/// Reports a bug and stops: this core, whose neighbours go on, or in a checked build the
/// machine, so that a test ends with the report.
pub fn stop(what: fmt::Arguments) -> ! {
    emergency(format_args!("hypervisor fault: {what}\n"));
    if cfg!(feature = "checked") {
        firmware::power_off();
    }
    cpu::halt()
}

/// Writes to the UART directly, when nothing else works any more.
pub fn emergency(arguments: fmt::Arguments) {
    struct ToUart(*mut u32);
    impl Write for ToUart {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let frame = [abi::console::SWITCH, abi::console::CHANNEL_BASE];
            for byte in frame.into_iter().chain(text.bytes()) {
                // SAFETY: the data register of a PL011; at worst characters of
                // another core mix with these.
                unsafe { self.0.write_volatile(u32::from(byte)) };
            }
            Ok(())
        }
    }
    let system = crate::tables::find();
    let uart = match system.header.identify() {
        Ok(()) => system.board.uart_pa,
        Err(_) => FALLBACK_UART,
    };
    let _ = ToUart(memory::at(uart)).write_fmt(format_args!("\ncassata: {arguments}"));
}

/// The UART of QEMU's `virt`, for messages when the tables are not recognised.
const FALLBACK_UART: u64 = 0x0900_0000;
