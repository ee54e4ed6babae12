//! The UART that carries all consoles: taking bytes, giving bytes, telling when there is room.
//!
//! `pl011` drives most boards'; `cadence` that of a Zynq, in an image of its own. Both take the UART
//! over as the firmware left it: its clock, its rate, its FIFOs.

#[cfg(feature = "uart-cadence")]
mod cadence;
#[cfg(not(feature = "uart-cadence"))]
mod pl011;

#[cfg(feature = "uart-cadence")]
use cadence as kind;
#[cfg(not(feature = "uart-cadence"))]
use pl011 as kind;

pub use kind::{Direct, Uart};
