//! Traps of WFE, which QEMU does not have.
//!
//! With HCR_EL2.TWE a WFE of a guest is taken to EL2, unless an event is registered (DDI 0487, D1.6.1).
//! For QEMU it is a hint, and does nothing. With the option `wfe-traps`, this has QEMU do before such a
//! WFE what it does for a WFI that traps: raise the exception to EL2, with the syndrome of a WFE. All
//! that follows is QEMU's and the hypervisor's own.
//!
//! The plugin interface has nothing for that. QEMU [exports](crate::exports) the functions that its own code
//! for WFI calls; the option is refused where one is missing. Translated code has the core's state in a
//! register of the host's (`TCG_AREG0`) when it calls a plugin, and the address to which the call would
//! return tells which instruction it stands before, as it does for QEMU's own helpers.

#[cfg(target_arch = "x86_64")]
pub use host::{before_wfe, find};
#[cfg(not(target_arch = "x86_64"))]
pub use other_host::{before_wfe, find};

#[cfg(target_arch = "x86_64")]
mod host {
    use crate::exports::exported;
    use std::arch::naked_asm;
    use std::ffi::{c_int, c_uint, c_void};
    use std::mem::transmute;
    use std::sync::OnceLock;

    /// A core's state, `CPUARMState`.
    type State = c_void;

    /// QEMU's own functions (target/arm/internals.h and cpu.h).
    struct Functions {
        hcr: unsafe extern "C" fn(*mut State) -> u64,
        regime: unsafe extern "C" fn(*mut State) -> c_int,
        level_of: unsafe extern "C" fn(c_int) -> c_int,
        raise: *const c_void,
    }

    // SAFETY: addresses of functions, which may be called on the thread of any core.
    unsafe impl Send for Functions {}
    // SAFETY: as above.
    unsafe impl Sync for Functions {}

    static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

    /// HCR_EL2.TWE.
    const TWE: u64 = 1 << 14;
    /// `EXCP_UDEF` (target/arm/cpu.h): what QEMU raises for a WFI that traps.
    const EXCEPTION: u32 = 1;
    /// ESR_EL2 of a trapped WFE: its class, a 32-bit instruction, COND valid and always, TI.
    const SYNDROME: u32 = 0x01 << 26 | 1 << 25 | 1 << 24 | 0xe << 20 | 1;
    const TO_EL2: u32 = 2;

    /// Looks QEMU's functions up.
    ///
    /// # Errors
    /// If it does not export one.
    pub fn find() -> Result<(), String> {
        // SAFETY: these have had these types in QEMU since 8.2; the version is checked before.
        let functions = unsafe {
            Functions {
                hcr: transmute::<*const c_void, unsafe extern "C" fn(*mut State) -> u64>(exported(
                    c"arm_hcr_el2_eff",
                )?),
                regime: transmute::<*const c_void, unsafe extern "C" fn(*mut State) -> c_int>(
                    exported(c"arm_mmu_idx")?,
                ),
                level_of: transmute::<*const c_void, unsafe extern "C" fn(c_int) -> c_int>(
                    exported(c"arm_mmu_idx_to_el")?,
                ),
                raise: exported(c"raise_exception_ra")?,
            }
        };
        FUNCTIONS.get_or_init(|| functions);
        Ok(())
    }

    /// Returns the function that raises the exception, if a WFE traps now on the core with this state;
    /// else null.
    unsafe extern "C" fn traps(_: c_uint, _: *mut c_void, state: *mut State) -> *const c_void {
        const EL2: c_int = 2;
        let Some(functions) = FUNCTIONS.get() else { return std::ptr::null() };
        // SAFETY: `state` is that of the core whose thread this is.
        let (level, hcr) =
            unsafe { ((functions.level_of)((functions.regime)(state)), (functions.hcr)(state)) };
        if level < EL2 && hcr & TWE != 0 { functions.raise } else { std::ptr::null() }
    }

    /// What translated code calls before a WFE. Does not return if that traps: QEMU leaves the
    /// translated code then, over no frame but this one, which has nothing to end.
    #[unsafe(naked)]
    pub unsafe extern "C" fn before_wfe(_vcpu: c_uint, _: *mut c_void) {
        naked_asm!(
            // RBP: the core's state, which callees keep.
            "mov rdx, rbp",
            "sub rsp, 8",
            "call {traps}",
            "add rsp, 8",
            "test rax, rax",
            "jnz 2f",
            "ret",
            // raise_exception_ra(state, exception, syndrome, level, return address)
            "2: mov rdi, rbp",
            "mov esi, {exception}",
            "mov edx, {syndrome}",
            "mov ecx, {level}",
            "mov r8, [rsp]",
            "jmp rax",
            traps = sym traps,
            exception = const EXCEPTION,
            syndrome = const SYNDROME,
            level = const TO_EL2,
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod other_host {
    use std::ffi::{c_uint, c_void};

    /// Refuses: which register has the core's state is known of x86-64 only.
    ///
    /// # Errors
    /// Always.
    pub fn find() -> Result<(), String> {
        Err("wfe-traps=on needs a host with x86-64 processors".into())
    }

    /// Not called where [`find`] refuses.
    pub unsafe extern "C" fn before_wfe(_vcpu: c_uint, _: *mut c_void) {}
}
