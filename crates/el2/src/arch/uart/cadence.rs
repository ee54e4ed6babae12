//! The UART of a Zynq UltraScale+ (Xilinx UG1085, chapter 21; UG1087, module UART), by Cadence.

use crate::arch::memory::device::{read32, write32};

const CONTROL: u64 = 0x00;
const ENABLE: u64 = 0x08;
const DISABLE: u64 = 0x0c;
const PENDING: u64 = 0x14;
const RECEIVE_TRIGGER: u64 = 0x20;
const STATUS: u64 = 0x2c;
const FIFO: u64 = 0x30;

/// Both in ENABLE, DISABLE and PENDING, and in STATUS: the receiver has as many bytes as its trigger
/// says, has none; the transmitter has none, is full.
const RECEIVED: u32 = 1 << 0;
const NOTHING_RECEIVED: u32 = 1 << 1;
const EMPTY: u32 = 1 << 3;
const FULL: u32 = 1 << 4;
/// CONTROL: receiver and transmitter on, and neither off.
const ON: u32 = 1 << 4 | 1 << 2;

/// A UART that one core drives.
pub struct Uart(u64);

impl Uart {
    /// Takes over the one at a physical address; it tells what it receives.
    pub fn take(pa: u64) -> Self {
        write32(pa + DISABLE, u32::MAX);
        write32(pa + CONTROL, ON);
        write32(pa + RECEIVE_TRIGGER, 1);
        let mut uart = Self(pa);
        uart.listen(false);
        uart
    }

    /// Chooses of what it tells by its interrupt: of what it receives; and, if so, of room, which it
    /// has when all is sent.
    pub fn listen(&mut self, for_room: bool) {
        write32(self.0 + if for_room { ENABLE } else { DISABLE }, EMPTY);
        write32(self.0 + ENABLE, RECEIVED);
    }

    /// Takes back what its interrupt has told: it tells again what is still so.
    pub fn clear(&mut self) {
        write32(self.0 + PENDING, u32::MAX);
    }

    /// Returns true if there is no room for a byte.
    pub fn is_full(&self) -> bool {
        read32(self.0 + STATUS) & FULL != 0
    }

    /// Sends a byte; there must be room.
    pub fn put(&mut self, byte: u8) {
        write32(self.0 + FIFO, byte.into());
    }

    /// Takes a byte that has arrived.
    pub fn get(&mut self) -> Option<u8> {
        let is_there = read32(self.0 + STATUS) & NOTHING_RECEIVED == 0;
        is_there.then(|| read32(self.0 + FIFO) as u8)
    }
}

/// A UART that is written to without being driven.
pub struct Direct(u64);

impl Direct {
    /// That at a physical address.
    pub fn at(pa: u64) -> Self {
        Self(pa)
    }

    /// Returns true if there is room for a byte.
    pub fn has_room(&self) -> bool {
        read32(self.0 + STATUS) & FULL == 0
    }

    /// Writes a byte.
    pub fn write(&self, byte: u8) {
        write32(self.0 + FIFO, byte.into());
    }
}
