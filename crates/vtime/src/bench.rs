//! The bench of virtual time: what is run, and what must hold.
//!
//! A [`Case`] says how QEMU is started and reads its console. Who runs it is
//! somebody else; `examples/bench.rs` does so by hand.

mod case;
mod checks;
mod sample;

pub use case::{Case, CaseError, Figures, Guest, Images, Measurement, matrix};
pub use checks::{Check, check};
pub use sample::Sample;
