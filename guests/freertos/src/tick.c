/* The compare value of each tick is computed from the first one's, so that no
 * error adds up, and none is ever skipped: a core that was away too long finds
 * the timer still asserted after each tick until it has caught up. The kernel's
 * tick count is therefore the number of periods that have passed, and a late
 * activation shows as late instead of vanishing. */
#include "tick.h"

#include "FreeRTOS.h"
#include "cpu.h"
#include "gic.h"
#include "platform.h"
#include "tasks.h"
#include "vmpcp.h"

#define CTL_ENABLE 1
#define US_PER_SECOND 1000000

/* How many ticks back a response time is remembered. */
#define RECORD 4096

static uint64_t tick_us, start_ms;
static uint64_t start;
static uint64_t ticks;

static struct {
    uint64_t tick;
    uint32_t response;
} record[RECORD];

/* In two steps, so that nothing overflows however long it runs. */
static uint64_t from_us(uint64_t us)
{
    return us / US_PER_SECOND * counter_hz()
        + us % US_PER_SECOND * counter_hz() / US_PER_SECOND;
}

void tick_create(const struct options *options)
{
    tick_us = options->tick_us;
    start_ms = options->start_ms;
}

uint64_t tick_due(uint64_t tick)
{
    return start + from_us(tick * tick_us);
}

uint32_t tick_response(uint64_t tick, uint32_t bound)
{
    return record[tick % RECORD].tick == tick ? record[tick % RECORD].response : bound;
}

void tick_start(void)
{
    start = counter_now() + from_us(start_ms * 1000);
    WRITE_SYSREG("cntv_cval_el0", tick_due(1));
    WRITE_SYSREG("cntv_ctl_el0", CTL_ENABLE);
    gic_enable_private(VIRTUAL_TIMER_INTID, portLOWEST_USABLE_INTERRUPT_PRIORITY);
}

/* The kernel calls this in its tick handler, interrupts masked. */
void tick_next(void)
{
    uint64_t entered = READ_SYSREG("tpidr_el1"); /* see vectors.S */

    ticks++;
    record[ticks % RECORD].tick = ticks;
    record[ticks % RECORD].response = saturate32(entered - tick_due(ticks));
    WRITE_SYSREG("cntv_cval_el0", tick_due(ticks + 1));
    /* The timer must have let go before interrupts are unmasked. */
    ISB();
}

void vApplicationIRQHandler(uint32_t intid)
{
    if (intid == VIRTUAL_TIMER_INTID)
        FreeRTOS_Tick_Handler();
    else if (intid == VMPCP_GRANT_INTID)
        sharing_interrupt();
}
