//! Barriers and maintenance, of which one core at a time needs none; waiting.

use super::machine::{self, Pause};

/// See [`super::super::aarch64`].
pub fn synchronize() {}

/// The same.
pub fn complete() {
    machine::pause(Pause::Access);
}

/// The same.
pub fn publish() {
    machine::pause(Pause::Access);
}

/// Lets other cores go on until an interrupt is signalled.
pub fn wait_for_interrupt() {
    machine::pause(Pause::Wait);
}

/// The same as [`synchronize`].
pub fn forget_instructions() {}

/// The same.
pub fn forget_own_translations() {}

/// The same.
pub fn forget_guest_translations() {}

/// The same.
pub fn forget_stage1() {}

/// The same.
pub fn forget_both_stages() {}
