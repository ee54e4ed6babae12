//! A vCPU on its way from one core to another.

use crate::vcpu::Vcpu;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Holds the exclusive reference while neither core has it.
pub struct Transit(AtomicPtr<Vcpu>);

impl Transit {
    /// Nobody is on the way.
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// The former owner lets go. Its last: what it wrote is seen by the next.
    pub fn put(&self, vcpu: &'static mut Vcpu) {
        self.0.store(vcpu, Ordering::Release);
    }

    /// The new owner takes it, once.
    pub fn take(&self) -> Option<&'static mut Vcpu> {
        let vcpu = self.0.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: null, or the address of the one exclusive reference, which
        // its owner gave up to `put` for ever; the swap hands it out once.
        unsafe { vcpu.as_mut() }
    }
}
