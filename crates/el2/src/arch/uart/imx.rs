//! The UART of an i.MX (i.MX 8M Plus Reference Manual, IMX8MPRM, chapter 16.2).

use crate::arch::memory::device::{read32, write32};

const RECEIVED: u64 = 0x00;
const SEND: u64 = 0x40;
const CONTROL_1: u64 = 0x80;
const CONTROL_2: u64 = 0x84;
const CONTROL_3: u64 = 0x88;
const CONTROL_4: u64 = 0x8c;
const FIFO_CONTROL: u64 = 0x90;
const TEST: u64 = 0xb4;

/// RECEIVED: there is a byte in it.
const IS_THERE: u32 = 1 << 15;
/// CONTROL_1: the UART is on; its interrupts tell of room, and of what it receives.
const ON: u32 = 1 << 0;
const TELL_ROOM: u32 = 1 << 13;
const TELL_RECEIVED: u32 = 1 << 9;
/// CONTROL_2: it is not being reset, it receives, it sends; interrupts of an escape sequence, of RTS, and of what
/// has waited long.
const NO_RESET: u32 = 1 << 0;
const RECEIVE: u32 = 1 << 1;
const TRANSMIT: u32 = 1 << 2;
const OTHERS_2: u32 = 1 << 15 | 1 << 4 | 1 << 3;
/// CONTROL_3 and CONTROL_4: all other interrupts.
const OTHERS_3: u32 = 1 << 13 | 1 << 12 | 1 << 11 | 1 << 6 | 1 << 5 | 1 << 4 | 1 << 3;
const OTHERS_4: u32 = 1 << 8 | 1 << 7 | 1 << 5 | 1 << 3 | 1 << 2 | 1 << 1 | 1 << 0;
/// FIFO_CONTROL: it tells of room when no more than so many bytes wait (2 is the least), and of the first one that
/// it receives.
const LEVELS: u32 = 0x3f << 10 | 0x3f;
const LEAST: u32 = 2 << 10 | 1;
/// TEST: there is no room.
const FULL: u32 = 1 << 4;

/// A UART that one core drives.
pub struct Uart(u64);

impl Uart {
    /// Takes over the one at a physical address; it tells what it receives.
    pub fn take(pa: u64) -> Self {
        let keep = |register, off: u32, on: u32| {
            write32(pa + register, read32(pa + register) & !off | on);
        };
        write32(pa + CONTROL_1, ON);
        keep(CONTROL_3, OTHERS_3, 0);
        keep(CONTROL_4, OTHERS_4, 0);
        keep(FIFO_CONTROL, LEVELS, LEAST);
        keep(CONTROL_2, OTHERS_2, NO_RESET | RECEIVE | TRANSMIT);
        let mut uart = Self(pa);
        uart.listen(false);
        uart
    }

    /// Chooses of what it tells by its interrupt: of what it receives; and, if so, of room.
    pub fn listen(&mut self, for_room: bool) {
        let room = if for_room { TELL_ROOM } else { 0 };
        write32(self.0 + CONTROL_1, ON | TELL_RECEIVED | room);
    }

    /// Does nothing: it tells what is so, as long as it is so.
    pub fn clear(&mut self) {}

    /// Returns true if there is no room for a byte.
    pub fn is_full(&self) -> bool {
        !Direct(self.0).has_room()
    }

    /// Sends a byte; there must be room.
    pub fn put(&mut self, byte: u8) {
        Direct(self.0).write(byte);
    }

    /// Takes a byte that has arrived.
    pub fn get(&mut self) -> Option<u8> {
        let received = read32(self.0 + RECEIVED);
        (received & IS_THERE != 0).then_some(received as u8)
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
        read32(self.0 + TEST) & FULL == 0
    }

    /// Writes a byte.
    pub fn write(&self, byte: u8) {
        write32(self.0 + SEND, byte.into());
    }
}
