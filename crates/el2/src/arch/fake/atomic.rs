//! Words that several cores access: before each access another core may go on.

use super::machine::{self, Pause};
use core::ops::Deref;
use core::sync::atomic::{self, Ordering};
use sched::{AtomicCell, Word};

/// An atomic word of the host. To get at it is to access it.
pub struct Pausing<A>(A);

impl<A> Deref for Pausing<A> {
    type Target = A;

    fn deref(&self) -> &A {
        machine::pause(Pause::Access);
        &self.0
    }
}

/// `pausing!(Name: value)`: an atomic word that pauses.
macro_rules! pausing {
    ($($name:ident: $value:ty),*) => {$(
        #[doc = concat!("See `core::sync::atomic::", stringify!($name), "`.")]
        pub type $name = Pausing<atomic::$name>;

        impl $name {
            /// Makes a word of this value.
            pub const fn new(value: $value) -> Self {
                Self(atomic::$name::new(value))
            }
        }
    )*};
}

pausing!(AtomicBool: bool, AtomicU8: u8, AtomicU16: u16, AtomicU32: u32, AtomicU64: u64);

/// See `core::sync::atomic::AtomicPtr`.
pub type AtomicPtr<T> = Pausing<atomic::AtomicPtr<T>>;

impl<T> AtomicPtr<T> {
    /// Makes a pointer of this value.
    pub const fn new(value: *mut T) -> Self {
        Self(atomic::AtomicPtr::new(value))
    }
}

impl Word for AtomicU64 {
    fn load(&self, order: Ordering) -> u64 {
        (**self).load(order)
    }

    fn swap(&self, value: u64, order: Ordering) -> u64 {
        (**self).swap(value, order)
    }

    fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
        (**self).fetch_or(bits, order)
    }

    fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
        (**self).fetch_and(bits, order)
    }
}

impl AtomicCell for AtomicU8 {
    fn store(&self, value: u8, order: Ordering) {
        (**self).store(value, order);
    }

    fn load(&self, order: Ordering) -> u8 {
        (**self).load(order)
    }

    fn fence(order: Ordering) {
        atomic::fence(order);
    }
}
