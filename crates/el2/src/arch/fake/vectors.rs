//! Exception entry and exit.

use super::machine;
use std::cell::Cell;

/// Which exception a core takes from its guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vector {
    /// An instruction trapped.
    Synchronous,
    /// A physical interrupt.
    Interrupt,
    /// A system error.
    Serror,
    /// Anything from AArch32.
    Unsupported,
}

/// `vectors!(for Core, ...)`: how a core takes an exception.
macro_rules! vectors {
    (
        for $core:ty,
        synchronous: $synchronous:path,
        interrupt: $interrupt:path,
        serror: $serror:path,
        unsupported: $unsupported:path,
        fatal: $fatal:path $(,)?
    ) => {
        const _: extern "C-unwind" fn(u64) -> ! = $fatal;

        /// Takes an exception from the guest, as the hardware would.
        pub fn take(core: &mut $core, vector: $crate::arch::vectors::Vector) {
            use $crate::arch::vectors::Vector;
            let handler: extern "C-unwind" fn(&mut $core) = match vector {
                Vector::Synchronous => $synchronous,
                Vector::Interrupt => $interrupt,
                Vector::Serror => $serror,
                Vector::Unsupported => $unsupported,
            };
            // To take an exception synchronizes, and to return from one.
            $crate::arch::fake::instructions::synchronize();
            handler(core);
            $crate::arch::fake::instructions::synchronize();
        }
    };
}
pub(crate) use vectors;

/// Runs guests on a core whose address this is, for ever.
type Guests = fn(core: u64) -> !;

thread_local! {
    static GUESTS: Cell<Option<Guests>> = const { Cell::new(None) };
}

/// Lets `guests` execute whatever guest is loaded.
pub fn enter_with(guests: Guests) {
    GUESTS.set(Some(guests));
}

/// Resumes the loaded vCPU.
///
/// # Safety
/// As on hardware: the address of the core stands at `stack`.
pub unsafe fn enter_guest(stack: *const u64) -> ! {
    // SAFETY: by contract.
    let core = unsafe { stack.read() };
    machine::pause(machine::Pause::Access);
    (GUESTS.get().expect("a test runs guests"))(core)
}
