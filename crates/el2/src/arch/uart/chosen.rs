//! The UART that the board has, out of all that there is a driver for. Which one it is is asked at each byte:
//! that is little beside an access to a device.

use super::{cadence, imx, ns16550, pl011};
use abi::system::{System, parts};

/// A UART that one core drives.
pub enum Uart {
    /// Arm's PL011.
    Pl011(pl011::Uart),
    /// That of a Zynq.
    Cadence(cadence::Uart),
    /// That of an i.MX.
    Imx(imx::Uart),
    /// A 16550, or what is like one.
    Ns16550(ns16550::Uart),
}

/// Does the same with a UART of any kind.
macro_rules! with {
    ($of:ident, $any:expr, $uart:ident => $done:expr) => {
        match $any {
            $of::Pl011($uart) => $done,
            $of::Cadence($uart) => $done,
            $of::Imx($uart) => $done,
            $of::Ns16550($uart) => $done,
        }
    };
}

impl Uart {
    /// Takes over the board's; it tells what it receives. None at address 0.
    pub fn take(system: &System) -> Option<Self> {
        let pa = system.board.uart_pa;
        if pa == 0 {
            return None;
        }
        Some(match kind(system) {
            parts::UART_CADENCE => Self::Cadence(cadence::Uart::take(pa)),
            parts::UART_IMX => Self::Imx(imx::Uart::take(pa)),
            parts::UART_16550 => Self::Ns16550(ns16550::Uart::take(pa)),
            parts::UART_MINI => Self::Ns16550(ns16550::Uart::take_mini(pa)),
            _ => Self::Pl011(pl011::Uart::take(system)?),
        })
    }

    /// Chooses of what it tells by its interrupt: of what it receives; and, if so, of room.
    pub fn listen(&mut self, for_room: bool) {
        with!(Self, self, uart => uart.listen(for_room));
    }

    /// Takes back what its interrupt has told: it tells again what is still so.
    pub fn clear(&mut self) {
        with!(Self, self, uart => uart.clear());
    }

    /// Returns true if there is no room for a byte.
    pub fn is_full(&mut self) -> bool {
        with!(Self, self, uart => uart.is_full())
    }

    /// Sends a byte; there must be room.
    pub fn put(&mut self, byte: u8) {
        with!(Self, self, uart => uart.put(byte));
    }

    /// Takes a byte that has arrived.
    pub fn get(&mut self) -> Option<u8> {
        with!(Self, self, uart => uart.get())
    }
}

/// A UART that is written to without being driven.
pub enum Direct {
    /// Arm's PL011.
    Pl011(pl011::Direct),
    /// That of a Zynq.
    Cadence(cadence::Direct),
    /// That of an i.MX.
    Imx(imx::Direct),
    /// A 16550, or what is like one.
    Ns16550(ns16550::Direct),
}

impl Direct {
    /// Returns the board's.
    pub fn of(system: &System) -> Self {
        let pa = system.board.uart_pa;
        match kind(system) {
            parts::UART_CADENCE => Self::Cadence(cadence::Direct::at(pa)),
            parts::UART_IMX => Self::Imx(imx::Direct::at(pa)),
            parts::UART_16550 => Self::Ns16550(ns16550::Direct::at(pa)),
            parts::UART_MINI => Self::Ns16550(ns16550::Direct::at_mini(pa)),
            _ => Self::Pl011(pl011::Direct::of(system)),
        }
    }

    /// Returns the one that is tried where it is not known which one the board has.
    pub fn fallback() -> Self {
        Self::Pl011(pl011::Direct::fallback())
    }

    /// Returns true if there is room for a byte.
    pub fn has_room(&self) -> bool {
        with!(Self, self, uart => uart.has_room())
    }

    /// Writes a byte.
    pub fn write(&self, byte: u8) {
        with!(Self, self, uart => uart.write(byte));
    }
}

/// Returns which one the board has: 0 for a PL011.
const fn kind(system: &System) -> u32 {
    system.header.version & parts::UARTS
}
