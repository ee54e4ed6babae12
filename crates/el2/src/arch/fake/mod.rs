//! A machine made of memory, for tests on the host.
//!
//! It has what [`super::aarch64`] has, function by function: registers are words
//! of a [`machine::Machine`], which gives the few that do something their
//! meaning. Everything above, which says what registers mean, is the code that
//! ships. Each thread has a machine of its own, and on it one core executes at a
//! time; what drives the machine says which, and is asked before each access to a
//! register or to memory that several cores access whether another one goes on first
//! ([`machine::pause_with`]).

pub mod atomic;
pub mod boot;
pub mod digest;
pub mod firmware;
pub mod float;
pub mod guest;
pub mod instructions;
pub mod interrupts;
pub mod machine;
pub mod memory;
pub mod registers;
pub mod smmu;
pub mod statics;
pub mod vectors;
