//! From reset (or the boot loader) to Rust.
//!
//! The boot core enters at `_start`, the others, switched on by PSCI, at
//! `secondary_start` with their index in X0. Both arrive at EL2 with the MMU
//! off, take their own stack and go on where [`boot!`] says.

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
                adrp    x0, exception_vectors
                add     x0, x0, :lo12:exception_vectors
                msr     vbar_el2, x0
                adrp    x0, __stacks
                add     x0, x0, :lo12:__stacks
                add     x1, x19, #1
                mov     x2, #{stack_size}
                madd    x0, x1, x2, x0
                sub     sp, x0, #16
                mov     x0, x19
                b       {start}
            "#,
            stack_size = const $crate::arch::boot::STACK_SIZE,
            stacks_size = const abi::MAX_PCPUS * $crate::arch::boot::STACK_SIZE,
            start = sym $start,
        );
    };
}
pub(crate) use boot;

/// Bytes of one core's stack; `link.ld` reserves as much for every core, and
/// checks that it agrees.
pub const STACK_SIZE: usize = 0x4000;

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

/// The word on top of a core's stack, above everything that is pushed there.
pub fn stack_top(index: usize) -> *mut u64 {
    unsafe extern "C" {
        static __stacks: u8;
    }
    let end = (&raw const __stacks) as usize + (index + 1) * STACK_SIZE;
    (end - 16) as *mut u64
}
