/* From reset to main: EL1, MMU off, interrupts masked, X0 = device tree (or 0). */
#include "platform.h"

/* What each core needs before C runs on it, on the stack that ends at \stack_top. */
    .macro prepare_core stack_top
    /* Floating point is not used, but an accident with it must not trap into
     * a handler that could not say what happened. */
    mov     x0, #(3 << 20)
    msr     cpacr_el1, x0

    adrp    x0, exception_vectors
    add     x0, x0, :lo12:exception_vectors
    msr     vbar_el1, x0
    bl      mmu_on

    msr     spsel, #1
    adrp    x0, \stack_top
    add     x0, x0, :lo12:\stack_top
    mov     sp, x0
    .endm

    .section .text.start, "ax"
    .global start
    /* The header of an arm64 Image (Linux, Documentation/arm64/booting.rst): what loads the program as a
     * flat file learns here where to put it. */
start:
    b       1f
    .word   0
    .quad   0x200000        /* above the beginning of RAM, as link.ld has it */
    .quad   second_stack_top - start
    .quad   0xa             /* little-endian, pages of 4 KiB */
    .quad   0, 0, 0
    .ascii  "ARM\x64"
    .word   0

1:  mov     x19, x0
    mrs     x0, CurrentEL
    cmp     x0, #(1 << 2)
    b.ne    wrong_level

    prepare_core interrupt_stack_top

    adrp    x0, bss_start
    add     x0, x0, :lo12:bss_start
    adrp    x1, bss_end
    add     x1, x1, :lo12:bss_end
1:  cmp     x0, x1
    b.hs    2f
    stp     xzr, xzr, [x0], #16
    b       1b

2:  mov     x0, x19
    bl      main
    b       .

    .global second_core
second_core:
    prepare_core second_stack_top
    bl      pacer_run
    b       .

    /* The port is compiled for EL1. Say so with what works without a stack. */
wrong_level:
    mov     x1, #UART_BASE
    adr     x2, wrong_level_text
1:  ldrb    w0, [x2], #1
    cbz     w0, 2f
    str     w0, [x1]
    b       1b
2:  wfi
    b       2b
wrong_level_text:
    .asciz  "freertos: started at the wrong exception level, must be EL1\r\n"
