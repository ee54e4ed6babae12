//! An emulated PL011 UART (Arm DDI 0183G).
//!
//! The guest's bytes go to a ring that the core with the physical UART empties,
//! and come from a ring that this core fills. When the transmit ring is full, the
//! guest sees a full transmit FIFO, and its driver waits or loses bytes; EL2 does
//! not wait.
//! Baud rate and line settings are remembered and mean nothing.

use super::ring::Ring;
use crate::arch::atomic::AtomicU16;
use core::ops::Range;
use core::sync::atomic::Ordering;

/// Bytes that a guest may have written and the physical UART not yet sent.
const TRANSMIT: usize = 1024;
const RECEIVE: usize = 64;
/// Below this filling the transmit interrupt is raised.
const TRANSMIT_LOW: usize = TRANSMIT / 2;

const DR: u64 = 0x000;
const RSR: u64 = 0x004;
const FR: u64 = 0x018;
const ILPR: u64 = 0x020;
const IBRD: u64 = 0x024;
const FBRD: u64 = 0x028;
const LCR_H: u64 = 0x02c;
const CR: u64 = 0x030;
const IFLS: u64 = 0x034;
const IMSC: u64 = 0x038;
const RIS: u64 = 0x03c;
const MIS: u64 = 0x040;
const ICR: u64 = 0x044;
const DMACR: u64 = 0x048;
/// Peripheral and PrimeCell identification, a byte a register.
const ID: u64 = 0xfe0;
const ID_BYTES: [u8; 8] = [0x11, 0x10, 0x14, 0x00, 0x0d, 0xf0, 0x05, 0xb1];

const FR_RXFE: u16 = 1 << 4;
const FR_TXFF: u16 = 1 << 5;
const FR_RXFF: u16 = 1 << 6;
const FR_TXFE: u16 = 1 << 7;

/// Receive interrupt.
const RX: u16 = 1 << 4;
/// Transmit interrupt.
const TX: u16 = 1 << 5;
/// Receive timeout interrupt.
const RT: u16 = 1 << 6;

/// See the module. Any core may touch it; what is more than one word is a ring.
pub struct Pl011 {
    transmit: Ring<TRANSMIT>,
    receive: Ring<RECEIVE>,
    /// Registers that only remember: ILPR, IBRD, FBRD, LCR_H, CR, IFLS, DMACR.
    remembered: [AtomicU16; 7],
    mask: AtomicU16,
    /// The transmit interrupt as the guest may clear it.
    transmit_raw: AtomicU16,
}

/// Where reading takes a byte.
pub const TAKEN_BY_READING: Range<u64> = DR..DR + 4;

impl Pl011 {
    /// Makes one as after reset.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            transmit: Ring::new(),
            receive: Ring::new(),
            remembered: [const { AtomicU16::new(0) }; 7],
            mask: AtomicU16::new(0),
            transmit_raw: AtomicU16::new(0),
        }
    }

    /// Resets it. Bytes that the guest has not read are discarded; bytes that it has written
    /// stay until they are sent.
    pub fn reset(&self) {
        self.receive.clear();
        self.remembered.iter().for_each(|register| register.store(0, Ordering::Relaxed));
        self.mask.store(0, Ordering::Relaxed);
        self.transmit_raw.store(0, Ordering::Relaxed);
    }

    /// Reads the register at `offset`.
    pub fn read(&self, offset: u64) -> u64 {
        let value = match offset {
            DR => self.receive.pop().map_or(0, u16::from),
            FR => self.flags(),
            IMSC => self.mask.load(Ordering::Relaxed),
            RIS => self.raw(),
            MIS => self.raw() & self.mask.load(Ordering::Relaxed),
            ID..0x1000 => u16::from(ID_BYTES[(offset - ID) as usize / 4]),
            _ => remembered(offset).map_or(0, |at| self.remembered[at].load(Ordering::Relaxed)),
        };
        u64::from(value)
    }

    /// Writes the register at `offset`. Returns true if it put a byte into the
    /// transmit ring, which has to be sent.
    pub fn write(&self, offset: u64, value: u64) -> bool {
        let value = value as u16;
        match offset {
            DR => {
                // A driver that ignores the full FIFO loses bytes, as it would.
                let sent = self.transmit.push(value as u8);
                self.transmit_raw.fetch_and(!TX, Ordering::Relaxed);
                self.update_transmit();
                return sent;
            }
            IMSC => self.mask.store(value & 0x7ff, Ordering::Relaxed),
            ICR => {
                self.transmit_raw.fetch_and(!value, Ordering::Relaxed);
            }
            RSR => {}
            _ => {
                if let Some(at) = remembered(offset) {
                    self.remembered[at].store(value, Ordering::Relaxed);
                }
            }
        }
        false
    }

    /// Returns true if the interrupt line is high.
    #[must_use]
    #[inline(never)]
    pub fn interrupt(&self) -> bool {
        self.raw() & self.mask.load(Ordering::Relaxed) != 0
    }

    /// Takes the next byte to send to the physical UART. Only one core calls this.
    pub fn carry(&self) -> Option<u8> {
        let byte = self.transmit.pop()?;
        self.update_transmit();
        Some(byte)
    }

    /// Returns true if there is nothing to send.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.transmit.is_empty()
    }

    /// Delivers a byte to the guest. Returns false if it had to be dropped.
    pub fn deliver(&self, byte: u8) -> bool {
        self.receive.push(byte)
    }

    /// Raises the transmit interrupt when the FIFO runs low; it stays until the
    /// guest clears it or writes (DDI 0183G, section 2.8.3).
    fn update_transmit(&self) {
        if self.transmit.len() < TRANSMIT_LOW {
            self.transmit_raw.fetch_or(TX, Ordering::Relaxed);
        }
    }

    fn raw(&self) -> u16 {
        let receive = if self.receive.is_empty() { 0 } else { RX | RT };
        receive | self.transmit_raw.load(Ordering::Relaxed)
    }

    fn flags(&self) -> u16 {
        let transmit = match self.transmit.len() {
            0 => FR_TXFE,
            TRANSMIT.. => FR_TXFF,
            _ => 0,
        };
        let receive = match self.receive.len() {
            0 => FR_RXFE,
            RECEIVE.. => FR_RXFF,
            _ => 0,
        };
        transmit | receive
    }
}

impl Default for Pl011 {
    fn default() -> Self {
        Self::new()
    }
}

fn remembered(offset: u64) -> Option<usize> {
    [ILPR, IBRD, FBRD, LCR_H, CR, IFLS, DMACR].iter().position(|&register| register == offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_guest_sends_is_carried_in_order() {
        let uart = Pl011::new();
        for byte in b"hello" {
            assert_eq!(uart.read(FR) & u64::from(FR_TXFF), 0);
            assert!(uart.write(DR, u64::from(*byte)));
        }
        assert_eq!(core::iter::from_fn(|| uart.carry()).collect::<Vec<_>>(), b"hello");
        assert!(uart.is_idle());
        assert_eq!(uart.read(FR), u64::from(FR_TXFE | FR_RXFE));
    }

    #[test]
    fn a_full_fifo_shows_and_empties_again() {
        let uart = Pl011::new();
        uart.write(IMSC, u64::from(TX));
        for _ in 0..TRANSMIT {
            assert!(uart.write(DR, 0x55));
        }
        assert_ne!(uart.read(FR) & u64::from(FR_TXFF), 0);
        assert!(!uart.write(DR, 0x55), "no room, so the byte is lost");
        assert!(!uart.interrupt());
        while uart.transmit.len() >= TRANSMIT_LOW {
            uart.carry();
        }
        assert!(uart.interrupt(), "the FIFO runs low");
        uart.write(ICR, u64::from(TX));
        assert!(!uart.interrupt());
    }

    #[test]
    fn a_byte_received_raises_the_line_until_it_is_read() {
        let uart = Pl011::new();
        assert!(uart.deliver(b'x'));
        assert!(!uart.interrupt(), "masked");
        uart.write(IMSC, u64::from(RX));
        assert!(uart.interrupt());
        assert_eq!(uart.read(MIS), u64::from(RX));
        assert_eq!(uart.read(DR), u64::from(b'x'));
        assert!(!uart.interrupt());
    }

    #[test]
    fn it_says_what_it_is() {
        let uart = Pl011::new();
        let id: Vec<u64> = (0..8).map(|at| uart.read(ID + 4 * at)).collect();
        assert_eq!(id, [0x11, 0x10, 0x14, 0x00, 0x0d, 0xf0, 0x05, 0xb1]);
        uart.write(IBRD, 13);
        uart.reset();
        assert_eq!(uart.read(IBRD), 0);
    }
}
