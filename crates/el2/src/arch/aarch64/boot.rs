//! From reset (or the boot loader) to Rust.
//!
//! The boot core enters at `_start`, the others, switched on by PSCI, at
//! `secondary_start` with their index in X0. Both arrive at EL2 with the MMU
//! off, take their own stack and go on where [`boot!`] says.

use abi::system::{PAGE_SIZE, Region};

/// `boot!(start)`: each core goes on in `extern "C-unwind" fn start(index: usize) -> !`.
macro_rules! boot {
    ($start:path) => {
        const _: extern "C-unwind" fn(usize) -> ! = $start;
        core::arch::global_asm!(
            r#"
            .global __stacks_size
            .set __stacks_size, {stacks_size}

            .section .text.boot, "ax"
            .global _start
            _start:
                msr     daifset, #0xf
                mov     x19, xzr
                adrp    x0, __bss_start
                add     x0, x0, :lo12:__bss_start
                adrp    x1, __bss_end
                add     x1, x1, :lo12:__bss_end
            1:  cmp     x0, x1
                b.hs    2f
                stp     xzr, xzr, [x0], #16
                b       1b

            .global secondary_start
            secondary_start:
                mov     x19, x0
            2:  msr     daifset, #0xf
                msr     spsel, #1
                // Elsewhere than at EL2, what follows would fault: it is refused with a
                // message soon.
                mrs     x0, currentel
                cmp     x0, #{el2}
                b.ne    3f
                mov     x0, #{hcr}
                msr     hcr_el2, x0
                isb
                mov     x0, #({sctlr} & 0xffff)
                movk    x0, #({sctlr} >> 16), lsl #16
                msr     sctlr_el2, x0
                isb
                adrp    x0, exception_vectors
                add     x0, x0, :lo12:exception_vectors
                msr     vbar_el2, x0
            3:  adrp    x0, __stacks
                add     x0, x0, :lo12:__stacks
                add     x1, x19, #1
                mov     x2, #{stack_size}
                madd    x0, x1, x2, x0
                sub     sp, x0, #16
                mov     x0, x19
                b       {start}
            "#,
            el2 = const $crate::arch::cpu::CURRENT_EL2,
            hcr = const $crate::arch::sysreg::hcr::RW,
            sctlr = const $crate::arch::cpu::SCTLR_RES1,
            stack_size = const $crate::arch::boot::STACK_SIZE,
            stacks_size = const abi::MAX_PCPUS * $crate::arch::boot::STACK_SIZE,
            start = sym $start,
        );
    };
}
pub(crate) use boot;

/// From one core's stack to the next, in bytes, with the page below each that is not mapped;
/// `link.ld` reserves as much for every core, and checks that it agrees.
pub const STACK_SIZE: usize = 0x8000;

/// Bytes of the stack on which a fault of EL2 itself is reported: formatting needs some 2 KiB.
pub const FAULT_STACK_SIZE: usize = 0x2000;

unsafe extern "C" {
    static __image_start: u8;
    fn secondary_start();
}

/// Where the hypervisor lies, which is also where its 2 MiB begin.
pub fn image_pa() -> u64 {
    (&raw const __image_start) as u64
}

/// Where a core that is switched on begins.
pub fn secondary_entry_pa() -> u64 {
    secondary_start as *const () as u64
}

/// A core's stack, without the page below it.
pub fn stack(index: usize) -> Region {
    unsafe extern "C" {
        static __stacks: u8;
    }
    let guard = (&raw const __stacks) as usize + index * STACK_SIZE;
    Region::new(guard as u64 + PAGE_SIZE, STACK_SIZE as u64 - PAGE_SIZE)
}

/// The word on top of a core's stack, above everything that is pushed there.
pub fn stack_top(index: usize) -> *mut u64 {
    let Region { start, size } = stack(index);
    (start + size - 16) as *mut u64
}
