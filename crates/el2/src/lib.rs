//! The parts of the hypervisor that need no hardware.
//!
//! What decides, translates and remembers stands here and is tested on the
//! host; the `cassata-el2` program around it touches registers.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod pl011;
pub mod power;
pub mod ring;
pub mod vgic;
