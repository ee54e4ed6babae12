//! Functions of QEMU's that its plugin interface does not have.
//!
//! A QEMU whose modules are files of their own exports all its functions, since those may need any. They
//! are looked up by name.

use std::ffi::{CStr, c_void};

/// Returns the address of QEMU's function of this name.
///
/// # Errors
/// If it does not export it.
pub fn exported(name: &CStr) -> Result<*const c_void, String> {
    // SAFETY: the name is a terminated string.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if found.is_null() {
        let name = name.to_string_lossy();
        return Err(format!(
            "this QEMU does not export {name}: build it with --enable-modules, or take Debian's"
        ));
    }
    Ok(found.cast_const())
}
