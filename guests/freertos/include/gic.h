/* The interrupt controller: GICv3, one core, private interrupts only. */
#ifndef GIC_H
#define GIC_H

#include <stdint.h>

/* Wakes the redistributor and opens the CPU interface. */
void gic_init(void);

/* Enables a private interrupt (INTID 16 to 31). Priority as the kernel counts:
 * 0 is the highest, configUNIQUE_INTERRUPT_PRIORITIES - 1 the lowest. */
void gic_enable_private(uint32_t intid, uint32_t priority);

#endif
