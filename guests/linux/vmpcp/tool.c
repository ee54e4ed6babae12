// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* vmpcp: shows and tries what /dev/vmpcp offers. Lines that begin with `cassata: ` are for programs
 * to read. */
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "usage: vmpcp status                    what is there, and what EL2 has counted\n"
    "       vmpcp run MUTEX [OPTION...]     rounds under a mutex\n"
    "       vmpcp hold MUTEX [OPTION...]    locks it, says so, and sleeps until it is killed\n"
    "       vmpcp page --memory NAME        what the shared page says\n"
    "       vmpcp test MUTEX [OPTION...]    tries what must be refused, and tasks that die\n"
    "       vmpcp bench [MUTEX] [OPTION...] times each call, --rounds times\n"
    "       vmpcp tasks [OPTION...]         runs the tasks that the description declares for this VM\n"
    "MUTEX: --mutex NAME --task TASK        one that VMs share, for a declared task\n"
    "       --intra NAME [--order vcpu|task]   one of this VM\n"
    "OPTION: --cpu N          the CPU of the task (0)\n"
    "        --priority N     of SCHED_FIFO, 1 to 49; 0: SCHED_OTHER (10)\n"
    "        --other TASK     another task of that CPU, for `test` and `bench`\n"
    "        --memory NAME    each round checks and changes the page in this shared memory\n"
    "        --participant N  which word of the page counts the rounds (0)\n"
    "        --rounds N       how many (100)\n"
    "        --inside US      time within the section, microseconds (50)\n"
    "        --pause US       time between rounds, microseconds (1000)\n"
    "        --begin MS       no task is released before this time of the counter, milliseconds;\n"
    "                         later is an error (0: as soon as all are ready)\n"
    "        --reserve US     a task executes so much less than each of its segments declares, and\n"
    "                         leaves it to Linux, microseconds (100)\n"
    "        --jobs N         jobs of each task, then it tells what was measured (0: no end)\n"
    "        --for MS         instead, jobs of each task for so long, milliseconds\n";

void fail(const char *what, int error)
{
    if (error)
        fprintf(stderr, "vmpcp: error: %s: %s\n", what, strerror(-error));
    else
        fprintf(stderr, "vmpcp: error: %s\n", what);
    exit(1);
}

uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

void work_us(unsigned long us)
{
    uint64_t end = now_ns() + us * 1000ull;

    while (now_ns() < end)
        ;
}

void become_task(const struct options *options)
{
    struct sched_param parameters = { .sched_priority = options->priority };
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(options->cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set))
        fail("--cpu", -errno);
    if (options->priority && sched_setscheduler(0, SCHED_FIFO, &parameters))
        fail("--priority", -errno);
}

int open_mutex(int device, const struct options *options)
{
    int id;

    if (options->intra)
        id = vmpcp_intra_mutex(device, options->intra, options->order);
    else if (options->mutex && options->task)
        id = vmpcp_inter_mutex(device, options->mutex, options->task);
    else
        fail("which mutex? --mutex NAME --task TASK, or --intra NAME", 0);
    if (id < 0)
        fail("the mutex cannot be opened", id);
    return id;
}

static int open_device(void)
{
    int device = vmpcp_open();

    if (device < 0)
        fail("/dev/vmpcp", device);
    return device;
}

volatile struct vmpcp_page *map_page(int device, const char *name, bool must_write)
{
    size_t bytes;
    bool read_only;
    void *page = vmpcp_map(device, name, &bytes, &read_only);

    if (!page)
        fail(name, -errno);
    if (must_write && read_only)
        fail(name, -EACCES);
    return page;
}

void say_page(const char *name, const volatile struct vmpcp_page *page)
{
    printf("cassata: vmpcp page=%s rounds=%llu,%llu,%llu,%llu violations=%llu owner_died=%llu\n",
           name, (unsigned long long)page->rounds_by[0], (unsigned long long)page->rounds_by[1],
           (unsigned long long)page->rounds_by[2], (unsigned long long)page->rounds_by[3],
           (unsigned long long)page->violations, (unsigned long long)page->owner_died);
}

static void status(void)
{
    /* docs/src/design/status.md */
    static const struct {
        const char *name;
        unsigned word;
    } words[] = {
        { "raised", 23 },
        { "lowered", 24 },
        { "throttled", 19 },
        { "overrun_stops", 22 },
        { "misuses", 25 },
    };
    struct vmpcp_info info;
    uint64_t value;
    int device = open_device(), error = vmpcp_info(device, &info);

    if (error)
        fail("/dev/vmpcp", error);
    printf("cassata: vmpcp service=%u.%u interrupt=%u\n", info.major, info.minor, info.interrupt);
    for (unsigned vcpu = 0; !vmpcp_counter(device, vcpu, 0, &value); vcpu++) {
        printf("cassata: vmpcp vcpu=%u", vcpu);
        for (unsigned at = 0; at < sizeof words / sizeof *words; at++) {
            vmpcp_counter(device, vcpu, words[at].word, &value);
            printf(" %s=%llu", words[at].name, (unsigned long long)value);
        }
        printf("\n");
    }
}

static void run(const struct options *options)
{
    volatile struct vmpcp_page *page = NULL;
    uint64_t longest_ns = 0, sum_ns = 0, before;
    unsigned long died = 0, unsound = 0;
    int device = open_device(), id, answer;

    become_task(options);
    id = open_mutex(device, options);
    if (options->memory)
        page = map_page(device, options->memory, true);
    for (unsigned long round = 0; round < options->rounds; round++) {
        before = now_ns();
        answer = vmpcp_lock(device, id);
        before = now_ns() - before;
        sum_ns += before;
        longest_ns = before > longest_ns ? before : longest_ns;
        if (answer && answer != -EOWNERDEAD)
            fail("lock", answer);
        died += answer == -EOWNERDEAD;
        if (page)
            unsound += !vmpcp_page_begin(page, answer == -EOWNERDEAD);
        work_us(options->inside_us);
        if (page)
            unsound += !vmpcp_page_finish(page, options->participant);
        answer = vmpcp_unlock(device, id);
        if (answer)
            fail("unlock", answer);
        usleep(options->pause_us);
    }
    printf("cassata: vmpcp task=%s rounds=%lu violations=%lu owner_died=%lu lock_ns mean=%llu "
           "max=%llu\n",
           options->task ? options->task : options->intra, options->rounds, unsound, died,
           (unsigned long long)(options->rounds ? sum_ns / options->rounds : 0),
           (unsigned long long)longest_ns);
    if (page)
        say_page(options->memory, page);
}

static void hold(const struct options *options)
{
    int device = open_device(), answer;

    become_task(options);
    answer = vmpcp_lock(device, open_mutex(device, options));
    if (answer && answer != -EOWNERDEAD)
        fail("lock", answer);
    printf("cassata: vmpcp holds owner_died=%d\n", answer == -EOWNERDEAD);
    fflush(stdout);
    for (;;)
        pause();
}

/* A number from 0 to `most`. */
static unsigned long number(const char *text, const char *option, unsigned long most)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (end == text || *end || *text == '-' || value > most) {
        fprintf(stderr, "vmpcp: error: --%s %s: expected a number from 0 to %lu\n", option, text,
                most);
        exit(1);
    }
    return value;
}

static void parse(struct options *options, int count, char **words)
{
    static const struct option known[] = {
        { "begin", 1, 0, 'b' },    { "reserve", 1, 0, 'R' },     { "jobs", 1, 0, 'j' },
        { "mutex", 1, 0, 'm' },    { "task", 1, 0, 't' },        { "intra", 1, 0, 'i' },
        { "other", 1, 0, 'O' },    { "for", 1, 0, 'f' },
        { "order", 1, 0, 'o' },    { "cpu", 1, 0, 'c' },         { "priority", 1, 0, 'p' },
        { "memory", 1, 0, 'M' },   { "participant", 1, 0, 'P' }, { "rounds", 1, 0, 'r' },
        { "inside", 1, 0, 'I' },   { "pause", 1, 0, 'a' },       { 0 },
    };
    int option, at;

    while ((option = getopt_long(count, words, "", known, &at)) != -1) {
        const char *name = option == '?' ? "" : known[at].name;

        switch (option) {
        case 'm': options->mutex = optarg; break;
        case 't': options->task = optarg; break;
        case 'O': options->other = optarg; break;
        case 'i': options->intra = optarg; break;
        case 'o':
            if (strcmp(optarg, "vcpu") && strcmp(optarg, "task"))
                fail("--order: expected vcpu or task", 0);
            options->order = *optarg == 'v' ? VMPCP_VCPU_FIRST : VMPCP_TASK_FIRST;
            break;
        case 'c': options->cpu = number(optarg, name, CPU_SETSIZE - 1); break;
        case 'p': options->priority = number(optarg, name, 49); break;
        case 'M': options->memory = optarg; break;
        case 'P': options->participant = number(optarg, name, VMPCP_PAGE_PARTICIPANTS - 1); break;
        case 'r': options->rounds = number(optarg, name, 1000000000); break;
        case 'I': options->inside_us = number(optarg, name, 1000000); break;
        case 'b': options->begin_ms = number(optarg, name, 1000000000); break;
        case 'R': options->reserve_us = number(optarg, name, 1000000); break;
        case 'j': options->jobs = number(optarg, name, 1000000000); break;
        case 'f': options->for_ms = number(optarg, name, 1000000000); break;
        case 'a': options->pause_us = number(optarg, name, 999999); break;
        default: fputs(usage, stderr); exit(1);
        }
    }
    if (optind != count) {
        fprintf(stderr, "vmpcp: error: what is `%s`?\n", words[optind]);
        exit(1);
    }
}

int main(int count, char **words)
{
    struct options options = {
        .priority = 10,
        .rounds = 100,
        .inside_us = 50,
        .pause_us = 1000,
        .reserve_us = 100,
    };
    const char *command = count > 1 ? words[1] : "";

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count > 1)
        parse(&options, count - 1, words + 1);
    if (!strcmp(command, "status")) {
        status();
    } else if (!strcmp(command, "run")) {
        run(&options);
    } else if (!strcmp(command, "hold")) {
        hold(&options);
    } else if (!strcmp(command, "page") && options.memory) {
        say_page(options.memory, map_page(open_device(), options.memory, false));
    } else if (!strcmp(command, "test")) {
        self_test(&options);
    } else if (!strcmp(command, "bench")) {
        measure(&options);
    } else if (!strcmp(command, "tasks")) {
        run_tasks(&options);
    } else {
        fputs(usage, stderr);
        return 1;
    }
    return 0;
}
