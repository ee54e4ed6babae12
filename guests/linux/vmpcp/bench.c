// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* How long each call takes a program, as in Table II of RTSS 2014: alone on its CPU, without
 * contention. */
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TIMES 10000

struct time {
    uint64_t sum, longest;
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

    printf("cassata: vmpcp bench mutex=%s call=%s times=%d mean_ns=%.0f max_ns=%.0f\n", kind, call,
           TIMES, time.sum * ns / TIMES, time.longest * ns);
}

/* Times one call, which answers what is kept in `answer`. */
#define TIMED(time, answer, call)                                               \
    do {                                                                        \
        uint64_t begin = ticks(), took;                                         \
        (answer) = (call);                                                      \
        took = ticks() - begin;                                                 \
        (time).sum += took;                                                     \
        (time).longest = took > (time).longest ? took : (time).longest;         \
        if ((answer) < 0)                                                       \
            fail(#call, answer);                                                \
    } while (0)

static int open_once(int device, const struct options *options, bool intra)
{
    return intra ? vmpcp_intra_mutex(device, options->intra, options->order)
                 : vmpcp_inter_mutex(device, options->mutex, options->task);
}

static void mutex(const char *kind, int device, const struct options *options, bool intra)
{
    struct time open = {}, open_again = {}, close_one = {}, lock = {}, try = {}, unlock = {};
    int id, again, answer;

    for (int time = 0; time < TIMES; time++) {
        TIMED(open, id, open_once(device, options, intra));
        if (intra) {
            TIMED(open_again, again, open_once(device, options, intra));
            vmpcp_close(device, again);
        }
        TIMED(close_one, answer, vmpcp_close(device, id));
    }
    id = open_once(device, options, intra);
    for (int time = 0; time < TIMES; time++) {
        TIMED(lock, answer, vmpcp_lock(device, id));
        TIMED(unlock, answer, vmpcp_unlock(device, id));
        TIMED(try, answer, vmpcp_trylock(device, id));
        vmpcp_unlock(device, id);
    }
    say(kind, "open", open);
    if (intra)
        say(kind, "open-existing", open_again);
    say(kind, "destroy", close_one);
    say(kind, "lock", lock);
    say(kind, "trylock", try);
    say(kind, "unlock", unlock);
}

static void sections(int device, unsigned vcpu)
{
    struct time start = {}, finish = {};
    int answer;

    for (int time = 0; time < TIMES; time++) {
        TIMED(start, answer, vmpcp_start_gcs(device, vcpu));
        TIMED(finish, answer, vmpcp_finish_gcs(device, vcpu));
    }
    say("none", "start-gcs", start);
    say("none", "finish-gcs", finish);
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
    sections(device, options->cpu);
}
