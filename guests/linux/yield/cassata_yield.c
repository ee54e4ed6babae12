// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Gives the core to other vCPUs of this VM where an unmodified kernel is about to spin for a lock:
 * its tracepoint contention_begin calls the hypervisor. docs/src/guests.md says what it cannot see. */
#include <linux/atomic.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <trace/events/lock.h>

#include <asm-generic/qrwlock.h>

#include "cassata_line.h"

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

/* Returns true while another CPU has the spinlock or queued rwlock, which begin with such a word. */
static bool is_held(const void *lock, unsigned int flags)
{
    u32 value = READ_ONCE(*(const u32 *)lock);

    return flags & LCB_F_WRITE ? value & ~_QW_WAITING : value & _QW_LOCKED;
}

/* May be called in any context, with preemption disabled. A call to the hypervisor needs no more. */
static void contention_begins(void *unused, void *lock, unsigned int flags)
{
    unsigned int looks = 0;
    u64 ignored;

    /* A mutex that spins does so only as long as its holder runs, and then sleeps. */
    if (!(flags & LCB_F_SPIN) || flags & LCB_F_MUTEX)
        return;
    atomic_inc(&contended);
    if (!always && !is_crowded())
        return;
    while (looks++ < threshold) {
        if (!is_held(lock, flags))
            return;
        cpu_relax();
    }
    atomic_inc(&yielded);
    call(CALL_YIELD, &ignored);
}

/* Without `always`, the line says when to yield. */
static bool is_offered(void)
{
    u64 ignored;

    return !call(CALL_YIELD, &ignored) && (always || !call(CALL_PREEMPTION_LINE, &ignored));
}

static int __init yield_begin(void)
{
    struct tracepoint *contention;

    if (!service_is_described("cassata,service-1.0")) {
        pr_err("cassata_yield: no Cassata service here: the device tree has no node of it\n");
        return -ENODEV;
    }
    offered = is_offered();
    if (!offered) {
        pr_warn("cassata_yield: does nothing: this VM's description offers it no yield\n");
        return 0;
    }
    contention = find_tracepoint("contention_begin");
    if (!contention) {
        pr_err("cassata_yield: this kernel has no tracepoint contention_begin, since Linux 5.19\n");
        return -ENOENT;
    }
    return follow(contention, contention_begins, "cassata_yield:online");
}

static void __exit yield_end(void)
{
    if (offered)
        follow_no_longer(contention_begins);
}

module_init(yield_begin);
module_exit(yield_end);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Yields where the kernel is about to spin for a lock");
