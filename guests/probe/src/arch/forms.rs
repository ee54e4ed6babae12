//! Loads and stores in every form that the architecture describes to a
//! hypervisor (DDI 0487, ISS encoding for an exception from a Data Abort,
//! ISV = 1): widths, sign extension, ordered ones, the zero register.

use super::mmio::Window;
use core::arch::asm;

macro_rules! loads {
    ($($(#[$doc:meta])* $name:ident = $instruction:literal;)*) => {$(
        $(#[$doc])*
        /// Answers the whole register; all its bits were set before.
        #[inline(never)]
        pub fn $name(window: Window, offset: u64) -> u64 {
            let address = window.address(offset, 1);
            let value: u64;
            // SAFETY: `address` lies in a device's registers, which are mapped
            // and which no Rust object occupies.
            unsafe {
                asm!(
                    concat!($instruction, ", [{address}]"),
                    inout("x9") u64::MAX => value,
                    address = in(reg) address,
                    options(nostack, preserves_flags)
                );
            }
            value
        }
    )*};
}

loads! {
    /// Zero-extended byte.
    ldrb = "ldrb w9";
    /// Byte, sign-extended to 32 bits.
    ldrsb_w = "ldrsb w9";
    /// Byte, sign-extended to 64 bits.
    ldrsb_x = "ldrsb x9";
    /// Word.
    ldr_w = "ldr w9";
    /// Word, sign-extended to 64 bits.
    ldrsw = "ldrsw x9";
    /// Word, unscaled offset.
    ldur_w = "ldur w9";
    /// Byte, with acquire semantics.
    ldarb = "ldarb w9";
    /// Word, with acquire semantics.
    ldar_w = "ldar w9";
}

/// Loads a word into the zero register, which is to change nothing: answers
/// X30 and SP before and after.
#[inline(never)]
pub fn load_to_zero_register(window: Window, offset: u64) -> [(u64, u64); 2] {
    let address = window.address(offset, 4);
    let (link, stack, link_after, stack_after): (u64, u64, u64, u64);
    // SAFETY: as the other loads; the value goes nowhere.
    unsafe {
        asm!(
            "mov {0}, x30", "mov {1}, sp",
            "ldr wzr, [{4}]",
            "mov {2}, x30", "mov {3}, sp",
            out(reg) link, out(reg) stack, out(reg) link_after, out(reg) stack_after,
            in(reg) address,
            options(nostack, preserves_flags)
        );
    }
    [(link, link_after), (stack, stack_after)]
}

macro_rules! stores {
    ($($(#[$doc:meta])* $name:ident = $instruction:literal;)*) => {$(
        $(#[$doc])*
        #[inline(never)]
        pub fn $name(window: Window, offset: u64, value: u64) {
            let address = window.address(offset, 1);
            // SAFETY: as for loads; no register of these devices makes memory
            // change under Rust's feet.
            unsafe {
                asm!(
                    concat!($instruction, ", [{address}]"),
                    in("x9") value,
                    address = in(reg) address,
                    options(nostack, preserves_flags)
                );
            }
        }
    )*};
}

stores! {
    /// The low byte.
    strb = "strb w9";
    /// The low word.
    str_w = "str w9";
    /// The low word, with release semantics.
    stlr_w = "stlr w9";
    /// Zero, from the zero register.
    str_wzr = "str wzr";
}
