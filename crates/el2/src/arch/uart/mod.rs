//! The UART that carries all consoles: taking bytes, giving bytes, telling when there is room.
//!
//! `pl011` drives most boards'. A build with the feature `uarts` drives the others, too, each by a file of its
//! own, and asks the system's tables which one the board has (`chosen`). All take the UART over as the
//! firmware left it: its clock, its rate, its FIFOs.

mod pl011;

#[cfg(feature = "uarts")]
mod cadence;
#[cfg(feature = "uarts")]
mod chosen;
#[cfg(feature = "uarts")]
mod imx;
#[cfg(feature = "uarts")]
mod ns16550;
#[cfg(all(test, not(feature = "uarts")))]
#[expect(dead_code, reason = "here are only its tests")]
mod ns16550;

#[cfg(feature = "uarts")]
pub use chosen::{Direct, Uart};
#[cfg(not(feature = "uarts"))]
pub use pl011::{Direct, Uart};

/// The UART of QEMU's `virt`, a PL011, for messages when the tables are not recognised.
const FALLBACK_PA: u64 = 0x0900_0000;
