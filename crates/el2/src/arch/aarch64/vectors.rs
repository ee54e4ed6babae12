//! Exception entry and exit.
//!
//! On entry from a guest all general registers go into the structure that
//! TPIDR_EL2 points to (the first field of the loaded vCPU); the word on top of
//! the core's stack is the core itself. ELR_EL2 and SPSR_EL2 stay where they
//! are until a switch, as nothing interrupts EL2. The way back reads TPIDR_EL2
//! again: a handler that switched has changed it.

/// `vectors!(for Core, ...)`: which functions take exceptions from guests, as
/// methods of the core whose address stands on its stack; and which one takes an
/// exception at EL2 itself.
macro_rules! vectors {
    (
        for $core:ty,
        synchronous: $synchronous:path,
        interrupt: $interrupt:path,
        serror: $serror:path,
        unsupported: $unsupported:path,
        fatal: $fatal:path $(,)?
    ) => {
        const _: [extern "C-unwind" fn(&mut $core); 4] =
            [$synchronous, $interrupt, $serror, $unsupported];
        const _: extern "C-unwind" fn(u64) -> ! = $fatal;
        core::arch::global_asm!(
            r#"
            .macro save_guest
                stp     x0, x1, [sp, #-16]!
                mrs     x0, tpidr_el2
                stp     x2, x3, [x0, #16]
                stp     x4, x5, [x0, #32]
                stp     x6, x7, [x0, #48]
                stp     x8, x9, [x0, #64]
                stp     x10, x11, [x0, #80]
                stp     x12, x13, [x0, #96]
                stp     x14, x15, [x0, #112]
                stp     x16, x17, [x0, #128]
                stp     x18, x19, [x0, #144]
                stp     x20, x21, [x0, #160]
                stp     x22, x23, [x0, #176]
                stp     x24, x25, [x0, #192]
                stp     x26, x27, [x0, #208]
                stp     x28, x29, [x0, #224]
                ldp     x2, x3, [sp], #16
                str     x30, [x0, #240]
                stp     x2, x3, [x0]
                ldr     x0, [sp]
            .endm

            .macro vector handler
                .balign 0x80
                save_guest
                bl      \handler
                b       resume_guest
            .endm

            .macro fatal kind
                .balign 0x80
                mov     x0, #\kind
                b       report_fault
            .endm

            .section .text.vectors, "ax"
            .balign 0x800
            .global exception_vectors
            exception_vectors:
                fatal   0
                fatal   1
                fatal   2
                fatal   3
                fatal   4
                fatal   5
                fatal   6
                .balign 0x80
                // A system error, which `complete_and_take_error` has opened for, and closes again
                // here: what it finds in X0 is not zero.
                mrs     x0, spsr_el2
                orr     x0, x0, #0x100
                msr     spsr_el2, x0
                eret
                dsb     nsh
                isb
                vector  {synchronous}
                vector  {interrupt}
                vector  {interrupt}
                vector  {serror}
                vector  {unsupported}
                vector  {unsupported}
                vector  {unsupported}
                vector  {unsupported}

            report_fault:
                // SP may be what is wrong, so a fault has a stack of its own. There are as many as
                // cores, each for one fault: a core that has faults for ever stops when none is left.
                adrp    x1, faults_reported
                add     x1, x1, :lo12:faults_reported
                mrs     x5, sctlr_el2
            1:  ldr     w2, [x1]
                cmp     w2, #{cores}
                b.hs    2f
                add     w3, w2, #1
                // Before the MMU is on memory is none for exclusives, which would be faults again.
                tbnz    x5, #0, 3f
                str     w3, [x1]
                b       4f
            3:  ldaxr   w4, [x1]
                cmp     w4, w2
                b.ne    1b
                stlxr   w4, w3, [x1]
                cbnz    w4, 1b
            4:  adrp    x1, fault_stacks
                add     x1, x1, :lo12:fault_stacks
                mov     w4, #{fault_stack}
                umaddl  x1, w3, w4, x1
                mov     sp, x1
                b       {fatal}
            2:  wfi
                b       2b

            .section .bss.fault, "aw", %nobits
                .balign 16
            fault_stacks:
                .skip   {cores} * {fault_stack}
            faults_reported:
                .skip   16

            .section .text.vectors, "ax"
            .global enter_guest
            enter_guest:
                mov     sp, x0
            resume_guest:
                mrs     x0, tpidr_el2
                ldp     x2, x3, [x0, #16]
                ldp     x4, x5, [x0, #32]
                ldp     x6, x7, [x0, #48]
                ldp     x8, x9, [x0, #64]
                ldp     x10, x11, [x0, #80]
                ldp     x12, x13, [x0, #96]
                ldp     x14, x15, [x0, #112]
                ldp     x16, x17, [x0, #128]
                ldp     x18, x19, [x0, #144]
                ldp     x20, x21, [x0, #160]
                ldp     x22, x23, [x0, #176]
                ldp     x24, x25, [x0, #192]
                ldp     x26, x27, [x0, #208]
                ldp     x28, x29, [x0, #224]
                ldr     x30, [x0, #240]
                ldp     x0, x1, [x0]
                eret
                // No speculation past the return (straight-line speculation).
                dsb     nsh
                isb
            "#,
            fault_stack = const $crate::arch::boot::FAULT_STACK_SIZE,
            cores = const abi::MAX_PCPUS,
            fatal = sym $fatal,
            synchronous = sym $synchronous,
            interrupt = sym $interrupt,
            serror = sym $serror,
            unsupported = sym $unsupported,
        );
    };
}
pub(crate) use vectors;

unsafe extern "C" {
    /// Empties the stack down to `stack`, where the core's address stands, and
    /// resumes the loaded vCPU.
    pub fn enter_guest(stack: *const u64) -> !;
}
