// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Tasks that hold a mutex: above all others of their CPU that hold none. */
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/spinlock.h>
#include <uapi/linux/sched/types.h>

#include "module.h"

/* A task of SCHED_FIFO priority p runs at RAISED + p meanwhile, any other task at RAISED: what is
 * to be below all that hold a mutex has a priority below RAISED. */
#define RAISED 50

DEFINE_MUTEX(opening);
static LIST_HEAD(sections);
static DEFINE_SPINLOCK(sections_lock);

static int schedule_as(struct task_struct *task, const struct rank_of_task *rank)
{
    struct sched_attr attributes = {
        .size = sizeof attributes,
        .sched_policy = rank->policy,
        .sched_flags = rank->reset_on_fork ? SCHED_FLAG_RESET_ON_FORK : 0,
        .sched_nice = rank->nice,
        .sched_priority = rank->priority,
    };

    return sched_setattr_nocheck(task, &attributes);
}

static bool is_inside(const struct task_struct *task)
{
    const struct section *section;
    bool found = false;

    spin_lock(&sections_lock);
    list_for_each_entry(section, &sections, link)
        found |= section->task == task;
    spin_unlock(&sections_lock);
    return found;
}

int section_prepare(struct section *section, struct session *session)
{
    struct rank_of_task raised;

    if (is_inside(current))
        return -EDEADLK;
    /* What such a task is promised is not ours to change. */
    if (current->policy == SCHED_DEADLINE)
        return -EINVAL;
    *section = (struct section){
        .task = current,
        .session = session,
        .own = {
            .policy = current->policy,
            .nice = task_nice(current),
            .priority = current->rt_priority,
            .reset_on_fork = current->sched_reset_on_fork,
        },
    };
    raised = section->own;
    raised.policy = SCHED_FIFO;
    raised.priority = min(RAISED + section->own.priority, (unsigned int)MAX_RT_PRIO - 1);
    /* What the task starts meanwhile holds nothing. */
    raised.reset_on_fork = true;
    return schedule_as(current, &raised);
}

void section_lower(const struct section *section)
{
    schedule_as(section->task, &section->own);
}

void section_enter(struct section *held, const struct section *prepared)
{
    /* Its address is compared with others', so it must not become another task's. */
    get_task_struct(prepared->task);
    spin_lock(&sections_lock);
    *held = *prepared;
    list_add(&held->link, &sections);
    spin_unlock(&sections_lock);
}

/* Ends a section. Under `sections_lock`, with what says that it is to end: so it ends once, also
 * when its task unlocks by one open file while another one is closed. */
static struct section take_out(struct section *held)
{
    struct section was = *held;

    list_del(&held->link);
    WRITE_ONCE(held->task, NULL);
    return was;
}

bool section_leave(struct section *held, struct section *was)
{
    bool is_mine;

    spin_lock(&sections_lock);
    is_mine = held->task == current;
    if (is_mine)
        *was = take_out(held);
    spin_unlock(&sections_lock);
    if (is_mine)
        put_task_struct(current);
    return is_mine;
}

/* Returns true if the task leaves the section behind: it is exiting, or closes the file. Of the end
 * of a task that has closed the file before, also by exec, the module is not told. */
static bool is_over(const struct section *section)
{
    return section->task == current || section->task->flags & PF_EXITING;
}

/* Ends one section that may be released. Returns NULL if there is none. */
static struct section *take_out_one(const struct session *session, bool all, struct section *was)
{
    struct section *section, *found = NULL;

    spin_lock(&sections_lock);
    list_for_each_entry(section, &sections, link) {
        if (section->session == session && (all || is_over(section))) {
            found = section;
            *was = take_out(found);
            break;
        }
    }
    spin_unlock(&sections_lock);
    return found;
}

void section_release_all(const struct session *session, bool all)
{
    struct section *held, was;

    /* When the section is over, nothing else keeps the mutex from being closed and freed. */
    mutex_lock(&opening);
    while ((held = take_out_one(session, all, &was))) {
        was.release(held);
        /* It may have closed the file and live on. */
        section_lower(&was);
        put_task_struct(was.task);
    }
    mutex_unlock(&opening);
}
