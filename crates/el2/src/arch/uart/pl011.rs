//! A PL011 (Arm DDI 0183).

use super::FALLBACK_PA;
use crate::arch::memory;
use abi::system::System;
use arm_pl011_uart::{Interrupts, PL011Registers, UniqueMmioPointer};
use core::ptr::NonNull;

/// What it tells of whether there is room or not: bytes that have arrived.
const RECEIVE: Interrupts = Interrupts::RXI.union(Interrupts::RTI);

/// A UART that one core drives.
pub struct Uart(arm_pl011_uart::Uart<'static>);

impl Uart {
    /// Takes over the board's; it tells what it receives. None at address 0.
    #[inline(always)]
    pub fn take(system: &System) -> Option<Self> {
        let registers = NonNull::new(memory::at::<PL011Registers>(system.board.uart_pa))?;
        // SAFETY: the host mapped the board's UART as device memory; one core only
        // drives it.
        let mut uart =
            Self(arm_pl011_uart::Uart::new(unsafe { UniqueMmioPointer::new(registers) }));
        uart.listen(false);
        Some(uart)
    }

    /// Chooses of what it tells by its interrupt: of what it receives; and, if so, of room.
    #[inline(always)]
    pub fn listen(&mut self, for_room: bool) {
        self.0.set_interrupt_masks(if for_room { RECEIVE | Interrupts::TXI } else { RECEIVE });
    }

    /// Takes back what its interrupt has told.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.0.clear_interrupts(Interrupts::all());
    }

    /// Returns true if there is no room for a byte.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.0.is_tx_fifo_full()
    }

    /// Sends a byte; there must be room.
    #[inline(always)]
    pub fn put(&mut self, byte: u8) {
        self.0.write_word(byte);
    }

    /// Takes a byte that has arrived.
    #[inline(always)]
    pub fn get(&mut self) -> Option<u8> {
        self.0.read_word().ok().flatten()
    }
}

/// A UART that is written to without being driven.
pub struct Direct {
    /// The data register.
    data: *mut u32,
}

impl Direct {
    /// Returns the board's.
    pub fn of(system: &System) -> Self {
        Self { data: memory::at(system.board.uart_pa) }
    }

    /// Returns the one that is tried where it is not known which one the board has.
    pub fn fallback() -> Self {
        Self { data: memory::at(FALLBACK_PA) }
    }

    /// Returns true if there is room for a byte.
    #[inline(always)]
    pub fn has_room(&self) -> bool {
        /// UARTFR, in words from the data register, and its bit TXFF (DDI 0183G, 3.3.3).
        const FLAGS: usize = 0x18 / 4;
        const FULL: u32 = 1 << 5;
        // SAFETY: the flag register of the same PL011; reading has no effect.
        unsafe { self.data.add(FLAGS).read_volatile() & FULL == 0 }
    }

    /// Writes a byte.
    #[inline(always)]
    pub fn write(&self, byte: u8) {
        // SAFETY: the data register of a PL011; at worst characters of
        // another core mix with these.
        unsafe { self.data.write_volatile(u32::from(byte)) };
    }
}
