// The header of an arm64 Image (Linux, Documentation/arm64/booting.rst), by which every loader knows
// where to put it, the parameters, entry and vectors.

.section .text.start, "ax"
.global _start
_start:
    b       enter
    .word   0
    .quad   0               // text_offset
    .quad   image_end       // image_size
    .quad   0xa             // little-endian, pages of 4 KiB, anywhere in memory
    .quad   0, 0, 0
    .ascii  "ARM\x64"
    .word   0

// Written into the file before it boots; `struct parameters` in platform.h. At offset 64.
.global parameters
parameters:
    .ascii  "waker-v1"
    .fill   9, 8, 0

enter:
    mov     x0, #0
// The second core comes here through PSCI CPU_ON, x0 its index.
.global enter_second
enter_second:
    msr     tpidr_el1, x0
    adrp    x1, stacks
    add     x1, x1, :lo12:stacks
    add     x2, x0, #1
    add     x1, x1, x2, lsl #13
    mov     sp, x1
    adrp    x1, vectors
    add     x1, x1, :lo12:vectors
    msr     vbar_el1, x1
    isb
    b       run

// Executes x0 times two instructions.
.text
.global burn
burn:
    cbz     x0, 2f
1:  subs    x0, x0, #1
    b.ne    1b
2:  ret

// The counter is read by the second instruction.
.balign 2048
vectors:
.rept 5
    .balign 128
    b       on_fault
.endr
    .balign 128
    str     x0, [sp, #-16]!
    mrs     x0, cntvct_el0
    b       on_interrupt
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

.bss
.balign 16
stacks:
    .skip 2 << 13
