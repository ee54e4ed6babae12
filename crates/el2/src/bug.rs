//! What cannot happen, unless EL2 has a bug.
//!
//! The image that ships counts such a case in the status area, where the
//! laboratory shows it, and goes on with the least harm: an interrupt or a message
//! is dropped, a guest's access reads as zero. A build with the feature `checked`
//! says where it is and stops the machine; so do tests.

/// `bug!("what")`: this cannot happen. A build that ships counts it and goes on behind it.
macro_rules! bug {
    ($what:literal) => {
        if cfg!(any(test, feature = "checked")) { panic!($what) } else { $crate::bug::count() }
    };
}
pub(crate) use bug;

/// Counts a case of what cannot happen.
#[cold]
#[inline(never)]
pub fn count() {
    crate::status::count_bug(crate::tables::find());
}
