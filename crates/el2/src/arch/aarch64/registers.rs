//! Reading and writing system registers.
//!
//! One macro instead of a crate of typed registers: half of what EL2 touches
//! (the GIC's hypervisor interface, in encoded form) is in no such crate, and
//! two notations for one thing would be worse than a plain one.

/// `read_sysreg!(NAME)`: the value of a system register.
///
/// Reading any of the registers we name has no side effect but where the
/// caller says so (ICC_IAR1_EL1 acknowledges).
macro_rules! read_sysreg {
    ($name:expr) => {{
        let value: u64;
        // SAFETY: reading a system register accesses no memory.
        unsafe {
            core::arch::asm!(concat!("mrs {}, ", $name), out(reg) value, options(nomem, nostack));
        }
        value
    }};
}

/// `write_sysreg!(NAME, value)`: writes a system register; an unsafe operation
/// when the register controls memory, which is why the caller writes `unsafe`
/// around it.
macro_rules! write_sysreg {
    ($name:literal, $value:expr) => {{
        let value: u64 = $value;
        core::arch::asm!(concat!("msr ", $name, ", {}"), in(reg) value, options(nostack));
    }};
}

pub(crate) use {read_sysreg, write_sysreg};
