/* A static identity map, so that memory is cached and unaligned and atomic
 * accesses are allowed. It is finished at link time: nothing writes it, so no
 * cache maintenance is needed before the MMU is switched on.
 *
 *      0 .. 1 GiB    devices, but for what is memory: the stolen-time page, the lines of preemption,
 *                    the report area, and what VMs share, by links too
 *      1 .. 2 GiB    RAM
 *
 * 4 KiB granule, 39-bit addresses (the walk starts at level 1).
 * Bits: Arm ARM (DDI 0487) D8.3, D24.2.
 */
#include "platform.h"

#define TABLE           0x3
#define BLOCK           0x1
#define ATTR_DEVICE     (0 << 2)
#define ATTR_NORMAL     (1 << 2)
#define INNER_SHAREABLE (3 << 8)
#define ACCESSED        (1 << 10)
#define NO_EXECUTE      (3 << 53)

#define DEVICE          (BLOCK | ATTR_DEVICE | ACCESSED | NO_EXECUTE)
#define RAM             (BLOCK | ATTR_NORMAL | INNER_SHAREABLE | ACCESSED)

/* MAIR_EL1: attribute 0 is Device-nGnRE, attribute 1 Normal write-back. */
#define MAIR            0xff04
/* TCR_EL1: T0SZ = 25, walks cached and inner shareable, no TTBR1 (EPD1),
 * IPS = 40 bits. */
#define TCR             (25 | (1 << 8) | (1 << 10) | (3 << 12) | (1 << 23) | (2 << 32))
/* SCTLR_EL1: the RES1 bits, M, C, SA, I. */
#define SCTLR           (0x30d00800 | (1 << 0) | (1 << 2) | (1 << 3) | (1 << 12))

    .section .text.mmu, "ax"
    .global mmu_on
mmu_on:
    ldr     x0, =MAIR
    msr     mair_el1, x0
    ldr     x0, =TCR
    msr     tcr_el1, x0
    adrp    x0, level1
    msr     ttbr0_el1, x0
    isb
    tlbi    vmalle1
    ic      iallu
    dsb     nsh
    isb
    ldr     x0, =SCTLR
    msr     sctlr_el1, x0
    isb
    ret
    .ltorg

    .section .rodata.mmu, "a"
    .balign 4096
level1:
    .quad   level2 + TABLE
    .quad   RAM_BASE | RAM
    .fill   510, 8, 0

level2:
    .set    block, 0
    .rept   512
    .if     block == STOLEN_BASE || (block <= LINES_BASE && LINES_BASE < block + 0x200000)
    .quad   block | RAM | NO_EXECUTE
    .elseif block >= REPORT_BASE && block < REPORT_BASE + REPORT_MAX_SIZE
    .quad   block | RAM | NO_EXECUTE
    .elseif block >= SHARED_BASE && block < SHARED_BASE + SHARED_MAX_SIZE
    .quad   block | RAM | NO_EXECUTE
    .elseif block >= LINK_MEMORY_BASE && block < LINK_MEMORY_BASE + LINK_MEMORY_SIZE
    .quad   block | RAM | NO_EXECUTE
    .else
    .quad   block | DEVICE
    .endif
    .set    block, block + 0x200000
    .endr
