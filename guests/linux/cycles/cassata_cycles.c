// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Counts by Linux's own performance events how many cycles a CPU of this VM executes while it does nothing
 * but look at its clock, as it is loaded. A system with one CPU needs no care for which. */
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/perf_event.h>

/* For how long. */
static unsigned int milliseconds = 100;
module_param(milliseconds, uint, 0444);
MODULE_PARM_DESC(milliseconds, "For how long");

/* What was found: cycles, and the time that went by. */
static unsigned long long cycles;
module_param(cycles, ullong, 0444);
static unsigned long long nanoseconds;
module_param(nanoseconds, ullong, 0444);

static int __init count(void)
{
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_HARDWARE,
        .config = PERF_COUNT_HW_CPU_CYCLES,
        .size = sizeof(attributes),
        .pinned = 1,
    };
    struct perf_event *event;
    u64 before, began, enabled, running;

    event = perf_event_create_kernel_counter(&attributes, raw_smp_processor_id(), NULL, NULL, NULL);
    if (IS_ERR(event))
        return PTR_ERR(event);
    before = perf_event_read_value(event, &enabled, &running);
    began = ktime_get_ns();
    do
        nanoseconds = ktime_get_ns() - began;
    while (nanoseconds < milliseconds * (u64)NSEC_PER_MSEC);
    cycles = perf_event_read_value(event, &enabled, &running) - before;
    perf_event_release_kernel(event);
    return 0;
}

static void __exit leave(void)
{
}

module_init(count);
module_exit(leave);
MODULE_DESCRIPTION("Counts cycles by performance events");
MODULE_LICENSE("GPL");
