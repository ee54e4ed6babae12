//! Instructions: what only assembly can say.

pub mod atomic;
pub mod boot;
pub mod digest;
pub mod firmware;
pub mod float;
pub mod instructions;
pub mod memory;
pub mod registers;
#[cfg(feature = "spin-table")]
mod spin_table;
pub mod statics;
pub mod vectors;
