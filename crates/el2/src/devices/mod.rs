//! Emulated devices: a [`bus`] for each VM, and a file for each device.
//!
//! A device says where it stands in a VM's memory and answers accesses. It sees
//! what its VM's vCPUs share and the interrupt interface of the vCPU that
//! accesses it, never the core: what has to be done elsewhere is in its answer.

pub mod bus;
mod gic;
#[cfg(feature = "gic-v2")]
mod gicc_v2;
#[cfg(not(feature = "gic-v2"))]
mod gicd;
#[cfg(feature = "gic-v2")]
mod gicd_v2;
#[cfg(not(feature = "gic-v2"))]
mod gicr;
pub mod uart;
