/* The compare value of each tick is computed from the first one's, so that no
 * error adds up, and none is ever skipped: a core that was away too long finds
 * the timer still asserted after each tick until it has caught up. The kernel's
 * tick count is therefore the number of periods that have passed, and a late
 * activation shows as late instead of vanishing.
 *
 * With jitter each tick is moved by an amount that its number decides, so that
 * when a tick is due stays a function of its number, and two runs are alike. */
#include "tick.h"

#include "FreeRTOS.h"
#include "cpu.h"
#include "gic.h"
#include "pacer.h"
#include "platform.h"
#include "spread.h"
#include "tasks.h"
#include "vmpcp.h"

#define CTL_ENABLE 1
#define US_PER_SECOND 1000000

/* How many ticks back a response time is remembered. */
#define RECORD 4096

static uint64_t tick_us, start_ms, jitter_percent;
static bool is_paced;
static uint64_t start;
static uint64_t ticks;
/* When the next tick is due, and how far a tick may come before its time or
 * after it, ticks of the counter. */
static uint64_t due, jitter;

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
    jitter_percent = options->jitter_percent;
}

uint64_t tick_length(uint64_t count)
{
    return from_us(count * tick_us);
}

uint64_t tick_due(uint64_t tick)
{
    uint64_t nominal = start + tick_length(tick);

    return jitter == 0 ? nominal : nominal - jitter + spread(tick, 2 * jitter);
}

uint32_t tick_response(uint64_t tick, uint32_t bound)
{
    return record[tick % RECORD].tick == tick ? record[tick % RECORD].response : bound;
}

void tick_start(void)
{
    start = counter_now() + from_us(start_ms * 1000);
    /* The pacer's interrupts are the only ones. */
    is_paced = pacer_begin(start);
    if (is_paced)
        return;
    jitter = tick_length(1) * jitter_percent / 100;
    due = tick_due(1);
    WRITE_SYSREG("cntv_cval_el0", due);
    WRITE_SYSREG("cntv_ctl_el0", CTL_ENABLE);
    gic_enable_private(VIRTUAL_TIMER_INTID, portLOWEST_USABLE_INTERRUPT_PRIORITY);
}

/* The kernel calls this in its tick handler, interrupts masked. */
void tick_next(void)
{
    uint64_t entered = READ_SYSREG("tpidr_el1"); /* see vectors.S */

    ticks++;
    record[ticks % RECORD].tick = ticks;
    record[ticks % RECORD].response = saturate32(entered - due);
    due = tick_due(ticks + 1);
    WRITE_SYSREG("cntv_cval_el0", due);
#ifdef XEN
    /* Xen masks the timer when it has fired (xen/arch/arm/vtimer.c), and leaves it to the guest to undo that. */
    WRITE_SYSREG("cntv_ctl_el0", CTL_ENABLE);
#endif
    /* The timer must have let go before interrupts are unmasked. */
    ISB();
}

void vApplicationIRQHandler(uint32_t acknowledged)
{
    uint32_t intid = gic_intid(acknowledged);

    if (intid == VIRTUAL_TIMER_INTID)
        FreeRTOS_Tick_Handler();
    else if (is_paced)
        pacer_interrupt(intid, READ_SYSREG("tpidr_el1"));
    else if (intid == VMPCP_GRANT_INTID)
        sharing_interrupt();
    else
        motor_interrupt(intid);
}
