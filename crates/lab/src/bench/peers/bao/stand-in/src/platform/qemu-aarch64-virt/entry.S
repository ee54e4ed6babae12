// From EL2 to EL1, and back for calls.

.section .text.entry, "ax"
.global enter, enter_core
enter:
enter_core:
    mrs     x0, mpidr_el1
    and     x0, x0, #0xff
    adrp    x1, stacks
    add     x1, x1, :lo12:stacks
    add     x2, x0, #1
    add     x1, x1, x2, lsl #12
    mov     sp, x1
    adrp    x1, vectors
    add     x1, x1, :lo12:vectors
    msr     vbar_el2, x1
    isb
    b       start

// enter_guest(entry, context, core)
.global enter_guest
enter_guest:
    // AArch64 at EL1; SMC traps.
    mov     x3, #1 << 31
    orr     x3, x3, #1 << 19
    msr     hcr_el2, x3
    mrs     x3, midr_el1
    msr     vpidr_el2, x3
    mov     x3, #1 << 31
    orr     x3, x3, x2
    msr     vmpidr_el2, x3
    mov     x3, #3
    msr     cnthctl_el2, x3
    msr     cntvoff_el2, xzr
    mov     x3, #0x33ff
    msr     cptr_el2, x3
    // ICC_SRE_EL2: EL1 may use the interrupt controller's registers.
    mov     x3, #0xf
    msr     S3_4_C12_C9_5, x3
    ldr     x3, =0x30d00800
    msr     sctlr_el1, x3
    mov     x3, #0x3c5
    msr     spsr_el2, x3
    msr     elr_el2, x0
    mov     x0, x1
    isb
    eret

// firmware(function, a, b, c)
.global firmware
firmware:
    smc     #0
    ret

.balign 2048
vectors:
.rept 8
    .balign 128
    b       .
.endr
    .balign 128
    b       on_call
.rept 7
    .balign 128
    b       .
.endr

on_call:
    stp     x4, x5, [sp, #-192]!
    stp     x6, x7, [sp, #16]
    stp     x8, x9, [sp, #32]
    stp     x10, x11, [sp, #48]
    stp     x12, x13, [sp, #64]
    stp     x14, x15, [sp, #80]
    stp     x16, x17, [sp, #96]
    stp     x18, x29, [sp, #112]
    str     x30, [sp, #128]
    stp     x0, x1, [sp, #144]
    stp     x2, x3, [sp, #160]
    add     x0, sp, #144
    mrs     x1, esr_el2
    bl      answer
    mrs     x1, elr_el2
    add     x1, x1, x0
    msr     elr_el2, x1
    ldp     x0, x1, [sp, #144]
    ldp     x2, x3, [sp, #160]
    ldr     x30, [sp, #128]
    ldp     x18, x29, [sp, #112]
    ldp     x16, x17, [sp, #96]
    ldp     x14, x15, [sp, #80]
    ldp     x12, x13, [sp, #64]
    ldp     x10, x11, [sp, #48]
    ldp     x8, x9, [sp, #32]
    ldp     x6, x7, [sp, #16]
    ldp     x4, x5, [sp], #192
    eret

.data
.balign 16
stacks:
    .skip 4 << 12
