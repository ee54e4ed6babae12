// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Tells the hypervisor when an unmodified kernel runs a real-time process: its tracepoints sched_switch,
 * irq_handler_exit and softirq_exit say which process each CPU goes on with, and a probe where
 * __sched_setscheduler returns says so of one that becomes a real-time process itself, without a switch
 * (JISE 2013, section 4.3, without changing the kernel). docs/src/boosts.md says what that is for. */
#include <linux/interrupt.h>
#include <linux/irqflags.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/sched/deadline.h>
#include <linux/sched/rt.h>
#include <linux/smp.h>

#include "cassata_line.h"

enum { CALL_BOOST = 0xc6000027, CALL_DEBOOST };
/* X2 of BOOST. */
enum { POLICY_FIFO = 1, POLICY_RR };
/* X1: the calling vCPU. */
#define MYSELF (~0UL)

static bool by_line;
module_param(by_line, bool, 0444);
MODULE_PARM_DESC(by_line, "say it in the line of preemption, and call only where others share the core");

/* What a program may read of it. */
static atomic_t calls;
module_param_named(calls, calls.counter, int, 0444);
MODULE_PARM_DESC(calls, "how often it called the hypervisor; only to be read");

/* What each CPU has said last. */
static DEFINE_PER_CPU(u32, said);

/* What interrupts have left to softirqs, a bit each: these may wake a process, too. */
static DEFINE_PER_CPU(u32, left);

/* Returns the answer of the hypervisor. */
static long tell(u32 report)
{
    struct arm_smccc_res result;

    atomic_inc(&calls);
    if (report)
        arm_smccc_1_1_hvc(CALL_BOOST, MYSELF, report & 0xff, report >> 8, &result);
    else
        arm_smccc_1_1_hvc(CALL_DEBOOST, MYSELF, &result);
    return result.a0;
}

/* Returns what to say of a process; 0: nothing urgent. */
static u32 report_of(struct task_struct *task)
{
    u32 policy = task->policy == SCHED_RR ? POLICY_RR : POLICY_FIFO;
    /* Of deadlines, and of what stops a CPU, too: they come before all others. */
    int priority = MAX_RT_PRIO - 1 - task->prio;

    return rt_task(task) || dl_task(task) ? policy | clamp(priority, 1, 99) << 8 : 0;
}

static void say(u32 report)
{
    struct line *line = raw_cpu_read(own_line);

    if (raw_cpu_read(said) == report)
        return;
    raw_cpu_write(said, report);
    if (!by_line) {
        tell(report);
        return;
    }
    if (!line)
        return;
    WRITE_ONCE(line->task, report);
    if (!report && READ_ONCE(line->awaited))
        tell(0);
}

static void switched(void *unused, bool preempt, struct task_struct *previous,
                     struct task_struct *next, unsigned int state)
{
    raw_cpu_write(left, 0);
    say(report_of(next));
}

/* An interrupt has boosted this vCPU. If nothing urgent follows from it, the boost ends. */
static void settle(void)
{
    struct line *line = raw_cpu_read(own_line);
    u32 report = report_of(current);

    /* sched_switch says what follows. */
    if (test_tsk_need_resched(current))
        return;
    /* Another CPU may have made it a real-time process. */
    if (report || raw_cpu_read(said))
        say(report);
    else if (!by_line || (line && READ_ONCE(line->awaited)))
        tell(0);
}

static void handled(void *unused, int interrupt, struct irqaction *action, int result)
{
    u32 pending = raw_cpu_read(left) | local_softirq_pending();

    raw_cpu_write(left, pending);
    if (!pending)
        settle();
}

/* The kernel does one after the other before it goes on, and leaves to a process of its own what takes too long:
 * sched_switch says that. */
static void done(void *unused, unsigned int softirq)
{
    unsigned long flags;
    u32 before, pending;

    local_irq_save(flags);
    before = raw_cpu_read(left);
    pending = before & ~(1U << softirq);
    raw_cpu_write(left, pending);
    if (before && !pending)
        settle();
    local_irq_restore(flags);
}

/* A process may have become a real-time one, or none, without a switch to it: if it is the one that runs here. */
static int changed(struct kretprobe_instance *instance, struct pt_regs *registers)
{
    unsigned long flags;

    local_irq_save(flags);
    say(report_of(current));
    local_irq_restore(flags);
    return 0;
}

static struct kretprobe changes = { .kp.symbol_name = "__sched_setscheduler", .handler = changed };

/* Followed besides sched_switch. */
static struct follower {
    const char *name;
    void *function;
    struct tracepoint *point;
} followers[] = {
    { "irq_handler_exit", handled },
    { "softirq_exit", done },
};

static void unregister_followers(size_t count)
{
    while (count-- > 0)
        tracepoint_probe_unregister(followers[count].point, followers[count].function, NULL);
}

static int register_followers(void)
{
    size_t i;
    int error;

    for (i = 0; i < ARRAY_SIZE(followers); i++) {
        error = tracepoint_probe_register(followers[i].point, followers[i].function, NULL);
        if (error) {
            unregister_followers(i);
            return error;
        }
    }
    return 0;
}

/* Nothing would end the boost of a CPU that runs a real-time process. */
static void calm_down(void *unused)
{
    say(0);
}

static int __init boost_begin(void)
{
    struct tracepoint *switches = find_tracepoint("sched_switch");
    size_t i;
    int error;

    if (!service_is_described("cassata,service-1.6")) {
        pr_err("cassata_boost: no Cassata service 1.6 here: the device tree has no node of it\n");
        return -ENODEV;
    }
    for (i = 0; i < ARRAY_SIZE(followers); i++) {
        followers[i].point = find_tracepoint(followers[i].name);
        if (!switches || !followers[i].point) {
            pr_err("cassata_boost: this kernel has no tracepoint %s\n",
                   switches ? followers[i].name : "sched_switch");
            return -ENOENT;
        }
    }
    error = follow(switches, switched, "cassata_boost:online");
    if (error)
        return error;
    error = register_followers();
    if (error) {
        follow_no_longer(switched);
        return error;
    }
    error = register_kretprobe(&changes);
    if (error) {
        /* Not each kernel has probes. Then the next interrupt or switch says it. */
        changes.kp.addr = NULL;
        pr_info("cassata_boost: no probe of %s here (%d): what changes without a switch is said later\n",
                changes.kp.symbol_name, error);
    }
    return 0;
}

static void __exit boost_end(void)
{
    if (changes.kp.addr)
        unregister_kretprobe(&changes);
    unregister_followers(ARRAY_SIZE(followers));
    stop_following(switched);
    on_each_cpu(calm_down, NULL, 1);
    drop_lines();
}

module_init(boost_begin);
module_exit(boost_end);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Tells the hypervisor when a real-time process runs");
