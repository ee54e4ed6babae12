/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Claims to mutexes that VMs share. EL2 knows holder and queue, docs/src/design/sections.md.
 *
 * A claim belongs to the CPU whose vCPU has the task, and EL2 takes calls for it from that vCPU
 * only. So whatever happens to a claim happens on that CPU, with interrupts off, or after that CPU
 * was switched off: no lock is needed between the interrupt that grants it and the calls that
 * change it. */
#ifndef VMPCP_CLAIM_H
#define VMPCP_CLAIM_H

#include <linux/percpu.h>
#include <linux/smp.h>

#include "module.h"

enum state { FREE, WAITS, HOLDS };

/* What the description lets one task do with one mutex. It is never freed before the module is:
 * there are as many as the description names, and EL2 may grant one that is not in use any more. */
struct claim {
    struct list_head link; /* among those of its CPU */
    u64 mutex, task;       /* hashes of their names */
    int cpu;
    u64 handle;
    const u8 *byte; /* that EL2 writes, see `is_granted` */
    struct session *session; /* that uses it, or NULL; under `opening` */
    bool is_open;   /* at EL2; it is no more after its CPU was switched off */
    bool owner_died;
    u64 queued; /* when its task was in the queue, by the counter; 0: it had not to wait */
    enum state state;
    struct task_struct *waiter; /* NULL: the task that waited was killed */
    struct section section;
};

DECLARE_PER_CPU(struct list_head, claims);

/* A request about a claim, on its CPU. */
struct request {
    struct claim *claim;
    struct task_struct *task;
    bool may_wait;
    long answer;
};

/* Lets the claim's CPU act, and returns the answer, or -ESTALE if that CPU is off. */
long claim_request(struct claim *claim, smp_call_func_t act, bool may_wait);
/* Ends the use of a free claim at EL2. On its CPU. */
void claim_close_here(struct claim *claim);

#endif
