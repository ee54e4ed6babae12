// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Mutexes of this VM: of its tasks, on any of its vCPUs (RTSS 2014, Section V-B). */
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "module.h"

/* A guest does not see its vCPUs' priorities, so they are said when the module is loaded. */
#define MOST_VCPUS 16
static unsigned int vcpu_priority[MOST_VCPUS];
module_param_array(vcpu_priority, uint, NULL, 0444);
MODULE_PARM_DESC(vcpu_priority, "priority of each vCPU, as the description has them; else vCPU 0 is the highest");

/* A task that waits. */
struct waiter {
    struct list_head link; /* among those of the mutex, the first to be served first */
    struct task_struct *task;
    unsigned int vcpu, vcpu_priority, priority;
    bool is_granted;
};

struct intra {
    struct list_head link; /* among all of them; under `opening` */
    char name[VMPCP_NAME_BYTES];
    enum vmpcp_order order;
    unsigned int users; /* under `opening` */
    spinlock_t lock;    /* of the rest, see `take` */
    bool is_held, owner_died;
    struct list_head waiters;
    /* The holder's: */
    int raised; /* the vCPU that is raised for it, or -1 */
    struct section section;
};

static LIST_HEAD(intras);
/* Under `opening`. There is a limit because those that a task died with stay when none uses them:
 * the next task is yet to be told. */
static unsigned int intra_count;
#define MOST_INTRAS 256

/* Returns true if `one` is served before `other`. Of equals, the one that waits longer is. */
static bool goes_before(const struct waiter *one, const struct waiter *other, enum vmpcp_order order)
{
    if (order == VMPCP_TASK_FIRST && one->priority != other->priority)
        return one->priority > other->priority;
    if (one->vcpu_priority != other->vcpu_priority)
        return one->vcpu_priority > other->vcpu_priority;
    if (one->vcpu != other->vcpu)
        return one->vcpu < other->vcpu;
    return one->priority > other->priority;
}

static void queue(struct intra *intra, struct waiter *waiter)
{
    struct waiter *other;

    list_for_each_entry(other, &intra->waiters, link) {
        if (goes_before(waiter, other, intra->order))
            break;
    }
    list_add_tail(&waiter->link, &other->link);
}

/* Raises the vCPU of this CPU. Returns it, or -1 if that is refused, or the mutex is one of MPCP. With
 * preemption off. */
static int raise_here(const struct intra *intra)
{
    unsigned int vcpu = cpus_vcpu(smp_processor_id());

    if (intra->order != VMPCP_VCPU_FIRST || service_call(CALL_START_GCS, vcpu, 0))
        return -1;
    return vcpu;
}

/* Takes the lock of a mutex. Other CPUs spin until they have it, so under vMPCP only a raised vCPU has it:
 * another one could be kept from its core for as long as its server's period. `raised` is the vCPU that is
 * raised already, or -1. Returns the one that `let_go` is to lower, or -1. */
static int take(struct intra *intra, int raised)
{
    int here = -1;

    preempt_disable();
    if (raised != (int)cpus_vcpu(smp_processor_id()))
        here = raise_here(intra);
    spin_lock(&intra->lock);
    return here;
}

static void let_go(struct intra *intra, int here)
{
    spin_unlock(&intra->lock);
    if (here >= 0)
        service_call(CALL_FINISH_GCS, here, 0);
    preempt_enable();
}

/* Takes a waiter out of the queue. False if it has been chosen, and will be granted the mutex. */
static bool forget(struct intra *intra, struct waiter *waiter)
{
    int here = take(intra, -1);
    bool waits = !list_empty(&waiter->link);

    list_del_init(&waiter->link);
    let_go(intra, here);
    return waits;
}

static int wait_for(struct intra *intra, struct waiter *waiter)
{
    unsigned int state = TASK_KILLABLE;

    for (;;) {
        set_current_state(state);
        if (smp_load_acquire(&waiter->is_granted))
            break;
        if (state == TASK_KILLABLE && fatal_signal_pending(current)) {
            if (forget(intra, waiter)) {
                __set_current_state(TASK_RUNNING);
                return -EINTR;
            }
            /* The task that grants it may need this CPU to do so. */
            state = TASK_UNINTERRUPTIBLE;
            continue;
        }
        schedule();
    }
    __set_current_state(TASK_RUNNING);
    return 0;
}

/* Gives the mutex to the first that waits, and raises its vCPU: its task cannot do so itself while
 * another vCPU has its pCPU. If EL2 refuses, because it was raised too often, the
 * task does so when it goes on. */
static void pass_on(struct intra *intra, bool owner_died)
{
    struct waiter *next;
    struct task_struct *task;
    int raised = intra->raised, here = take(intra, raised);

    intra->owner_died = owner_died;
    next = list_first_entry_or_null(&intra->waiters, struct waiter, link);
    if (next)
        list_del_init(&next->link);
    else
        intra->is_held = false;
    let_go(intra, here);

    if (next) {
        task = next->task;
        get_task_struct(task);
        intra->raised = -1;
        if (intra->order == VMPCP_VCPU_FIRST && service_call(CALL_START_GCS, next->vcpu, 0) == 0)
            intra->raised = next->vcpu;
        smp_store_release(&next->is_granted, true);
        wake_up_process(task);
        put_task_struct(task);
    }
    if (raised >= 0)
        cpus_finish_gcs(raised);
}

static void released(struct section *section)
{
    pass_on(container_of(section, struct intra, section), true);
}

int intra_lock(struct intra *intra, struct session *session, bool may_wait)
{
    int cpu = cpus_of_current(), error;
    struct waiter waiter = { .task = current, .is_granted = false };
    struct section prepared;
    bool holds;
    int here;

    if (cpu < 0)
        return cpu;
    error = section_prepare(&prepared, session);
    if (error)
        return error;
    waiter.vcpu = cpus_vcpu(cpu);
    waiter.vcpu_priority = vcpu_priority[waiter.vcpu % MOST_VCPUS];
    waiter.priority = prepared.own.priority;

    here = take(intra, -1);
    holds = !intra->is_held;
    if (holds) {
        intra->is_held = true;
        intra->raised = here;
        here = -1; /* for as long as it is held */
    } else if (may_wait) {
        queue(intra, &waiter);
    } else {
        error = -EBUSY;
    }
    let_go(intra, here);

    if (!holds && !error)
        error = wait_for(intra, &waiter);
    /* EL2 has refused it to the task that passed the mutex on. */
    if (!holds && !error && intra->raised < 0) {
        preempt_disable();
        intra->raised = raise_here(intra);
        preempt_enable();
    }
    if (error) {
        section_lower(&prepared);
        return error;
    }
    prepared.release = released;
    section_enter(&intra->section, &prepared);
    return intra->owner_died ? -EOWNERDEAD : 0;
}

int intra_unlock(struct intra *intra)
{
    struct section was;

    if (!section_leave(&intra->section, &was))
        return -EPERM;
    pass_on(intra, false);
    section_lower(&was);
    return 0;
}

static struct intra *known(const char *name)
{
    struct intra *intra;

    list_for_each_entry(intra, &intras, link) {
        if (!strcmp(intra->name, name))
            return intra;
    }
    return NULL;
}

static struct intra *create(const struct vmpcp_intra *open)
{
    struct intra *intra;

    if (intra_count == MOST_INTRAS)
        return ERR_PTR(-ENOSPC);
    intra = kzalloc(sizeof *intra, GFP_KERNEL);
    if (!intra)
        return ERR_PTR(-ENOMEM);
    intra_count++;
    strcpy(intra->name, open->name);
    intra->order = open->order;
    spin_lock_init(&intra->lock);
    INIT_LIST_HEAD(&intra->waiters);
    list_add(&intra->link, &intras);
    return intra;
}

int intra_open(struct vmpcp_intra *open, struct intra **opened)
{
    struct intra *intra;
    int error = 0;

    if (open->order != VMPCP_VCPU_FIRST && open->order != VMPCP_TASK_FIRST)
        return -EINVAL;
    mutex_lock(&opening);
    intra = known(open->name);
    if (!intra)
        intra = create(open);
    if (IS_ERR(intra)) {
        error = PTR_ERR(intra);
    } else if (intra->order != open->order) {
        error = -EINVAL;
    } else {
        intra->users++;
        *opened = intra;
    }
    mutex_unlock(&opening);
    return error;
}

int intra_close(struct intra *intra, const struct session *session)
{
    int error = 0;

    mutex_lock(&opening);
    if (READ_ONCE(intra->section.task) && intra->section.session == session) {
        error = -EBUSY;
    } else if (--intra->users == 0 && !intra->owner_died) {
        intra_count--;
        list_del(&intra->link);
        kfree(intra);
    }
    mutex_unlock(&opening);
    return error;
}

void intra_end(void)
{
    struct intra *intra, *next;

    list_for_each_entry_safe(intra, next, &intras, link)
        kfree(intra);
}
