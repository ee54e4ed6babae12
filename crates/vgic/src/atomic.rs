//! Atomic words. Tests put pauses into every access, so that cores meet in windows
//! of a few instructions as often as they would in years otherwise.

#[cfg(any(test, feature = "pausing"))]
pub(crate) use crate::pausing::{AtomicU8, AtomicU16, AtomicU32};
#[cfg(not(any(test, feature = "pausing")))]
pub(crate) use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32};
