//! Memory that all cores share.

/// `statics! { static NAME: Type = value; }`: such memory.
macro_rules! statics {
    ($($(#[$doc:meta])* $visible:vis static $name:ident: $type:ty = $value:expr;)*) => {$(
        $(#[$doc])*
        $visible static $name: $type = $value;
    )*};
}
pub(crate) use statics;
