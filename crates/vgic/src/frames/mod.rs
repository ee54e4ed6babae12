//! Register frames: what a guest's loads and stores of the interrupt
//! controller's addresses mean.
//!
//! A frame knows offsets, sizes and identification registers, and nothing of
//! banks: it translates each access into an operation of [`crate::Gic`]. The
//! registers that all versions of the architecture have alike are in `words`;
//! [`v2`] adds the rest of a GICv2, [`v3`] that of a GICv3.

pub mod v2;
pub mod v3;
mod words;
