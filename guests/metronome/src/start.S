// Entry, vectors, and the loop of known length.

.section .text.start, "ax"
.global _start
_start:
    mov     x0, #0
// Cores but the first come here through PSCI CPU_ON, x0 their index.
.global start_core
start_core:
    adrp    x1, stacks
    add     x1, x1, :lo12:stacks
    add     x2, x0, #1
    add     x1, x1, x2, lsl #14
    mov     sp, x1
    msr     tpidr_el1, x0
    adrp    x1, vectors
    add     x1, x1, :lo12:vectors
    msr     vbar_el1, x1
    isb
    b       core_main

// Calls loop_iterations times four instructions with interrupts unmasked, in
// x19, until the handler sets x20.
.text
.global count_until_interrupt
count_until_interrupt:
    stp     x19, x20, [sp, #-16]!
    mov     x19, #0
    mov     x20, #0
    msr     daifclr, #2
1:  add     x19, x19, #1
    nop
    nop
    cbz     x20, 1b
    msr     daifset, #2
    mov     x0, x19
    ldp     x19, x20, [sp], #16
    ret

// The counter is read by the second instruction.
.macro interrupt
    str     x0, [sp, #-16]!
    mrs     x0, cntvct_el0
    b       on_interrupt
.endm

.balign 2048
vectors:
.rept 5
    .balign 128
    b       on_fault
.endr
    .balign 128
    interrupt
.rept 10
    .balign 128
    b       on_fault
.endr

on_interrupt:
    stp     x1, x2, [sp, #-16]!
    stp     x3, x4, [sp, #-16]!
    stp     x5, x6, [sp, #-16]!
    stp     x7, x8, [sp, #-16]!
    stp     x9, x10, [sp, #-16]!
    stp     x11, x12, [sp, #-16]!
    stp     x13, x14, [sp, #-16]!
    stp     x15, x16, [sp, #-16]!
    stp     x17, x18, [sp, #-16]!
    stp     x29, x30, [sp, #-16]!
    bl      interrupt
    // Ends count_until_interrupt, if that is what runs.
    mov     x20, x0
    ldp     x29, x30, [sp], #16
    ldp     x17, x18, [sp], #16
    ldp     x15, x16, [sp], #16
    ldp     x13, x14, [sp], #16
    ldp     x11, x12, [sp], #16
    ldp     x9, x10, [sp], #16
    ldp     x7, x8, [sp], #16
    ldp     x5, x6, [sp], #16
    ldp     x3, x4, [sp], #16
    ldp     x1, x2, [sp], #16
    ldr     x0, [sp], #16
    eret

on_fault:
    mrs     x0, esr_el1
    mrs     x1, elr_el1
    b       fault
    b       fault

.bss
.balign 16
stacks:
    .skip 8 << 14
