// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Which claims there are, and which open file has them. */
#include <linux/io.h>
#include <linux/slab.h>

#include "claim.h"

DEFINE_PER_CPU(struct list_head, claims);
/* The stolen-time structures of all vCPUs, in which the bytes are. */
static const u8 *stolen;
#define STOLEN_BASE 0x0b000000UL
#define STOLEN_BYTES 0x1000UL

long claim_request(struct claim *claim, smp_call_func_t act, bool may_wait)
{
    struct request request = {
        .claim = claim,
        .task = current,
        .may_wait = may_wait,
        .answer = -ESTALE,
    };

    smp_call_function_single(claim->cpu, act, &request, 1);
    return request.answer;
}

void claim_close_here(struct claim *claim)
{
    service_call(CALL_MUTEX_CLOSE, claim->handle, 0);
    claim->is_open = false;
}

/* FNV-1a, by which EL2 knows names. */
static u64 hash(const char *name)
{
    u64 hash = 0xcbf29ce484222325ULL;

    while (*name)
        hash = (hash ^ (u8)*name++) * 0x100000001b3ULL;
    return hash;
}

static void open_here(void *data)
{
    struct request *request = data;
    struct claim *claim = request->claim;
    u64 handle, byte;

    if (claim->is_open) {
        request->answer = 1;
        return;
    }
    request->answer = service_open(claim->mutex, claim->task, &handle, &byte);
    if (request->answer < 0 || byte - STOLEN_BASE >= STOLEN_BYTES) {
        request->answer = -ENOENT;
        return;
    }
    claim->handle = handle;
    claim->byte = stolen + (byte - STOLEN_BASE);
    claim->is_open = true;
    claim->state = FREE;
}

static void add_here(void *data)
{
    struct request *request = data;

    list_add(&request->claim->link, this_cpu_ptr(&claims));
    request->answer = 0;
}

static struct claim *known(int cpu, u64 mutex, u64 task)
{
    struct claim *claim;

    /* Under `opening`; claims are added only, and only by those that have it. */
    list_for_each_entry(claim, per_cpu_ptr(&claims, cpu), link) {
        if (claim->mutex == mutex && claim->task == task)
            return claim;
    }
    return NULL;
}

static int open_for(struct vmpcp_inter *open, struct session *session, struct claim **opened)
{
    u64 mutex = hash(open->mutex), task = hash(open->task);
    int cpu = cpus_of_current();
    struct claim *claim;
    long answer;

    if (cpu < 0)
        return cpu;
    claim = known(cpu, mutex, task);
    /* It stands for one task. */
    if (claim && claim->session)
        return -EBUSY;
    if (!claim) {
        claim = kzalloc(sizeof *claim, GFP_KERNEL);
        if (!claim)
            return -ENOMEM;
        claim->mutex = mutex;
        claim->task = task;
        claim->cpu = cpu;
        claim->session = session;
        answer = claim_request(claim, open_here, false);
        if (answer >= 0)
            claim_request(claim, add_here, false);
        else
            kfree(claim);
    } else {
        /* One that is still open may be granted at any time: it must not be closed then. */
        WRITE_ONCE(claim->session, session);
        answer = claim_request(claim, open_here, false);
        if (answer < 0)
            WRITE_ONCE(claim->session, NULL);
    }
    if (answer < 0)
        return answer;
    open->others = answer;
    *opened = claim;
    return 0;
}

int inter_open(struct vmpcp_inter *open, struct session *session, struct claim **claim)
{
    int error;

    mutex_lock(&opening);
    error = open_for(open, session, claim);
    mutex_unlock(&opening);
    return error;
}

static void close_if_free(void *data)
{
    struct request *request = data;
    struct claim *claim = request->claim;

    request->answer = 0;
    if (claim->state == HOLDS || claim->waiter) {
        request->answer = -EBUSY;
        return;
    }
    WRITE_ONCE(claim->session, NULL);
    if (claim->state == FREE && claim->is_open)
        claim_close_here(claim);
}

int inter_close(struct claim *claim)
{
    long answer;

    mutex_lock(&opening);
    /* A section outlasts what EL2 took back when the CPU was switched off. */
    answer = READ_ONCE(claim->section.task) ? -EBUSY : claim_request(claim, close_if_free, false);
    if (answer == -ESTALE) {
        WRITE_ONCE(claim->session, NULL);
        answer = 0;
    }
    mutex_unlock(&opening);
    return answer;
}

int inter_begin(void)
{
    int cpu;

    for_each_possible_cpu(cpu)
        INIT_LIST_HEAD(per_cpu_ptr(&claims, cpu));
    /* EL2 maps it read-only. */
    stolen = memremap(STOLEN_BASE, STOLEN_BYTES, MEMREMAP_WB);
    return stolen ? 0 : -ENOMEM;
}

void inter_end(void)
{
    struct claim *claim, *next;
    int cpu;

    for_each_possible_cpu(cpu) {
        list_for_each_entry_safe(claim, next, per_cpu_ptr(&claims, cpu), link)
            kfree(claim);
    }
    memunmap((void *)stolen);
}
