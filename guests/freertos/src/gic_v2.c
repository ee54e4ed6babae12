#include "gic.h"

#include "FreeRTOS.h"
#include "cpu.h"
#include "platform.h"

/* Arm IHI 0048, chapter 4. Without security extensions all interrupts are in group 0, and IRQs. No
 * other core takes interrupts. */
#define GICD_CTLR       (GICD_BASE + 0x000)
#define GICD_ISENABLER  (GICD_BASE + 0x100)
#define GICD_ICENABLER  (GICD_BASE + 0x180)
#define GICD_IPRIORITYR (GICD_BASE + 0x400)
#define GICD_ITARGETSR  (GICD_BASE + 0x800)
#define GICD_ICFGR      (GICD_BASE + 0xc00)
#define GICD_SGIR       (GICD_BASE + 0xf00)
#define GICC_CTLR       (GICC_BASE + 0x00)
#define GICC_PMR        (GICC_BASE + 0x04)
#define GICC_BPR        (GICC_BASE + 0x08)
#define ENABLE_GROUP0   1u

void gic_init(void)
{
    mmio_write32(GICD_ICENABLER, 0xffffffff);
    mmio_write32(GICD_CTLR, ENABLE_GROUP0);
    mmio_write32(GICC_BPR, 0);
    mmio_write32(GICC_PMR, 0xff);
    mmio_write32(GICC_CTLR, ENABLE_GROUP0);
}

/* Sets one of the bytes from `base` on. */
static void set_byte(uint64_t base, uint32_t intid, uint32_t value)
{
    uint64_t word = base + (intid & ~3u);
    uint32_t shift = 8 * (intid % 4);
    uint32_t others = mmio_read32(word) & ~(0xffu << shift);

    mmio_write32(word, others | value << shift);
}

void gic_enable_private(uint32_t intid, uint32_t priority)
{
    set_byte(GICD_IPRIORITYR, intid, priority << portPRIORITY_SHIFT);
    mmio_write32(GICD_ISENABLER, 1u << intid);
}

void gic_enable_shared(uint32_t intid, uint32_t priority)
{
    set_byte(GICD_IPRIORITYR, intid, priority << portPRIORITY_SHIFT);
    set_byte(GICD_ITARGETSR, intid, 1);
    mmio_write32(GICD_ISENABLER + intid / 32 * 4, 1u << intid % 32);
}

void gic_init_sender(void)
{
}

void gic_send_to_first(uint32_t intid)
{
    DSB();
    mmio_write32(GICD_SGIR, 1u << 16 | intid);
}

void gic_set_edge(uint32_t intid)
{
    uint64_t word = GICD_ICFGR + intid / 16 * 4;

    mmio_write32(word, mmio_read32(word) | 2u << intid % 16 * 2);
}
