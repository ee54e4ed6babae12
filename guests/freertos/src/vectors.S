/* Exceptions, on their way to the kernel's handlers.
 *
 * Tasks run with SP_EL0, handlers with SP_EL1. TPIDRRO_EL0 is free to hold X0
 * for a moment, and TPIDR_EL1 carries the time of the last interrupt to tick.c:
 * so the counter is read before any access to memory.
 */
    .macro vector target
    .balign 0x80
    b       \target
    .endm

    .macro unexpected number
    .balign 0x80
    mov     x0, #\number
    b       fault
    .endm

    .section .text.vectors, "ax"
    .balign 0x800
    .global exception_vectors, _freertos_vector_table
exception_vectors:
_freertos_vector_table:
    vector      sync            /* from a task */
    .balign 0x80
    /* Interrupt response time is measured to here. */
    msr     tpidrro_el0, x0
    mrs     x0, cntvct_el0
    msr     tpidr_el1, x0
    mrs     x0, tpidrro_el0
    b       FreeRTOS_IRQ_Handler
    unexpected  2
    unexpected  3
    unexpected  4               /* from a handler, or before the scheduler */
    vector      FreeRTOS_IRQ_Handler    /* nested; none is enabled */
    unexpected  6
    unexpected  7
    unexpected  8               /* from EL0, where nothing runs */
    unexpected  9
    unexpected  10
    unexpected  11
    unexpected  12
    unexpected  13
    unexpected  14
    unexpected  15
    .balign 0x80

/* The kernel's handler stops silently at what is not SVC; ours tells. */
sync:
    msr     tpidrro_el0, x0
    mrs     x0, esr_el1
    lsr     x0, x0, #26
    cmp     x0, #0x15           /* SVC, AArch64 */
    mrs     x0, tpidrro_el0
    b.eq    FreeRTOS_SWI_Handler
    mov     x0, #0

fault:
    mrs     x1, esr_el1
    mrs     x2, elr_el1
    mrs     x3, far_el1
    adrp    x4, interrupt_stack_top
    add     x4, x4, :lo12:interrupt_stack_top
    mov     sp, x4
    b       fault_report
