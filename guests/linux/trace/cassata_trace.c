// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* What programs write to tracefs's trace_marker, and with `switches=1` which task each CPU
 * switches to, goes to the report area as it happens, by the counter that the hypervisor uses.
 * docs/src/trace.md shows how. */
#include <linux/err.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/of.h>
#include <linux/of_address.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/trace.h>
#include <linux/trace_events.h>
#include <linux/tracepoint.h>

#include <asm/arch_timer.h>
#include <asm/cputype.h>

#include "cassata_events.h"

static bool switches;
module_param(switches, bool, 0444);
MODULE_PARM_DESC(switches, "record which task each CPU switches to");

/* All are set before anything is recorded, and stay until nothing is. */
static void *area;
static struct cassata_writer *writers;
static unsigned int rings;

/* A text ends with a zero, or has `most` bytes. */
static void record(u8 kind, pid_t task, const char *text, size_t most)
{
    struct cassata_event *event;
    unsigned long flags;
    unsigned int vcpu;

    /* Handlers of interrupts write to the same ring. */
    local_irq_save(flags);
    /* vCPU n has affinity 0.0.0.n. */
    vcpu = read_cpuid_mpidr() & 0xff;
    if (vcpu < rings) {
        size_t length = strnlen(text, min_t(size_t, most, CASSATA_EVENT_TEXT));

        event = cassata_events_next(&writers[vcpu]);
        event->time = __arch_counter_get_cntvct();
        event->kind = kind;
        event->length = length;
        event->reserved = 0;
        event->task = task;
        memcpy(event->text, text, length);
        cassata_events_publish(&writers[vcpu]);
    }
    local_irq_restore(flags);
}

static void switched(void *unused, bool preempt, struct task_struct *previous,
                     struct task_struct *next, unsigned int state)
{
    record(CASSATA_EVENT_SWITCH, task_pid_nr(next), next->comm, TASK_COMM_LEN);
}

/* What the kernel writes of a marker: events/ftrace/print/format. */
struct marker {
    struct trace_entry entry;
    unsigned long ip;
    char text[];
};

static void marked(struct trace_export *export, const void *entry, unsigned int size)
{
    const struct marker *marker = entry;

    if (size > sizeof *marker) {
        size_t most = size - sizeof *marker;
        const char *end = strnchr(marker->text, most, '\n');

        record(CASSATA_EVENT_MARK, marker->entry.pid, marker->text,
               end ? end - marker->text : most);
    }
}

static struct trace_export markers = { .write = marked, .flags = TRACE_EXPORT_MARKER };
static struct tracepoint *switch_point;

/* The tracepoint's own functions are not for modules. */
static void find_switch_point(struct tracepoint *point, void *unused)
{
    if (!strcmp(point->name, "sched_switch"))
        switch_point = point;
}

static void close_area(void)
{
    kfree(writers);
    memunmap(area);
}

static int open_area(void)
{
    struct device_node *node = of_find_compatible_node(NULL, NULL, "cassata,report");
    struct resource range;
    int error = node ? of_address_to_resource(node, 0, &range) : -ENODEV;

    of_node_put(node);
    if (error) {
        pr_err("cassata_trace: no report area here: the VM's description needs `report`\n");
        return -ENODEV;
    }
    rings = nr_cpu_ids;
    writers = kcalloc(rings, sizeof *writers, GFP_KERNEL);
    if (!writers)
        return -ENOMEM;
    area = memremap(range.start, resource_size(&range), MEMREMAP_WB);
    if (!area) {
        kfree(writers);
        return -ENOMEM;
    }
    if (cassata_events_open(writers, rings, area, resource_size(&range), arch_timer_get_cntfrq(),
                            __arch_counter_get_cntvct()))
        return 0;
    pr_err("cassata_trace: a report area of %llu bytes is too small\n",
           (unsigned long long)resource_size(&range));
    close_area();
    return -ENOSPC;
}

static int begin_switches(void)
{
    if (!switches)
        return 0;
    for_each_kernel_tracepoint(find_switch_point, NULL);
    return switch_point ? tracepoint_probe_register(switch_point, switched, NULL) : -ENOENT;
}

static void end_switches(void)
{
    if (switches) {
        tracepoint_probe_unregister(switch_point, switched, NULL);
        tracepoint_synchronize_unregister();
    }
}

static int __init trace_begin(void)
{
    int error = open_area();

    if (error)
        return error;
    error = begin_switches();
    if (error)
        goto close;
    error = register_ftrace_export(&markers);
    if (!error)
        return 0;
    end_switches();
close:
    close_area();
    return error;
}

static void __exit trace_end(void)
{
    unregister_ftrace_export(&markers);
    /* Another CPU may be in marked() still. */
    synchronize_rcu();
    end_switches();
    close_area();
}

module_init(trace_begin);
module_exit(trace_end);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Linux's own events in a VM's report area");
