//! Atomic words. Tests put pauses into every access, so that threads meet in
//! windows of a few instructions as often as they would in years otherwise.

#[cfg(test)]
pub(crate) use crate::tests::pausing::{AtomicU8, AtomicU16, AtomicU32};
#[cfg(not(test))]
pub(crate) use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32};
