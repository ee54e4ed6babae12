//! Memory reserved at build time, handed out at run time, each piece once.
//!
//! There is no allocator at EL2: a core's state and a vCPU's state lie in
//! static arrays. The core that initialises a slot becomes its only owner, and the
//! reference moves with ownership from then on.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};

/// `N` pieces of memory for a `T` each.
pub struct Slots<T, const N: usize> {
    taken: [AtomicBool; N],
    memory: [UnsafeCell<MaybeUninit<T>>; N],
}

// SAFETY: a slot's memory is reachable only through the one reference that
// `fill` gives out, which is as movable between cores as `T` is.
unsafe impl<T: Send, const N: usize> Sync for Slots<T, N> {}

impl<T, const N: usize> Slots<T, N> {
    /// Makes slots none of which is handed out.
    pub const fn new() -> Self {
        Self {
            taken: [const { AtomicBool::new(false) }; N],
            memory: [const { UnsafeCell::new(MaybeUninit::uninit()) }; N],
        }
    }

    /// Puts a value into a slot and hands the slot out. Returns none if there is no
    /// such slot or it was handed out before.
    #[expect(clippy::mut_from_ref, reason = "`taken` lets each slot be handed out once")]
    pub fn fill(&'static self, index: usize, value: T) -> Option<&'static mut T> {
        if self.taken.get(index)?.swap(true, Ordering::AcqRel) {
            return None;
        }
        let slot = self.memory[index].get();
        // SAFETY: `taken` was false, so no reference to this slot exists, and it
        // is true now, so none will be made again.
        Some(unsafe { (*slot).write(value) })
    }
}
