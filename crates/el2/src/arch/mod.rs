//! What only AArch64 knows: registers, exception entry, the GIC, timers.
//!
//! Everything above this module is written in terms of it and names no
//! register.

pub mod boot;
pub mod cache;
pub mod context;
pub mod cpu;
pub mod firmware;
pub mod gic;
pub mod ich;
pub mod sysreg;
pub mod timer;
pub mod vectors;
