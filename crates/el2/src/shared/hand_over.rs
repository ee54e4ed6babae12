//! A reference that no core holds: to a vCPU between two cores, or to a core's own state
//! while the core is powered down.

use crate::arch::atomic::AtomicPtr;
use core::ptr;
use core::sync::atomic::Ordering;

/// Holds the exclusive reference while no core has it.
pub struct HandOver<T>(AtomicPtr<T>);

// As the core that takes the reference may be another one than gave it up: `Send`.
impl<T: Send> HandOver<T> {
    /// Makes one without a reference.
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Gives a reference up. What its owner wrote before is visible to the next owner.
    pub fn put(&self, thing: &'static mut T) {
        self.0.store(thing, Ordering::Release);
    }

    /// Takes the reference, if there is one.
    pub fn take(&self) -> Option<&'static mut T> {
        let thing = self.0.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: null, or the address of the one exclusive reference, which
        // its owner gave up to `put` for ever; the swap hands it out once.
        unsafe { thing.as_mut() }
    }
}
