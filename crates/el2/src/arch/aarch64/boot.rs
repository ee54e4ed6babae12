//! From reset (or the boot loader) to Rust.
//!
//! The boot core enters at `_start`, the others, switched on by PSCI, at
//! `secondary_start` with their index in X0. Both arrive at EL2 with the MMU
//! off, take their own stack and go on where [`boot!`] says.
//!
//! With the MMU off a core writes past its caches. A line of what it has written that was there
//! before, clean, would pass for it once the MMU is on. So the boot core, which checks the page
//! table on its stack, first empties all caches of what it will write: no other core runs then
//! that could fill them. The others find a table that was checked, and write nothing before their MMU is
//! on: by then the boot core's caches may hold any line of their stacks.

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
                adrp    x1, __stacks_end
                // CTR_EL0.DminLine: words of a line, by their logarithm.
                mrs     x2, ctr_el0
                ubfx    x2, x2, #16, #4
                mov     x3, #4
                lsl     x3, x3, x2
                mov     x2, x0
            1:  dc      civac, x2
                add     x2, x2, x3
                cmp     x2, x1
                b.lo    1b
                dsb     sy
                adrp    x1, __bss_end
                add     x1, x1, :lo12:__bss_end
            1:  cmp     x0, x1
                b.hs    2f
                stp     xzr, xzr, [x0], #16
                b       1b

            // From a spin table nothing is in X0: a core's index is its affinity 0.
            .global spin_table_start
            spin_table_start:
                mrs     x0, mpidr_el1
                and     x0, x0, #0xff
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
                // The boot core's tables are not checked yet; and a core that keeps
                // HCR_EL2.E2H would take TCR_EL2 for another one.
                cbz     x19, 3f
                mrs     x0, hcr_el2
                tbnz    x0, #34, 3f
                adrp    x0, __image_start
                add     x0, x0, #{tables}
                ldr     x0, [x0, #{root}]
                bl      enable_mmu
            3:  adrp    x0, __stacks
                add     x0, x0, :lo12:__stacks
                add     x1, x19, #1
                mov     x2, #{stack_size}
                madd    x0, x1, x2, x0
                sub     sp, x0, #16
                mov     x0, x19
                b       {start}

            .global enable_mmu
            enable_mmu:
                mov     x1, #{mair}
                msr     mair_el2, x1
                // ID_AA64MMFR0_EL1.PARange is TCR_EL2.PS: 48 bits at most, as larger needs
                // another granule.
                mrs     x1, id_aa64mmfr0_el1
                and     x1, x1, #0xf
                cmp     x1, #5
                mov     x2, #5
                csel    x1, x1, x2, lo
                lsl     x1, x1, #16
                mov     x2, #({tcr} & 0xffff)
                movk    x2, #({tcr} >> 16), lsl #16
                orr     x1, x1, x2
                msr     tcr_el2, x1
                msr     ttbr0_el2, x0
                isb
                tlbi    alle2
                ic      iallu
                dsb     nsh
                isb
                mov     x1, #({sctlr_on} & 0xffff)
                movk    x1, #({sctlr_on} >> 16), lsl #16
                msr     sctlr_el2, x1
                isb
                ret
            "#,
            el2 = const $crate::arch::cpu::CURRENT_EL2,
            hcr = const $crate::arch::sysreg::hcr::RW,
            sctlr = const $crate::arch::cpu::SCTLR_RES1,
            sctlr_on = const $crate::arch::cpu::SCTLR,
            tcr = const $crate::arch::cpu::TCR,
            mair = const abi::system::stage1::MAIR,
            tables = const abi::system::HYPERVISOR_SIZE,
            root = const core::mem::offset_of!(abi::system::System, board.stage1_pa),
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
    #[cfg(feature = "spin-table")]
    fn spin_table_start();
    /// Turns this core's MMU on with the tables the host built; on other cores than the first it
    /// is on when they come to Rust.
    ///
    /// # Safety
    /// `root` is a valid stage-1 table that maps the running code, its stack and
    /// its data at their own addresses.
    pub fn enable_mmu(root: u64);
}

/// Where the hypervisor lies, which is also where its 2 MiB begin.
pub fn image_pa() -> u64 {
    (&raw const __image_start) as u64
}

/// Where a core goes on that waited in a spin table.
#[cfg(feature = "spin-table")]
pub fn spin_table_entry_pa() -> u64 {
    spin_table_start as *const () as u64
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
    ((&raw const __stacks) as usize + (index + 1) * STACK_SIZE - 16) as *mut u64
}
