#include "gic.h"

#include "FreeRTOS.h"
#include "cpu.h"
#include "platform.h"

/* Arm IHI 0069, chapter 12. The first redistributor is ours, and no other core takes
 * interrupts. */
#define GICD_CTLR           (GICD_BASE + 0x0000)
#define GICD_CTLR_ENABLE_G1 ((1u << 4) | (1u << 1)) /* ARE and EnableGrp1 */
#define GICD_IGROUPR        (GICD_BASE + 0x0080)
#define GICD_ISENABLER      (GICD_BASE + 0x0100)
#define GICD_IPRIORITYR     (GICD_BASE + 0x0400)
#define GICD_ICFGR          (GICD_BASE + 0x0c00)
#define GICD_IROUTER        (GICD_BASE + 0x6000)
#define GICR_WAKER          (GICR_BASE + 0x0014)
#define WAKER_SLEEP         (1u << 1)
#define WAKER_ASLEEP        (1u << 2)
#define SGI_BASE            (GICR_BASE + 0x10000)
#define GICR_IGROUPR0       (SGI_BASE + 0x0080)
#define GICR_ISENABLER0     (SGI_BASE + 0x0100)
#define GICR_ICENABLER0     (SGI_BASE + 0x0180)
#define GICR_IPRIORITYR     (SGI_BASE + 0x0400)

void gic_init(void)
{
    mmio_write32(GICR_WAKER, mmio_read32(GICR_WAKER) & ~WAKER_SLEEP);
    while (mmio_read32(GICR_WAKER) & WAKER_ASLEEP) {
    }
    mmio_write32(GICR_ICENABLER0, 0xffffffff);
    mmio_write32(GICR_IGROUPR0, 0xffffffff);
    mmio_write32(GICD_CTLR, GICD_CTLR_ENABLE_G1);

    WRITE_SYSREG(ICC_SRE_EL1, READ_SYSREG(ICC_SRE_EL1) | 1);
    ISB();
    WRITE_SYSREG(ICC_BPR1_EL1, 0);
    WRITE_SYSREG(ICC_PMR_EL1, 0xff);
    WRITE_SYSREG(ICC_IGRPEN1_EL1, 1);
    ISB();
}

/* Sets one of the bytes from `base` on. */
static void set_priority(uint64_t base, uint32_t intid, uint32_t priority)
{
    uint64_t word = base + (intid & ~3u);
    uint32_t shift = 8 * (intid % 4);
    uint32_t others = mmio_read32(word) & ~(0xffu << shift);

    mmio_write32(word, others | (priority << portPRIORITY_SHIFT) << shift);
}

void gic_enable_private(uint32_t intid, uint32_t priority)
{
    set_priority(GICR_IPRIORITYR, intid, priority);
    mmio_write32(GICR_ISENABLER0, 1u << intid);
}

void gic_enable_shared(uint32_t intid, uint32_t priority)
{
    uint64_t group = GICD_IGROUPR + intid / 32 * 4;

    mmio_write32(group, mmio_read32(group) | 1u << intid % 32);
    set_priority(GICD_IPRIORITYR, intid, priority);
    mmio_write32(GICD_IROUTER + 8 * intid, 0);
    mmio_write32(GICD_IROUTER + 8 * intid + 4, 0);
    mmio_write32(GICD_ISENABLER + intid / 32 * 4, 1u << intid % 32);
}

void gic_init_sender(void)
{
    WRITE_SYSREG(ICC_SRE_EL1, READ_SYSREG(ICC_SRE_EL1) | 1);
    ISB();
}

void gic_send_to_first(uint32_t intid)
{
    WRITE_SYSREG(ICC_SGI1R_EL1, (uint64_t)intid << 24 | 1);
    ISB();
}

void gic_set_edge(uint32_t intid)
{
    uint64_t word = GICD_ICFGR + intid / 16 * 4;

    mmio_write32(word, mmio_read32(word) | 2u << intid % 16 * 2);
}
