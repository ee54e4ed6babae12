// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* How long each call takes a program, as in Table II of RTSS 2014: alone on its CPU, without
 * contention. The names of the calls are those that FreeRTOS prints. */
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct time {
    uint64_t count, sum, shortest, longest;
};

static uint64_t ticks(void)
{
    uint64_t value;

    asm volatile("isb; mrs %0, cntvct_el0" : "=r"(value)::"memory");
    return value;
}

static uint64_t ticks_per_second(void)
{
    uint64_t value;

    asm("mrs %0, cntfrq_el0" : "=r"(value));
    return value;
}

static void say(const char *kind, const char *call, struct time time)
{
    double ns = 1e9 / ticks_per_second();

    if (time.count)
        printf("cassata: vmpcp %s%s count=%llu call_ns min=%.0f mean=%.0f max=%.0f\n", kind, call,
               (unsigned long long)time.count, time.shortest * ns, time.sum * ns / time.count,
               time.longest * ns);
}

static void count(struct time *time, uint64_t took)
{
    time->sum += took;
    time->shortest = !time->count++ || took < time->shortest ? took : time->shortest;
    time->longest = took > time->longest ? took : time->longest;
}

/* Times one call, which answers what is kept in `answer`. */
#define TIMED(time, answer, call)          \
    do {                                   \
        uint64_t begin = ticks(), took;    \
        (answer) = (call);                 \
        took = ticks() - begin;            \
        count(&(time), took);              \
        if ((answer) < 0)                  \
            fail(#call, answer);           \
    } while (0)

/* A mutex that VMs share is opened once for each task. */
static int open_for(int device, const struct options *options, const char *task, bool intra)
{
    return intra ? vmpcp_intra_mutex(device, options->intra, options->order)
                 : vmpcp_inter_mutex(device, options->mutex, task);
}

static void mutex(const char *kind, int device, const struct options *options, bool intra)
{
    struct time create = {}, existing = {}, destroy = {}, lock = {}, try = {}, unlock = {};
    int id, again, answer;

    for (unsigned long round = 0; round < options->rounds; round++) {
        TIMED(create, id, open_for(device, options, options->task, intra));
        if (intra || options->other) {
            TIMED(existing, again, open_for(device, options, options->other, intra));
            vmpcp_close(device, again);
        }
        TIMED(destroy, answer, vmpcp_close(device, id));
    }
    id = open_for(device, options, options->task, intra);
    for (unsigned long round = 0; round < options->rounds; round++) {
        TIMED(lock, answer, vmpcp_lock(device, id));
        TIMED(unlock, answer, vmpcp_unlock(device, id));
        TIMED(try, answer, vmpcp_trylock(device, id));
        vmpcp_unlock(device, id);
    }
    vmpcp_close(device, id);
    say(kind, "_open_create", create);
    say(kind, "_open_existing", existing);
    say(kind, "_destroy", destroy);
    say(kind, "_lock", lock);
    say(kind, "_trylock", try);
    say(kind, "_unlock", unlock);
}

static void sections(int device, const struct options *options)
{
    struct time start = {}, finish = {};
    int answer;

    for (unsigned long round = 0; round < options->rounds; round++) {
        TIMED(start, answer, vmpcp_start_gcs(device, options->cpu));
        TIMED(finish, answer, vmpcp_finish_gcs(device, options->cpu));
    }
    say("start_gcs", "", start);
    say("finish_gcs", "", finish);
}

void measure(const struct options *options)
{
    struct options with = *options;
    int device = vmpcp_open();

    if (device < 0)
        fail("/dev/vmpcp", device);
    become_task(options);
    if (!with.intra)
        with.intra = "bench";
    mutex("intra", device, &with, true);
    if (with.mutex && with.task)
        mutex("inter", device, &with, false);
    sections(device, options);
}
