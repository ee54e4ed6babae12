//! Which exception level EL2 was entered from, as the core's own register says.
//!
//! QEMU's plugin interface lists registers and reads them into a byte array of GLib's, which QEMU is
//! linked with: its two functions are looked up by name.

use qemu_plugin_sys::{
    GByteArray, qemu_plugin_get_registers, qemu_plugin_read_register, qemu_plugin_reg_descriptor,
    qemu_plugin_register,
};
use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// The register that has what was interrupted.
const NAME: &CStr = c"SPSR_EL2";
/// SPSR_EL2.M\[3:2\], and where it begins.
const LEVEL: u8 = 0b1100;
const LEVEL_SHIFT: u8 = 2;

/// GLib's functions.
struct Functions {
    new: unsafe extern "C" fn() -> *mut GByteArray,
    free: unsafe extern "C" fn(*mut GByteArray, c_int) -> *mut u8,
}

static FUNCTIONS: OnceLock<Functions> = OnceLock::new();
/// What names the register, the same for all cores of a machine.
static HANDLE: AtomicPtr<qemu_plugin_register> = AtomicPtr::new(ptr::null_mut());

/// Looks GLib's functions up.
///
/// # Errors
/// If the process has none.
pub fn find() -> Result<(), String> {
    let of = |name: &CStr| {
        // SAFETY: the name is a terminated string.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        let missing =
            || format!("no {} in this QEMU: leave out mark-vector", name.to_string_lossy());
        if found.is_null() { Err(missing()) } else { Ok(found.cast_const()) }
    };
    // SAFETY: these are the types that GLib 2 gives them.
    let functions = unsafe {
        Functions {
            new: transmute::<*const c_void, unsafe extern "C" fn() -> *mut GByteArray>(of(
                c"g_byte_array_new",
            )?),
            free: transmute::<*const c_void, unsafe extern "C" fn(*mut GByteArray, c_int) -> *mut u8>(
                of(c"g_byte_array_free")?,
            ),
        }
    };
    FUNCTIONS.get_or_init(|| functions);
    Ok(())
}

/// Learns what names the register. Called by the thread of a core that comes into being.
///
/// # Errors
/// If the core has no such register.
pub fn learn() -> Result<(), String> {
    // SAFETY: a core is initialised here, as the function demands. It answers an array of descriptors,
    // whose names are terminated strings; the array is left where it is, once for each core.
    let known = unsafe {
        let all = qemu_plugin_get_registers();
        let first = (*all).data.cast::<qemu_plugin_reg_descriptor>().cast_const();
        (0..(*all).len as usize)
            .map(|index| first.add(index).read_unaligned())
            .find(|register| CStr::from_ptr(register.name) == NAME)
    };
    let known = known.ok_or("this QEMU tells no SPSR_EL2: leave out mark-vector")?;
    HANDLE.store(known.handle, Relaxed);
    Ok(())
}

/// Returns the exception level from which the core came to EL2. Called by its thread in a callback that may
/// read registers; nothing if they cannot be read.
pub fn level_before() -> Option<u8> {
    let (functions, handle) = (FUNCTIONS.get()?, HANDLE.load(Relaxed));
    if handle.is_null() {
        return None;
    }
    // SAFETY: the handle is QEMU's own, the callback may read registers, and the array is freed once.
    let low = unsafe {
        let bytes = (functions.new)();
        let size = qemu_plugin_read_register(handle, bytes);
        let low = (size > 0 && (*bytes).len > 0).then(|| *(*bytes).data);
        (functions.free)(bytes, 1);
        low
    };
    low.map(|low| (low & LEVEL) >> LEVEL_SHIFT)
}
