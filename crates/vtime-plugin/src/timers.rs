//! When the timers of QEMU's block layer are due, to the nanosecond.
//!
//! For QEMU's main loop the block layer is a source of GLib's, which knows timeouts in whole milliseconds: QEMU
//! rounds the time to the next timer up, each time that the main loop is about to sleep. So a timer is up to a
//! millisecond late, and how late depends on what else wakes the main loop meanwhile. QEMU
//! [exports](crate::exports) the function that knows the time itself.

use crate::exports::exported;
use std::ffi::c_void;
use std::mem::transmute;
use std::sync::OnceLock;

/// What QEMU serves block devices in, `AioContext`.
type Context = c_void;

/// QEMU's own functions (include/block/aio.h).
struct Functions {
    /// The main loop's context; null before there is one.
    context: unsafe extern "C" fn() -> *mut Context,
    /// In how many ns the context has something to do; less than 0: nothing is planned.
    timeout: unsafe extern "C" fn(*mut Context) -> i64,
}

static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

/// Looks QEMU's functions up.
///
/// # Errors
/// If it does not export one.
pub fn find() -> Result<(), String> {
    // SAFETY: these have had these types in QEMU since 8.2; the version is checked before.
    let functions = unsafe {
        Functions {
            context: transmute::<*const c_void, unsafe extern "C" fn() -> *mut Context>(exported(
                c"qemu_get_aio_context",
            )?),
            timeout: transmute::<*const c_void, unsafe extern "C" fn(*mut Context) -> i64>(
                exported(c"aio_compute_timeout")?,
            ),
        }
    };
    FUNCTIONS.get_or_init(|| functions);
    Ok(())
}

/// Returns in how many ns of virtual time the block layer has something to do, or nothing if nothing is
/// planned. Called by the main loop's thread.
pub fn due_in_ns() -> Option<u64> {
    let functions = FUNCTIONS.get()?;
    // SAFETY: the context lives as long as the main loop, and this is its thread.
    let timeout_ns = unsafe {
        let context = (functions.context)();
        if context.is_null() { -1 } else { (functions.timeout)(context) }
    };
    u64::try_from(timeout_ns).ok()
}
