//! Barriers and maintenance, of which one core at a time needs few; waiting.

use super::machine::{self, Pause};
use super::registers::{self, Register};

/// See [`super::super::aarch64`].
pub fn synchronize() {
    machine::with(|machine| machine.core_mut().stale = None);
}

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
    synchronize();
}

/// Nothing is cached, so this synchronizes.
pub fn forget_instructions() {
    synchronize();
}

/// The same.
pub fn forget_own_translations() {
    synchronize();
}

/// Forgets what was translated by a root that is none any more.
pub fn forget_root() {
    machine::with(|machine| machine.core_mut().forget_root());
    synchronize();
}

/// The same.
pub fn forget_guest_translations() {
    synchronize();
}

/// The same.
pub fn forget_stage1() {
    synchronize();
}

/// The same.
pub fn forget_both_stages() {
    synchronize();
}

/// Forgets whose translations there are.
pub fn forget_both_stages_everywhere() {
    machine::with(|machine| {
        let vmid = machine.register(machine.current, Register::named("vttbr_el2")) >> 48;
        machine.translations[vmid as usize] = None;
    });
    synchronize();
}

/// See [`super::super::aarch64`].
pub fn clear_deferred_error() {
    // SAFETY: none is needed.
    unsafe { registers::write(Register::named("s3_4_c12_c1_1"), 0) };
}
