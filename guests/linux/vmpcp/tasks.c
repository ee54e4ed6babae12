// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Runs the tasks that the description declares for this VM, each as a thread of SCHED_FIFO that is
 * bound to the CPU of its vCPU.
 *
 * A task is released at multiples of its period, plus its offset, of the counter that all VMs read
 * (CNTVOFF_EL2 is 0): so tasks of several VMs keep their phases. It executes a number of turns of a
 * loop that was measured once, and not until some time is over: what preempts it does not shorten its
 * work. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tasks.h"
#include "tool.h"
#include "vmpcp_page.h"

/* Above it are the priorities of tasks that hold a mutex, see module/sections.c. */
#define HIGHEST_PRIORITY 49
/* Turns that are measured, and how often; the shortest time counts, in which nothing came in
 * between. */
#define MEASURED_TURNS 100000
#define MEASUREMENTS 40
/* Where nothing says when the first jobs are to be released, they are so much later. */
#define LEAD_NS 20000000ull
#define STACK_BYTES (256 << 10)

struct time {
    uint64_t sum, longest;
};

/* A task and its thread. Times are in ticks of the counter. */
struct running {
    const struct declared *declared;
    unsigned number;
    int priority;
    int mutex[MOST_SEGMENTS]; /* identifiers */
    uint64_t chance;
    uint64_t jobs, late;
    struct time start, response; /* from the beginning of the period */
    pthread_t thread;
};

static int device;
static const struct options *options;
static uint64_t counter_hz;
static uint64_t measured_ticks; /* that MEASURED_TURNS take */
static uint64_t begin_ns;       /* no period that counts begins earlier */
static volatile struct vmpcp_page *page; /* NULL: none */
static pthread_barrier_t ready, begun;

static uint64_t counter(void)
{
    uint64_t value;

    asm volatile("isb; mrs %0, cntvct_el0" : "=r"(value)::"memory");
    return value;
}

static uint64_t ticks_of(uint64_t ns)
{
    return (unsigned __int128)ns * counter_hz / 1000000000;
}

static uint64_t ns_of(uint64_t ticks)
{
    return (unsigned __int128)ticks * 1000000000 / counter_hz;
}

/* Two instructions a turn. */
static void execute(uint64_t turns)
{
    if (turns)
        asm volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(turns)::"cc");
}

static void measure_turns(void)
{
    measured_ticks = UINT64_MAX;
    for (int i = 0; i < MEASUREMENTS; i++) {
        uint64_t before = counter(), took;

        execute(MEASURED_TURNS);
        took = counter() - before;
        measured_ticks = took < measured_ticks ? took : measured_ticks;
    }
    if (!measured_ticks)
        fail("the counter is too slow to measure execution by it", 0);
}

static void sleep_until(uint64_t due)
{
    struct timespec at;
    uint64_t now, ns;

    while ((now = counter()) < due) {
        /* Read after the counter, so that what is slept is too long, if anything, by what came in
         * between. */
        clock_gettime(CLOCK_MONOTONIC, &at);
        ns = at.tv_nsec + ns_of(due - now);
        at.tv_sec += ns / 1000000000;
        at.tv_nsec = ns % 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    }
}

static uint64_t turns_of(const struct segment *segment)
{
    uint64_t ns = segment->wcet_ns - options->reserve_us * 1000ull;

    return (unsigned __int128)ticks_of(ns) * MEASURED_TURNS / measured_ticks;
}

/* What a task does while it holds a mutex: with --memory, its round on the page. */
static void work_inside(bool owner_died, uint64_t turns)
{
    if (page)
        vmpcp_page_begin(page, owner_died);
    execute(turns);
    if (page)
        vmpcp_page_finish(page, options->participant);
}

static void run_segment(const struct running *running, unsigned place)
{
    const struct segment *segment = &running->declared->segment[place];
    uint64_t turns = turns_of(segment);
    struct cassata_section section = { .mutex = cassata_hash(segment->mutex) };
    int answer;

    if (!*segment->mutex) {
        execute(turns);
        return;
    }
    section.asked = counter();
    answer = vmpcp_lock(device, running->mutex[place]);
    section.had = counter();
    if (answer && answer != -EOWNERDEAD)
        fail(running->declared->name, answer);
    work_inside(answer == -EOWNERDEAD, turns);
    section.gives = counter();
    answer = vmpcp_unlock(device, running->mutex[place]);
    section.gave = counter();
    if (!answer)
        answer = vmpcp_queued(device, running->mutex[place], &section.queued);
    if (answer)
        fail(running->declared->name, answer);
    cassata_task_section(record_of(running->number), &section);
}

static void count(struct time *time, uint64_t took)
{
    time->sum += took;
    time->longest = took > time->longest ? took : time->longest;
}

/* A number below `most`, by xorshift (Marsaglia 2003). */
static uint64_t chance(struct running *running, uint64_t most)
{
    running->chance ^= running->chance << 13;
    running->chance ^= running->chance >> 7;
    running->chance ^= running->chance << 17;
    return running->chance % most;
}

static void run_jobs(struct running *running)
{
    const struct declared *task = running->declared;
    struct cassata_task_writer *record = record_of(running->number);
    uint64_t periods = 0, jobs = options->jobs, arrival_ns, arrival, now;

    if (options->for_ms)
        jobs = (options->for_ms * 1000000ull + task->period_ns - 1) / task->period_ns;
    if (begin_ns > task->offset_ns)
        periods = (begin_ns - task->offset_ns + task->period_ns - 1) / task->period_ns;
    arrival_ns = task->offset_ns + periods * task->period_ns;
    while (!jobs || running->jobs < jobs) {
        arrival = ticks_of(arrival_ns);
        cassata_task_release(record, arrival);
        sleep_until(arrival + (task->jitter_ns ? chance(running, ticks_of(task->jitter_ns) + 1) : 0));
        count(&running->start, counter() - arrival);
        for (unsigned place = 0; place < task->segments; place++)
            run_segment(running, place);
        now = counter();
        cassata_task_finish(record, now, ticks_of(task->period_ns));
        count(&running->response, now - arrival);
        running->late += now - arrival > ticks_of(task->period_ns);
        running->jobs++;
        arrival_ns += task->period_ns;
    }
    /* What is done at the end delays no job of another task. */
    sleep_until(ticks_of(arrival_ns));
}

static void open_mutexes(struct running *running)
{
    const struct declared *task = running->declared;

    for (unsigned place = 0; place < task->segments; place++) {
        const char *name = task->segment[place].mutex;

        running->mutex[place] = -1;
        for (unsigned before = 0; *name && before < place; before++) {
            if (!strcmp(name, task->segment[before].mutex))
                running->mutex[place] = running->mutex[before];
        }
        if (*name && running->mutex[place] < 0)
            running->mutex[place] = vmpcp_inter_mutex(device, name, task->name);
        if (*name && running->mutex[place] < 0)
            fail(name, running->mutex[place]);
    }
}

static void *run_task(void *argument)
{
    struct running *running = argument;
    struct options own = *options;

    /* Linux numbers its CPUs as the device tree does: CPU n is vCPU n. */
    own.cpu = running->declared->vcpu;
    own.priority = running->priority;
    become_task(&own);
    open_mutexes(running);
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&begun);
    run_jobs(running);
    return NULL;
}

/* Linux would stop tasks of SCHED_FIFO now and then, for others: their vCPUs have budgets, which is
 * enough. */
static void forbid_throttling(void)
{
    static const char path[] = "/proc/sys/kernel/sched_rt_runtime_us";
    int file = open(path, O_WRONLY | O_CLOEXEC);

    if (file < 0 || write(file, "-1", 2) != 2)
        fail(path, -errno);
    close(file);
}

static void check(const struct declared *task)
{
    char line[192];

    for (unsigned place = 0; place < task->segments; place++) {
        if (task->segment[place].wcet_ns > options->reserve_us * 1000ull)
            continue;
        snprintf(line, sizeof line, "task %.63s has a segment of %llu ns: --reserve %lu leaves it none",
                 task->name, (unsigned long long)task->segment[place].wcet_ns, options->reserve_us);
        fail(line, 0);
    }
}

/* By their declared priorities, tasks of one CPU have those of SCHED_FIFO from 1 on. */
static int priority_of(const struct declared *task, const struct declared *all, unsigned count)
{
    int priority = 1;

    for (unsigned other = 0; other < count; other++)
        priority += all[other].vcpu == task->vcpu && all[other].priority < task->priority;
    if (priority > HIGHEST_PRIORITY)
        fail("a vCPU has too many tasks", 0);
    return priority;
}

static void launch(struct running *running)
{
    pthread_attr_t attributes;
    int error;

    pthread_attr_init(&attributes);
    /* All of it is locked in memory. */
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    error = pthread_create(&running->thread, &attributes, run_task, running);
    if (error)
        fail(running->declared->name, -error);
    pthread_attr_destroy(&attributes);
}

static void say(const struct running *running)
{
    uint64_t jobs = running->jobs ? running->jobs : 1;

    printf("cassata: vmpcp ran=%s jobs=%llu late=%llu response_mean_ns=%llu response_max_ns=%llu "
           "start_mean_ns=%llu start_max_ns=%llu\n",
           running->declared->name, (unsigned long long)running->jobs,
           (unsigned long long)running->late,
           (unsigned long long)ns_of(running->response.sum / jobs),
           (unsigned long long)ns_of(running->response.longest),
           (unsigned long long)ns_of(running->start.sum / jobs),
           (unsigned long long)ns_of(running->start.longest));
}

/* All are ready: sets when they begin. */
static void set_begin(void)
{
    uint64_t now = ns_of(counter()), asked = options->begin_ms * 1000000ull;
    char line[128];

    begin_ns = asked ? asked : now + LEAD_NS;
    if (begin_ns <= now) {
        snprintf(line, sizeof line, "ready at %llu ms of the counter, later than --begin %lu",
                 (unsigned long long)(now / 1000000), options->begin_ms);
        fail(line, 0);
    }
    printf("cassata: vmpcp tasks ready_ms=%llu begin_ms=%llu\n",
           (unsigned long long)(now / 1000000), (unsigned long long)(begin_ns / 1000000));
}

void run_tasks(const struct options *asked)
{
    static struct declared tasks[MOST_TASKS];
    static struct running running[MOST_TASKS];
    unsigned number = declared_read(tasks);

    options = asked;
    device = vmpcp_open();
    if (device < 0)
        fail("/dev/vmpcp", device);
    asm("mrs %0, cntfrq_el0" : "=r"(counter_hz));
    forbid_throttling();
    if (mlockall(MCL_CURRENT | MCL_FUTURE))
        fail("mlockall", -errno);
    measure_turns();
    record_open(device, tasks, number, counter_hz);
    if (options->memory)
        page = map_page(device, options->memory, true);
    pthread_barrier_init(&ready, NULL, number + 1);
    pthread_barrier_init(&begun, NULL, number + 1);
    for (unsigned task = 0; task < number; task++) {
        check(&tasks[task]);
        running[task].declared = &tasks[task];
        running[task].number = task;
        running[task].priority = priority_of(&tasks[task], tasks, number);
        running[task].chance = counter() ^ (0x9e3779b97f4a7c15ull * (task + 1));
        launch(&running[task]);
    }
    pthread_barrier_wait(&ready);
    set_begin();
    pthread_barrier_wait(&begun);
    for (unsigned task = 0; task < number; task++)
        pthread_join(running[task].thread, NULL);
    for (unsigned task = 0; task < number; task++)
        say(&running[task]);
    if (page)
        say_page(options->memory, page);
}
