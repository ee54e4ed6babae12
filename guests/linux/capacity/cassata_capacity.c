// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Tells an unmodified kernel's scheduler how much of each CPU the hypervisor leaves it, as the CPU's
 * capacity (cpu_scale): Debian's kernel counts stolen time and makes no use of it
 * (CONFIG_PARAVIRT_TIME_ACCOUNTING is off). Each CPU looks when it switches to another thread.
 * docs/src/guests.md says what comes of it. */
#include <linux/arch_topology.h>
#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/kernel_stat.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/sched.h>

#include "cassata_line.h"

static bool stolen;
module_param(stolen, bool, 0444);
MODULE_PARM_DESC(stolen, "by the time that was stolen lately; else by whether a vCPU shares the core now");

/* What a program may read of it. */
static atomic_t changes;
module_param_named(changes, changes.counter, int, 0444);
MODULE_PARM_DESC(changes, "how often the capacity of a CPU changed; only to be read");

/* Time in which stolen time is counted: some periods of a real-time guest. */
#define WINDOW (HZ / 20)
/* What is left to a CPU at least: with none the scheduler would divide by zero. */
#define LEAST (SCHED_CAPACITY_SCALE / 16)

struct window {
    unsigned long begin;
    u64 stolen;
};

static DEFINE_PER_CPU(struct window, window);

/* Returns what the last window left of this CPU, or its capacity as it is if that is not over. */
static unsigned long left_by_steal(void)
{
    struct window *its = this_cpu_ptr(&window);
    unsigned long now = jiffies, length = now - its->begin, left;
    u64 all = kcpustat_this_cpu->cpustat[CPUTIME_STEAL], share;

    if (length < WINDOW)
        return this_cpu_read(cpu_scale);
    share = div64_u64((all - its->stolen) * SCHED_CAPACITY_SCALE, jiffies_to_nsecs(length));
    left = SCHED_CAPACITY_SCALE - min_t(u64, share, SCHED_CAPACITY_SCALE);
    its->begin = now;
    its->stolen = all;
    return max_t(unsigned long, left, LEAST);
}

/* Called with the lock of this CPU's queue, and preemption disabled. */
static void switches(void *unused, bool preempt, struct task_struct *before,
                     struct task_struct *next, unsigned int state)
{
    unsigned long left;

    if (stolen)
        left = left_by_steal();
    else
        left = is_crowded() ? SCHED_CAPACITY_SCALE / 2 : SCHED_CAPACITY_SCALE;
    if (left == this_cpu_read(cpu_scale))
        return;
    this_cpu_write(cpu_scale, left);
    atomic_inc(&changes);
}

static int __init capacity_begin(void)
{
    struct tracepoint *switching;
    u64 ignored;

    if (!service_is_described("cassata,service-1.0")) {
        pr_err("cassata_capacity: no Cassata service here: the device tree has no node of it\n");
        return -ENODEV;
    }
    if (!stolen && call(CALL_PREEMPTION_LINE, &ignored)) {
        pr_err("cassata_capacity: this VM has no lines: say `yield = true` in its description\n");
        return -ENODEV;
    }
    switching = find_tracepoint("sched_switch");
    if (!switching)
        return -ENOENT;
    return follow(switching, switches, "cassata_capacity:online");
}

static void __exit capacity_end(void)
{
    int cpu;

    follow_no_longer(switches);
    for_each_possible_cpu(cpu)
        per_cpu(cpu_scale, cpu) = SCHED_CAPACITY_SCALE;
}

module_init(capacity_begin);
module_exit(capacity_end);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Tells the scheduler how much of each CPU the hypervisor leaves");
