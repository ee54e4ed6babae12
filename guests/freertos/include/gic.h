/* The interrupt controller: GICv3. All interrupts come to the first core. */
#ifndef GIC_H
#define GIC_H

#include <stdint.h>

/* Wakes the redistributor and opens the CPU interface. */
void gic_init(void);

/* Enables an interrupt of this core (INTID 0 to 31). Priority as the kernel counts:
 * 0 is the highest, configUNIQUE_INTERRUPT_PRIORITIES - 1 the lowest. */
void gic_enable_private(uint32_t intid, uint32_t priority);

/* The same for an interrupt that cores share (INTID 32 to 1019), a level. */
void gic_enable_shared(uint32_t intid, uint32_t priority);

/* Lets an interrupt that cores share be signalled by an edge; before it is enabled. */
void gic_set_edge(uint32_t intid);

#endif
