// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Mutexes that VMs share: locked, granted, given back. See claim.h. */
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>

#include "claim.h"

/* Looks at the byte: 0, or the holder's rank and one, and bit 7 if the one before died. */
static bool is_granted(struct claim *claim)
{
    /* What the mutex protects is read after it. */
    u8 byte = smp_load_acquire(claim->byte);

    if ((byte & 0x7f) != (claim->handle >> 8) + 1)
        return false;
    claim->owner_died = byte & 0x80;
    return true;
}

/* Gives the mutex back. If its holder died, EL2 tells the next one, in whichever VM. */
static long give_back(struct claim *claim, bool owner_died)
{
    claim->state = FREE;
    return service_call(owner_died ? CALL_MUTEX_ABANDON : CALL_MUTEX_UNLOCK, claim->handle, 0);
}

/* No task waits for it any more, and EL2 cannot take it out of the queue: it is passed on, and with
 * it that the holder before died. */
static void pass_on(struct claim *claim)
{
    give_back(claim, claim->owner_died);
    if (!READ_ONCE(claim->session))
        claim_close_here(claim);
    module_put(THIS_MODULE);
}

/* Ends a wait. The task sees the new state at once and may go on before it is woken, so it is read
 * first; RCU, or interrupts that are off, keep it from being freed meanwhile. */
static void end_wait(struct claim *claim, enum state state)
{
    struct task_struct *waiter = claim->waiter;

    smp_store_release(&claim->state, state);
    if (waiter)
        wake_up_process(waiter);
}

void inter_granted(void)
{
    struct claim *claim;

    list_for_each_entry(claim, this_cpu_ptr(&claims), link) {
        if (claim->state != WAITS || !is_granted(claim))
            continue;
        if (claim->waiter)
            end_wait(claim, HOLDS);
        else
            pass_on(claim);
    }
}

void inter_lose_all(int cpu)
{
    struct claim *claim;

    /* A task that waits may be on another CPU by now. */
    rcu_read_lock();
    list_for_each_entry(claim, per_cpu_ptr(&claims, cpu), link) {
        if (claim->state == WAITS && !claim->waiter)
            module_put(THIS_MODULE);
        claim->is_open = false;
        end_wait(claim, FREE);
    }
    rcu_read_unlock();
}

/* The answers of these are EL2's, or errors of Linux, which are below EL2's. */
#define LOWEST_ANSWER (-3)

static void lock_here(void *data)
{
    struct request *request = data;
    struct claim *claim = request->claim;

    if (claim->state == WAITS && !claim->waiter && request->may_wait) {
        /* It stands in the queue for a task that was killed. */
        claim->waiter = request->task;
        module_put(THIS_MODULE);
        request->answer = ANSWER_QUEUED;
    } else if (claim->state != FREE) {
        request->answer = -EBUSY;
    } else if (claim->is_open) {
        request->answer = service_call(request->may_wait ? CALL_MUTEX_LOCK : CALL_MUTEX_TRYLOCK,
                                       claim->handle, 0);
        if (request->answer == ANSWER_QUEUED) {
            claim->waiter = request->task;
            claim->state = WAITS;
        } else if (request->answer == ANSWER_HELD || request->answer == ANSWER_OWNER_DIED) {
            claim->state = HOLDS;
            claim->owner_died = request->answer == ANSWER_OWNER_DIED;
            claim->queued = 0;
        }
    }
    if (request->answer == ANSWER_QUEUED)
        claim->queued = read_sysreg(cntvct_el0);
}

/* The task that waits is about to die. It answers false if it has the mutex meanwhile. */
static void abandon_here(void *data)
{
    struct request *request = data;
    struct claim *claim = request->claim;

    request->answer = claim->state == WAITS;
    if (request->answer) {
        claim->waiter = NULL;
        /* The interrupt will come. */
        __module_get(THIS_MODULE);
    }
}

static void unlock_here(void *data)
{
    struct request *request = data;

    if (request->claim->state == HOLDS)
        request->answer = give_back(request->claim, false);
}

/* The task that holds it dies, or has closed the file. */
static void release_here(void *data)
{
    struct request *request = data;

    if (request->claim->state == HOLDS)
        request->answer = give_back(request->claim, true);
}

static int wait_for(struct claim *claim)
{
    bool holds;

    for (;;) {
        set_current_state(TASK_KILLABLE);
        if (READ_ONCE(claim->state) != WAITS)
            break;
        if (fatal_signal_pending(current) && claim_request(claim, abandon_here, false) > 0) {
            __set_current_state(TASK_RUNNING);
            return -EINTR;
        }
        schedule();
    }
    __set_current_state(TASK_RUNNING);
    holds = smp_load_acquire(&claim->state) == HOLDS;
    claim->waiter = NULL;
    return holds ? 0 : -ESTALE;
}

static void released(struct section *section)
{
    claim_request(container_of(section, struct claim, section), release_here, false);
}

int inter_lock(struct claim *claim, struct session *session, bool may_wait)
{
    struct section prepared;
    long answer;
    int error;

    if (cpus_of_current() != claim->cpu)
        return -EXDEV;
    if (may_wait && !cpus_have_interrupt())
        return -EOPNOTSUPP;
    error = section_prepare(&prepared, session);
    if (error)
        return error;
    answer = claim_request(claim, lock_here, may_wait);
    if (answer == ANSWER_QUEUED)
        error = wait_for(claim);
    else if (answer == ANSWER_BUSY)
        error = -EBUSY;
    else if (answer != ANSWER_HELD && answer != ANSWER_OWNER_DIED)
        error = answer < LOWEST_ANSWER ? answer : -ESTALE;
    if (error) {
        section_lower(&prepared);
        return error;
    }
    prepared.release = released;
    section_enter(&claim->section, &prepared);
    return claim->owner_died ? -EOWNERDEAD : 0;
}

u64 inter_queued(const struct claim *claim)
{
    return READ_ONCE(claim->queued);
}

int inter_unlock(struct claim *claim)
{
    struct section was;
    long answer;

    if (!section_leave(&claim->section, &was))
        return -EPERM;
    answer = claim_request(claim, unlock_here, false);
    section_lower(&was);
    return answer == 0 ? 0 : -ESTALE;
}
