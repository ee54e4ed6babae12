/* Entry of each vCPU, the MMU, exceptions, and the switch from one stack to another. */
#include "platform.h"

/* A static identity map (DDI 0487, D8.3): 0 to 1 GiB devices, 1 to 2 GiB RAM. 4 KiB granule, 39-bit
 * addresses, so that the walk begins at level 1. Nothing writes it. */
#define BLOCK           0x1
#define ACCESSED        (1 << 10)
#define DEVICE          (BLOCK | ACCESSED | 3 << 53)
#define RAM             (BLOCK | ACCESSED | 1 << 2 | 3 << 8)
/* MAIR_EL1: attribute 0 is Device-nGnRE, attribute 1 Normal write-back. */
#define MAIR            0xff04
/* TCR_EL1: T0SZ = 25, walks cached and inner shareable, no TTBR1, 40-bit physical addresses. */
#define TCR             (25 | (1 << 8) | (1 << 10) | (3 << 12) | (1 << 23) | (2 << 32))
/* SCTLR_EL1: the RES1 bits, M, C, SA, I. */
#define SCTLR           (0x30d00800 | (1 << 0) | (1 << 2) | (1 << 3) | (1 << 12))
#define STACK_SHIFT     14

    .section .text.start, "ax"
    .global start, start_vcpu
start:
    bl      mmu_on
    mov     x0, #0
    adrp    x1, bss_start
    add     x1, x1, :lo12:bss_start
    adrp    x2, bss_end
    add     x2, x2, :lo12:bss_end
1:  cmp     x1, x2
    b.hs    begin
    stp     xzr, xzr, [x1], #16
    b       1b

/* vCPUs but the first begin here, by CPU_ON; X0 is their index. */
start_vcpu:
    bl      mmu_on
begin:
    msr     tpidr_el1, x0
    msr     spsel, #1
    adrp    x1, stacks
    add     x1, x1, :lo12:stacks
    add     x2, x0, #1
    add     x1, x1, x2, lsl #STACK_SHIFT
    mov     sp, x1
    b       vcpu_main

/* Leaves X0 as it is. */
mmu_on:
    adrp    x1, vectors
    add     x1, x1, :lo12:vectors
    msr     vbar_el1, x1
    ldr     x1, =MAIR
    msr     mair_el1, x1
    ldr     x1, =TCR
    msr     tcr_el1, x1
    adrp    x1, level1
    msr     ttbr0_el1, x1
    isb
    tlbi    vmalle1
    ic      iallu
    dsb     nsh
    isb
    ldr     x1, =SCTLR
    msr     sctlr_el1, x1
    isb
    ret
    .ltorg

/* switch_stacks(save, to): goes on where the last switch from the stack `to` was made, and keeps in
 * `*save` where this one can go on. */
    .text
    .global switch_stacks, begin_task
switch_stacks:
    stp     x19, x20, [sp, #-96]!
    stp     x21, x22, [sp, #16]
    stp     x23, x24, [sp, #32]
    stp     x25, x26, [sp, #48]
    stp     x27, x28, [sp, #64]
    stp     x29, x30, [sp, #80]
    mov     x2, sp
    str     x2, [x0]
    mov     sp, x1
    ldp     x21, x22, [sp, #16]
    ldp     x23, x24, [sp, #32]
    ldp     x25, x26, [sp, #48]
    ldp     x27, x28, [sp, #64]
    ldp     x29, x30, [sp, #80]
    ldp     x19, x20, [sp], #96
    ret

/* Where the first switch to a task goes on; X19 is what `run_task` gets. */
begin_task:
    mov     x0, x19
    msr     daifclr, #2
    bl      run_task
    b       .

    .macro unexpected
    .balign 0x80
    b       unexpected_exception
    .endm

    .balign 0x800
vectors:
    .rept 5
    unexpected
    .endr
    .balign 0x80
    /* An interrupt; what runs is on a stack of its own, which keeps its registers. */
    sub     sp, sp, #192
    stp     x0, x1, [sp, #0]
    stp     x2, x3, [sp, #16]
    b       interrupt_entry
    .rept 10
    unexpected
    .endr
    .balign 0x80

interrupt_entry:
    stp     x4, x5, [sp, #32]
    stp     x6, x7, [sp, #48]
    stp     x8, x9, [sp, #64]
    stp     x10, x11, [sp, #80]
    stp     x12, x13, [sp, #96]
    stp     x14, x15, [sp, #112]
    stp     x16, x17, [sp, #128]
    stp     x18, x29, [sp, #144]
    mrs     x0, elr_el1
    mrs     x1, spsr_el1
    stp     x30, x0, [sp, #160]
    str     x1, [sp, #176]
    bl      interrupt
    ldr     x1, [sp, #176]
    ldp     x30, x0, [sp, #160]
    msr     spsr_el1, x1
    msr     elr_el1, x0
    ldp     x18, x29, [sp, #144]
    ldp     x16, x17, [sp, #128]
    ldp     x14, x15, [sp, #112]
    ldp     x12, x13, [sp, #96]
    ldp     x10, x11, [sp, #80]
    ldp     x8, x9, [sp, #64]
    ldp     x6, x7, [sp, #48]
    ldp     x4, x5, [sp, #32]
    ldp     x2, x3, [sp, #16]
    ldp     x0, x1, [sp, #0]
    add     sp, sp, #192
    eret

unexpected_exception:
    mrs     x0, esr_el1
    mrs     x1, elr_el1
    mrs     x2, far_el1
    b       exception

    .section .rodata.mmu, "a"
    .balign 4096
level1:
    .quad   DEVICE
    .quad   RAM_BASE | RAM
    .fill   510, 8, 0

    .bss
    .balign 16
stacks:
    .skip   8 << STACK_SHIFT
