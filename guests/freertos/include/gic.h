/* The interrupt controller: a GICv3 (gic.c), or a GICv2 (gic_v2.c). All interrupts come to the first core. */
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

/* On another core than the first, which takes no interrupts: it may send them then. */
void gic_init_sender(void);

/* The interrupt that was acknowledged: a GICv2 names the sender of a software-generated one, too. */
static inline uint32_t gic_intid(uint32_t acknowledged)
{
#ifdef GICV2
    return acknowledged & 0x3ff;
#else
    return acknowledged;
#endif
}

/* Sends the first core a software-generated interrupt (INTID 0 to 15). */
void gic_send_to_first(uint32_t intid);

/* Lets an interrupt that cores share be signalled by an edge; before it is enabled. */
void gic_set_edge(uint32_t intid);

#endif
