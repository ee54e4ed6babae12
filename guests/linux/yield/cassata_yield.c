// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Gives the core to other vCPUs of this VM where an unmodified kernel is about to spin for a lock:
 * its tracepoint contention_begin calls the hypervisor. docs/src/guests.md says what it cannot see. */
#include <linux/arm-smccc.h>
#include <linux/atomic.h>
#include <linux/cpuhotplug.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/of.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <trace/events/lock.h>

#include <asm-generic/qrwlock.h>

static bool always;
module_param(always, bool, 0444);
MODULE_PARM_DESC(always, "yield also where no other vCPU of the VM shares the core");
static uint threshold;
module_param(threshold, uint, 0444);
MODULE_PARM_DESC(threshold, "look so many times first whether the lock is free");

/* What a program may read of it. */
static bool offered;
module_param(offered, bool, 0444);
MODULE_PARM_DESC(offered, "the hypervisor takes yields of this VM; only to be read");
static atomic_t contended, yielded;
module_param_named(contended, contended.counter, int, 0444);
MODULE_PARM_DESC(contended, "how often a CPU was about to spin; only to be read");
module_param_named(yielded, yielded.counter, int, 0444);
MODULE_PARM_DESC(yielded, "how often it yielded; only to be read");

/* The Cassata service, docs/src/design/calls.md. */
enum { CALL_YIELD = 0xc6000022, CALL_PREEMPTION_LINE };

/* What a vCPU shares with the hypervisor. */
struct line {
    u32 no_preempt, cancelled, grace_ns, overcommitted, reserved[12];
};

static DEFINE_PER_CPU(struct line *, own_line);
static struct tracepoint *contention;
static int hotplug_state;

static long call(u32 function, u64 *value)
{
    struct arm_smccc_res result;

    arm_smccc_1_1_hvc(function, &result);
    *value = result.a1;
    return result.a0;
}

/* Returns true while another CPU has the spinlock or queued rwlock, which begin with such a word. */
static bool is_held(const void *lock, unsigned int flags)
{
    u32 value = READ_ONCE(*(const u32 *)lock);

    return flags & LCB_F_WRITE ? value & ~_QW_WAITING : value & _QW_LOCKED;
}

/* May be called in any context, with preemption disabled. A call to the hypervisor needs no more. */
static void contention_begins(void *unused, void *lock, unsigned int flags)
{
    struct line *line = raw_cpu_read(own_line);
    unsigned int looks = 0;
    u64 ignored;

    /* A mutex that spins does so only as long as its holder runs, and then sleeps. */
    if (!(flags & LCB_F_SPIN) || flags & LCB_F_MUTEX)
        return;
    atomic_inc(&contended);
    if (!always && !(line && READ_ONCE(line->overcommitted)))
        return;
    while (looks++ < threshold) {
        if (!is_held(lock, flags))
            return;
        cpu_relax();
    }
    atomic_inc(&yielded);
    call(CALL_YIELD, &ignored);
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

    /* A contention may be looking at it. */
    tracepoint_synchronize_unregister();
    if (line)
        memunmap(line);
    return 0;
}

/* The tracepoint's own functions are not for modules. */
static void find_contention(struct tracepoint *point, void *unused)
{
    if (!strcmp(point->name, "contention_begin"))
        contention = point;
}

/* Asked first, so that no HVC is executed where nothing would take it. */
static bool is_described(void)
{
    struct device_node *node = of_find_compatible_node(NULL, NULL, "cassata,service-1.0");

    of_node_put(node);
    return node && arm_smccc_1_1_get_conduit() == SMCCC_CONDUIT_HVC;
}

/* Without `always`, the line says when to yield. */
static bool is_offered(void)
{
    u64 ignored;

    return !call(CALL_YIELD, &ignored) && (always || !call(CALL_PREEMPTION_LINE, &ignored));
}

static int __init yield_begin(void)
{
    int error;

    if (!is_described()) {
        pr_err("cassata_yield: no Cassata service here: the device tree has no node of it\n");
        return -ENODEV;
    }
    offered = is_offered();
    if (!offered) {
        pr_warn("cassata_yield: does nothing: this VM's description offers it no yield\n");
        return 0;
    }
    for_each_kernel_tracepoint(find_contention, NULL);
    if (!contention) {
        pr_err("cassata_yield: this kernel has no tracepoint contention_begin, since Linux 5.19\n");
        return -ENOENT;
    }
    hotplug_state = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "cassata_yield:online", take_line,
                                      drop_line);
    if (hotplug_state < 0)
        return hotplug_state;
    error = tracepoint_probe_register(contention, contention_begins, NULL);
    if (error)
        cpuhp_remove_state(hotplug_state);
    return error;
}

static void __exit yield_end(void)
{
    if (!offered)
        return;
    tracepoint_probe_unregister(contention, contention_begins, NULL);
    tracepoint_synchronize_unregister();
    cpuhp_remove_state(hotplug_state);
}

module_init(yield_begin);
module_exit(yield_end);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Yields where the kernel is about to spin for a lock");
