/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* For modules of Linux that follow a tracepoint: the line of preemption of each CPU, and the calls of the
 * service that has it (docs/src/design/calls.md). */
#ifndef CASSATA_LINE_H
#define CASSATA_LINE_H

#include <linux/arm-smccc.h>
#include <linux/cpuhotplug.h>
#include <linux/io.h>
#include <linux/percpu.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "cassata_service.h"

enum { CALL_YIELD = 0xc6000022, CALL_PREEMPTION_LINE };

/* What a vCPU shares with the hypervisor. */
struct line {
    u32 no_preempt, cancelled, grace_ns, overcommitted, task, awaited, reserved[10];
};

static DEFINE_PER_CPU(struct line *, own_line);

static long call(u32 function, u64 *value)
{
    struct arm_smccc_res result;

    arm_smccc_1_1_hvc(function, &result);
    *value = result.a1;
    return result.a0;
}

/* Returns true while another vCPU of this VM shares the core of this one. */
static bool __maybe_unused is_crowded(void)
{
    struct line *line = raw_cpu_read(own_line);

    return line && READ_ONCE(line->overcommitted);
}

static int take_line(unsigned int cpu)
{
    u64 address;

    if (!call(CALL_PREEMPTION_LINE, &address))
        this_cpu_write(own_line, memremap(address, sizeof(struct line), MEMREMAP_WB));
    return 0;
}

static int drop_line(unsigned int cpu)
{
    struct line *line = this_cpu_xchg(own_line, NULL);

    /* A tracepoint's function may be looking at it. */
    tracepoint_synchronize_unregister();
    if (line)
        memunmap(line);
    return 0;
}

struct named {
    const char *name;
    struct tracepoint *found;
};

static void compare_name(struct tracepoint *point, void *named)
{
    struct named *wanted = named;

    if (!strcmp(point->name, wanted->name))
        wanted->found = point;
}

/* Returns the tracepoint of that name: its own functions are not for modules. */
static struct tracepoint *find_tracepoint(const char *name)
{
    struct named wanted = { .name = name };

    for_each_kernel_tracepoint(compare_name, &wanted);
    return wanted.found;
}

static struct tracepoint *followed;
static int hotplug_state;

/* Has each CPU take its line, also one that comes later, and a function called at a tracepoint. `state` is
 * what the kernel calls that. */
static int follow(struct tracepoint *point, void *function, const char *state)
{
    int error;

    hotplug_state = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, state, take_line, drop_line);
    if (hotplug_state < 0)
        return hotplug_state;
    followed = point;
    error = tracepoint_probe_register(followed, function, NULL);
    if (error)
        cpuhp_remove_state(hotplug_state);
    return error;
}

/* When it returns, no tracepoint's function runs any more. */
static void stop_following(void *function)
{
    tracepoint_probe_unregister(followed, function, NULL);
    tracepoint_synchronize_unregister();
}

static void drop_lines(void)
{
    cpuhp_remove_state(hotplug_state);
}

static void follow_no_longer(void *function)
{
    stop_following(function);
    drop_lines();
}

#endif
