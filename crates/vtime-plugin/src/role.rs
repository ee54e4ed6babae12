//! What the current thread is.

use std::cell::Cell;

/// What a thread of QEMU's is to the lockstep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Neither of the others.
    Other,
    /// The thread that QEMU's main loop runs in.
    MainLoop,
    /// The thread of an emulated core.
    Vcpu {
        /// The index.
        index: usize,
        /// The idle callback has run: the next condition it waits for is the
        /// one that wakes it.
        falling_asleep: bool,
    },
}

thread_local! {
    static ROLE: Cell<Role> = const { Cell::new(Role::Other) };
}

/// The current thread's role.
pub fn get() -> Role {
    ROLE.get()
}

/// Sets the current thread's role.
pub fn set(role: Role) {
    ROLE.set(role);
}

/// The core whose thread this is.
pub fn vcpu() -> Option<usize> {
    match ROLE.get() {
        Role::Vcpu { index, .. } => Some(index),
        _ => None,
    }
}
