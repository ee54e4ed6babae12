//! Memory that all cores of a machine share.

use super::machine;
use std::boxed::Box;
use std::cell::Cell;
use std::ops::Deref;
use std::thread::LocalKey;

/// `statics! { static NAME: Type = value; }`: such memory, for each machine anew.
macro_rules! statics {
    ($($(#[$doc:meta])* $visible:vis static $name:ident: $type:ty = $value:expr;)*) => {$(
        $(#[$doc])*
        $visible static $name: $crate::arch::fake::statics::OfMachine<$type> = {
            std::thread_local! {
                static HERE: $crate::arch::fake::statics::Place<$type> =
                    const { std::cell::Cell::new(None) };
            }
            $crate::arch::fake::statics::OfMachine::new(&HERE, || $value)
        };
    )*};
}
pub(crate) use statics;

/// A value, and the number of the machine to which it belongs.
pub type Place<T> = Cell<Option<(u64, *mut T)>>;

/// See the module.
pub struct OfMachine<T: 'static> {
    here: &'static LocalKey<Place<T>>,
    make: fn() -> T,
}

impl<T> OfMachine<T> {
    /// Made when it is used.
    pub const fn new(here: &'static LocalKey<Place<T>>, make: fn() -> T) -> Self {
        Self { here, make }
    }

    #[inline(never)]
    fn renew(&self) -> *mut T {
        if let Some((_, old)) = self.here.get() {
            // SAFETY: `renew` boxed it; the machine it belonged to is gone, and
            // with it all its cores, the only ones that had references.
            drop(unsafe { Box::from_raw(old) });
        }
        let new = Box::into_raw(Box::new((self.make)()));
        self.here.set(Some((machine::number(), new)));
        new
    }
}

impl<T> Deref for OfMachine<T> {
    type Target = T;

    fn deref(&self) -> &T {
        let value = match self.here.get() {
            Some((of, value)) if of == machine::number() => value,
            _ => self.renew(),
        };
        // SAFETY: boxed by `renew`, and freed when the machine is gone.
        unsafe { &*value }
    }
}
