//! Everything that needs `unsafe`: the tests themselves are safe Rust.
//!
//! Start-up and the vector table come from `aarch64-rt`; what stands here is
//! what a test must control to the instruction: which register is read, how
//! wide an access is, and what happens to the fault it provokes.

pub mod boot;
pub mod cpu;
pub mod encodings;
pub mod exception;
pub mod fault;
pub mod forms;
pub mod fp;
pub mod loads;
pub mod memory;
pub mod mmio;
pub mod sysreg;
pub mod timed;
