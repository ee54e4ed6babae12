/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a guest reports of its tasks: crates/abi/src/report/tasks.rs in C, with what it takes to write
 * it. The host compares it with what was computed for the tasks. A guest opens the area once for all
 * its tasks; then each task writes only what is its own:
 *
 *     static const char *const names[] = { "controller", "logger" };    as in the description
 *     static struct cassata_task_writer writers[2];
 *
 *     cassata_tasks_open(writers, names, 2, area, size, counter_hz);
 *     for (;;) {
 *         cassata_task_release(&writers[0], arrival);       the job's period begins then
 *         ... wait for that time, and do the job ...
 *         cassata_task_finish(&writers[0], counter_now(), period);
 *     }
 *
 * Where there is no area, the writers do nothing. All times are what the counter shows, in its ticks.
 * Nothing but C11 and the compiler's atomic functions is needed. Nothing is read from the area: other
 * programs of the guest may have mapped it, and may write there what they like. */
#ifndef CASSATA_TASKS_H
#define CASSATA_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CASSATA_TASKS_MAGIC 0x014b534154534143ull /* "CASTASK\x01" */

struct cassata_tasks {
    uint64_t magic;             /* CASSATA_TASKS_MAGIC, written last */
    uint64_t counter_hz;        /* frequency of the counter */
    uint64_t tasks;             /* how many follow */
    uint64_t capacity;          /* sections that each has room for, behind all tasks */
};

struct cassata_task {
    uint64_t name;              /* cassata_hash of it */
    uint64_t jobs;              /* that are complete */
    uint64_t longest;           /* response of them: from the beginning of the period to the end */
    uint64_t sum;               /* of all responses */
    uint64_t late;              /* jobs that ended after their period */
    uint64_t unfinished;        /* when the period of the job began that is not complete; 0: none */
    uint64_t sections;          /* global critical sections that have ended */
};

/* A global critical section, of a mutex of the hypervisor. */
struct cassata_section {
    uint64_t mutex;             /* cassata_hash of its name */
    uint64_t asked;             /* before it was locked */
    uint64_t queued;            /* the task had to wait: any time from then on up to `had`; 0: it had not */
    uint64_t had;               /* the task had it */
    uint64_t gives;             /* before it was given back */
    uint64_t gave;              /* after that */
};

/* What writes the record of one task, in the guest's own memory. Zero: there is no area. */
struct cassata_task_writer {
    struct cassata_task *to;    /* NULL: there is no area */
    struct cassata_section *sections;
    uint64_t capacity;
    struct cassata_task own;    /* what was written last */
};

_Static_assert(sizeof(struct cassata_tasks) == 32, "header is four words");
_Static_assert(offsetof(struct cassata_tasks, capacity) == 24, "capacity");
_Static_assert(sizeof(struct cassata_task) == 56, "task is seven words");
_Static_assert(offsetof(struct cassata_task, unfinished) == 40, "unfinished");
_Static_assert(sizeof(struct cassata_section) == 48, "section is six words");
_Static_assert(offsetof(struct cassata_section, gave) == 40, "gave");

/* FNV-1a, by which EL2 and the host know names. */
static inline uint64_t cassata_hash(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325ull;

    while (*name != '\0')
        hash = (hash ^ (unsigned char)*name++) * 0x100000001b3ull;
    return hash;
}

/* What of a report area of `size` bytes belongs to tasks: the second half is for the guest's events
 * (cassata_events.h). */
static inline uint64_t cassata_tasks_room(uint64_t size)
{
    return size / 2 / 64 * 64;
}

/* Initialises a report area of `size` bytes for `count` tasks of these names, and their writers. False,
 * and the writers do nothing, if it is too small or there are no tasks. */
static inline bool cassata_tasks_open(struct cassata_task_writer *writers, const char *const *names,
                                      uint64_t count, void *area, uint64_t size, uint64_t counter_hz)
{
    struct cassata_tasks *header = (struct cassata_tasks *)area;
    struct cassata_task *tasks = (struct cassata_task *)(header + 1);
    struct cassata_section *sections = (struct cassata_section *)(tasks + count);
    uint64_t tables = sizeof *header + count * sizeof *tasks, room = cassata_tasks_room(size);
    uint64_t number, capacity;

    for (number = 0; number < count; number++)
        writers[number].to = NULL;
    if (count == 0 || room < tables)
        return false;
    capacity = (room - tables) / (count * sizeof *sections);
    /* A guest that starts again finds what it left: the reader must not take the old for new. A store
     * that releases orders only what comes before it, so a fence follows. */
    __atomic_store_n(&header->magic, 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    header->counter_hz = counter_hz;
    header->tasks = count;
    header->capacity = capacity;
    for (number = 0; number < count; number++) {
        struct cassata_task none = { .name = cassata_hash(names[number]) };

        tasks[number] = none;
        writers[number].to = &tasks[number];
        writers[number].sections = &sections[number * capacity];
        writers[number].capacity = capacity;
        writers[number].own = none;
    }
    __atomic_store_n(&header->magic, CASSATA_TASKS_MAGIC, __ATOMIC_RELEASE);
    return true;
}

/* The period of the task's next job begins at `arrival`, which may be still to come. 0: there will be no
 * other job. From then on the host takes the job for one that is not complete. */
static inline void cassata_task_release(struct cassata_task_writer *writer, uint64_t arrival)
{
    writer->own.unfinished = arrival;
    if (writer->to != NULL)
        __atomic_store_n(&writer->to->unfinished, arrival, __ATOMIC_RELEASE);
}

/* The job that was released last has ended at `now`. It is late if it took longer than `period`. */
static inline void cassata_task_finish(struct cassata_task_writer *writer, uint64_t now, uint64_t period)
{
    struct cassata_task *own = &writer->own, *to = writer->to;
    uint64_t response = now - own->unfinished;

    own->jobs++;
    own->sum += response;
    own->late += response > period;
    own->unfinished = 0;
    if (response > own->longest)
        own->longest = response;
    if (to == NULL)
        return;
    __atomic_store_n(&to->sum, own->sum, __ATOMIC_RELAXED);
    __atomic_store_n(&to->late, own->late, __ATOMIC_RELAXED);
    __atomic_store_n(&to->longest, own->longest, __ATOMIC_RELAXED);
    /* Only a reader that has the response may miss the job that was under way. */
    __atomic_store_n(&to->unfinished, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&to->jobs, own->jobs, __ATOMIC_RELEASE);
}

/* Adds a section that has ended, if there is room for it; it is counted in any case. */
static inline void cassata_task_section(struct cassata_task_writer *writer,
                                        const struct cassata_section *section)
{
    uint64_t number = writer->own.sections++;

    if (writer->to == NULL)
        return;
    if (number < writer->capacity)
        writer->sections[number] = *section;
    __atomic_store_n(&writer->to->sections, number + 1, __ATOMIC_RELEASE);
}

#endif
