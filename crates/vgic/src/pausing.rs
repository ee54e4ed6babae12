//! Atomics before each access to which something else may happen.

use std::cell::Cell;
use std::sync::atomic::Ordering;

thread_local! {
    static HOOK: Cell<fn()> = const { Cell::new(|| {}) };
}

/// Does this before each access by this thread.
pub fn before_each_access(hook: fn()) {
    HOOK.set(hook);
}

fn pause() {
    (HOOK.get())();
}

macro_rules! pausing {
    ($name:ident, $value:ty) => {
        pub struct $name(std::sync::atomic::$name);

        #[allow(dead_code, reason = "not every width needs every operation")]
        impl $name {
            pub const fn new(value: $value) -> Self {
                Self(std::sync::atomic::$name::new(value))
            }

            pub fn load(&self, order: Ordering) -> $value {
                pause();
                self.0.load(order)
            }

            pub fn store(&self, value: $value, order: Ordering) {
                pause();
                self.0.store(value, order);
            }

            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                pause();
                self.0.swap(value, order)
            }

            pub fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                pause();
                self.0.fetch_or(value, order)
            }

            pub fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                pause();
                self.0.fetch_and(value, order)
            }
        }
    };
}

pausing!(AtomicU8, u8);
pausing!(AtomicU16, u16);
pausing!(AtomicU32, u32);
