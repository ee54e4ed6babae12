// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* What /dev/vmpcp must refuse, and what it does when a process dies with a mutex. */
#include "tool.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmpcp_page.h"

#define EXPECT(call, answer) expect(call, answer, #call)

static void expect(int is, int should, const char *what)
{
    if (is == should)
        return;
    fprintf(stderr, "vmpcp: error: %s answers %d (%s), not %d\n", what, is,
            is < 0 ? strerror(-is) : "", should);
    exit(1);
}

static int open_device(void)
{
    int device = vmpcp_open();

    if (device < 0)
        fail("/dev/vmpcp", device);
    return device;
}

static int priority(void)
{
    struct sched_param parameters;

    sched_getparam(0, &parameters);
    return parameters.sched_priority;
}

static void misuse(const struct options *options, int device, int id)
{
    int other = vmpcp_intra_mutex(device, "other", VMPCP_VCPU_FIRST), own = options->priority;
    uint64_t since = UINT64_MAX;

    EXPECT(vmpcp_inter_mutex(device, "no such", "task"), -ENOENT);
    EXPECT(vmpcp_inter_mutex(device, "", ""), -EINVAL);
    EXPECT(vmpcp_intra_mutex(device, "other", VMPCP_TASK_FIRST), -EINVAL);
    EXPECT(vmpcp_unlock(device, id), -EPERM);
    EXPECT(vmpcp_lock(device, VMPCP_MOST_MUTEXES), -EINVAL);
    EXPECT(vmpcp_lock(device, VMPCP_MOST_MUTEXES - 1), -EINVAL);
    EXPECT(vmpcp_lock(device, id), 0);
    EXPECT(vmpcp_queued(device, other, &since), -EINVAL);
    EXPECT(vmpcp_queued(device, VMPCP_MOST_MUTEXES, &since), -EINVAL);
    EXPECT(vmpcp_queued(device, id, &since), options->intra ? -EINVAL : 0);
    if (!options->intra && since == UINT64_MAX)
        fail("vmpcp_queued answers nothing", 0);
    EXPECT(priority(), 50 + own);
    EXPECT(vmpcp_lock(device, id), -EDEADLK);
    EXPECT(vmpcp_trylock(device, id), -EDEADLK);
    EXPECT(vmpcp_lock(device, other), -EDEADLK);
    EXPECT(vmpcp_close(device, id), -EBUSY);
    EXPECT(vmpcp_unlock(device, other), -EPERM);
    EXPECT(vmpcp_unlock(device, id), 0);
    EXPECT(priority(), own);
    EXPECT(vmpcp_trylock(device, id), 0);
    EXPECT(vmpcp_unlock(device, id), 0);
    EXPECT(vmpcp_close(device, other), 0);
    EXPECT(vmpcp_lock(device, other), -EINVAL);
    EXPECT(vmpcp_finish_gcs(device, 0), -EPERM);
    EXPECT(vmpcp_start_gcs(device, 1000), -EINVAL);
    if (options->mutex) {
        int second = open_device();

        EXPECT(vmpcp_inter_mutex(second, options->mutex, options->task), -EBUSY);
        close(second);
    }
}

/* Starts a process that opens the device anew and takes the mutex; it then waits to be killed,
 * unless it `ends`. */
static pid_t start(const struct options *options, bool ends)
{
    int told[2];
    char byte;
    pid_t child;

    if (pipe(told))
        fail("pipe", -errno);
    fflush(stdout);
    child = fork();
    if (child == 0) {
        int device = open_device(), id = open_mutex(device, options);

        if (write(told[1], "l", 1) != 1)
            _exit(1);
        int answer = vmpcp_lock(device, id);
        if (write(told[1], "h", 1) != 1 || (answer && answer != -EOWNERDEAD))
            _exit(1);
        while (!ends)
            pause();
        _exit(0);
    }
    /* It is about to lock, and then it holds. */
    close(told[1]);
    if (read(told[0], &byte, 1) != 1 || read(told[0], &byte, 1) != 1)
        fail("a process does not get the mutex", 0);
    close(told[0]);
    return child;
}

static void end(pid_t child, bool kills)
{
    if (kills)
        kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* How often tasks of other VMs were told that a holder had died: they count it in the page. */
static uint64_t told_elsewhere(const struct options *options)
{
    static const volatile struct vmpcp_page *page;
    bool read_only;
    size_t bytes;

    if (options->intra || !options->memory)
        return 0;
    /* A file of its own: one that is mapped stays open, and with it what is locked by it. */
    if (!page)
        page = vmpcp_map(open_device(), options->memory, &bytes, &read_only);
    if (!page)
        fail(options->memory, -errno);
    return page->owner_died;
}

/* A task has died with a mutex, and this one locks it: either this one is told, or a task of another
 * VM was that had it in between. `before`: what other VMs were told before that. */
static void lock_after_death(const struct options *options, int device, int id, uint64_t before)
{
    /* Another VM may have a mutex at times, so it is waited for. One of this VM is free now, and if it
     * is not, waiting would be for ever. */
    int answer = options->intra ? vmpcp_trylock(device, id) : vmpcp_lock(device, id);

    if (options->intra)
        expect(answer, -EOWNERDEAD, "a mutex whose holder died");
    else if (answer != -EOWNERDEAD)
        expect(answer, 0, "a mutex whose holder died");
    /* Without the page nothing says what happened elsewhere. */
    if (!options->intra && options->memory)
        expect((answer == -EOWNERDEAD) + (int)(told_elsewhere(options) - before), 1,
               "how often one is told of a death");
}

/* Processes that are killed, and that end, while they hold it: the next one is told, once. */
static void deaths(const struct options *options)
{
    int device, id;
    uint64_t before;

    for (int kills = 0; kills < 2; kills++) {
        before = told_elsewhere(options);
        end(start(options, !kills), kills);
        device = open_device();
        id = open_mutex(device, options);
        lock_after_death(options, device, id, before);
        EXPECT(vmpcp_unlock(device, id), 0);
        EXPECT(vmpcp_lock(device, id), 0);
        EXPECT(vmpcp_unlock(device, id), 0);
        close(device);
    }
}

/* A process that shares this one's open files dies after this one has its own: what this one holds
 * stays held. */
static void unshared(const struct options *options)
{
    int device = open_device(), id = open_mutex(device, options);
    pid_t child;

    EXPECT(vmpcp_lock(device, id), 0);
    child = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
    while (child == 0)
        pause();
    if (child < 0 || unshare(CLONE_FILES))
        fail("clone, unshare", -errno);
    /* It was started within a section, but has none. */
    EXPECT(sched_getscheduler(child), SCHED_OTHER);
    end(child, true);
    EXPECT(vmpcp_unlock(device, id), 0);
    close(device);
}

/* A mutex of this VM is locked by one open file, which is closed; another one stays. */
static void closed(const struct options *options)
{
    int first = open_device(), second = open_device();
    int of_first = open_mutex(first, options), id = open_mutex(second, options);

    EXPECT(vmpcp_lock(first, of_first), 0);
    close(first);
    EXPECT(priority(), options->priority);
    EXPECT(vmpcp_unlock(second, id), -EPERM);
    EXPECT(vmpcp_lock(second, id), -EOWNERDEAD);
    EXPECT(vmpcp_unlock(second, id), 0);
    close(second);
}

/* A process shares an open file with this one, and ends when it has closed it, or runs another
 * program, within a section. */
static void left_behind(const struct options *options)
{
    int device = open_device(), id = open_mutex(device, options);

    for (int runs = 0; runs < 2; runs++) {
        uint64_t before = told_elsewhere(options);
        pid_t child = fork();

        if (child == 0) {
            become_task(options);
            EXPECT(vmpcp_lock(device, id), 0);
            if (runs)
                execl("/bin/true", "true", NULL);
            else
                close(device);
            EXPECT(priority(), options->priority);
            _exit(0);
        }
        end(child, false);
        lock_after_death(options, device, id, before);
        EXPECT(vmpcp_unlock(device, id), 0);
    }
    close(device);
}

/* Mutexes that are left behind stay until a task is told of it, so there are not more and more. */
static void many(void)
{
    char name[VMPCP_NAME_BYTES];
    int count, device, id, answer = 0;

    for (count = 0; !answer; count++) {
        device = open_device();
        snprintf(name, sizeof name, "left %d", count);
        id = vmpcp_intra_mutex(device, name, VMPCP_VCPU_FIRST);
        answer = id < 0 ? id : vmpcp_lock(device, id);
        close(device);
    }
    expect(answer, -ENOSPC, "one mutex more");
    while (--count > 0) {
        device = open_device();
        snprintf(name, sizeof name, "left %d", count - 1);
        id = vmpcp_intra_mutex(device, name, VMPCP_VCPU_FIRST);
        EXPECT(vmpcp_lock(device, id), -EOWNERDEAD);
        EXPECT(vmpcp_unlock(device, id), 0);
        close(device);
    }
    device = open_device();
    EXPECT(vmpcp_intra_mutex(device, "one more", VMPCP_VCPU_FIRST), 0);
    close(device);
}

/* A process that comes to a mutex. */
struct visitor {
    int priority; /* of SCHED_FIFO, 1 to 9 */
    int cpu;
};

/* Starts a process that locks the mutex, says its priority to `told`, unlocks it and ends. */
static pid_t visit(const struct options *options, struct visitor visitor, int told)
{
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        struct options own = *options;
        char name = '0' + visitor.priority;
        int device = open_device(), id;

        own.cpu = visitor.cpu;
        own.priority = visitor.priority;
        become_task(&own);
        id = open_mutex(device, &own);
        EXPECT(vmpcp_lock(device, id), 0);
        if (write(told, &name, 1) != 1)
            _exit(1);
        EXPECT(vmpcp_unlock(device, id), 0);
        _exit(0);
    }
    return child;
}

/* Long enough for a process of this CPU to begin to wait. */
static void let_wait(void)
{
    usleep(20000);
}

/* Processes wait for a mutex that this one holds by `device` and `id`. The one that is killed is
 * forgotten; the others have it in the expected order, and not in the one in which they came. */
static void queue(const struct options *options, int device, int id,
                  const struct visitor *visitors, const char *expected)
{
    int told[2], count = strlen(expected);
    char order[10] = { 0 };
    pid_t killed;

    if (pipe(told))
        fail("pipe", -errno);
    EXPECT(vmpcp_lock(device, id), 0);
    killed = visit(options, (struct visitor){ 9, options->cpu }, told[1]);
    let_wait();
    end(killed, true);
    for (int at = 0; at < count; at++)
        visit(options, visitors[at], told[1]);
    let_wait();
    EXPECT(vmpcp_unlock(device, id), 0);
    for (int at = 0; at < count; at++)
        end(-1, false);
    for (int at = 0; at < count; at++) {
        if (read(told[0], &order[at], 1) != 1)
            fail("a process that waits does not get the mutex", 0);
    }
    if (strcmp(order, expected)) {
        fprintf(stderr, "vmpcp: error: they had it in the order %s, not %s\n", order, expected);
        exit(1);
    }
    /* None holds it or waits for it. */
    EXPECT(vmpcp_lock(device, id), 0);
    EXPECT(vmpcp_unlock(device, id), 0);
}

/* Mutexes of this VM in both orders: the highest task is on the last CPU. */
static void queue_within(struct options options, int device)
{
    int last = sysconf(_SC_NPROCESSORS_ONLN) - 1;
    const struct visitor visitors[] = { { 3, 0 }, { 5, last }, { 4, 0 } };

    options.intra = "test by vCPU";
    options.order = VMPCP_VCPU_FIRST;
    queue(&options, device, open_mutex(device, &options), visitors, last ? "435" : "543");
    options.intra = "test by task";
    options.order = VMPCP_TASK_FIRST;
    queue(&options, device, open_mutex(device, &options), visitors, "543");
}

static void waiting(const struct options *options)
{
    const struct visitor visitor = { 3, options->cpu };
    int device = open_device(), id;

    if (options->intra) {
        queue_within(*options, device);
    } else if (options->other) {
        id = vmpcp_inter_mutex(device, options->mutex, options->other);
        if (id < 0)
            fail(options->other, id);
        /* Nothing waits behind the process that is killed; then the next one takes its place. */
        queue(options, device, id, NULL, "");
        queue(options, device, id, &visitor, "3");
    }
    close(device);
}

/* What EL2 counts of a vCPU, docs/src/design/status.md. */
enum { RAISED = 23, MISUSES = 25 };

static uint64_t counted(int device, int vcpu, unsigned word)
{
    uint64_t value = 0;

    EXPECT(vmpcp_counter(device, vcpu, word, &value), 0);
    return value;
}

/* Begins and ends a section of the vCPU of this CPU. EL2 counts it, and it answers 1, only if it raises
 * the vCPU: not if an earlier one of the vCPU's own is not finished. */
static int raises(const struct options *options, int device)
{
    uint64_t before = counted(device, options->cpu, RAISED);

    EXPECT(vmpcp_start_gcs(device, options->cpu), 0);
    EXPECT(vmpcp_finish_gcs(device, options->cpu), 0);
    return counted(device, options->cpu, RAISED) - before;
}

/* Tasks change their CPU: the vCPU that was raised is lowered, and no other one. */
static void moved(const struct options *options)
{
    int device = open_device(), second = open_device(), id;
    struct options there = *options;
    cpu_set_t set;
    pid_t child;

    there.cpu = options->cpu ? 0 : 1;
    /* The program ends a section elsewhere, by a call and by closing the file. */
    EXPECT(vmpcp_start_gcs(device, options->cpu), 0);
    EXPECT(vmpcp_start_gcs(second, options->cpu), 0);
    become_task(&there);
    EXPECT(vmpcp_finish_gcs(device, options->cpu), 0);
    close(second);
    become_task(options);
    EXPECT(raises(options, device), 1);

    /* A task waits, and is bound to another CPU meanwhile. */
    id = vmpcp_intra_mutex(device, "moved", VMPCP_VCPU_FIRST);
    EXPECT(vmpcp_lock(device, id), 0);
    child = fork();
    if (child == 0) {
        become_task(options);
        EXPECT(vmpcp_lock(device, id), 0);
        EXPECT(vmpcp_unlock(device, id), 0);
        _exit(0);
    }
    let_wait();
    CPU_ZERO(&set);
    CPU_SET(there.cpu, &set);
    if (sched_setaffinity(child, sizeof set, &set))
        fail("sched_setaffinity", -errno);
    EXPECT(vmpcp_unlock(device, id), 0);
    end(child, false);
    EXPECT(raises(options, device), 1);
    close(device);
}

/* A process waits for a mutex and then holds it. It ends with 0 if its vCPU is raised by its own CPU
 * meanwhile. */
static pid_t wait_and_look(const struct options *options)
{
    pid_t child = fork();

    if (child == 0) {
        int device = open_device(), id, is_raised;

        become_task(options);
        id = vmpcp_intra_mutex(device, "refused", VMPCP_VCPU_FIRST);
        EXPECT(vmpcp_lock(device, id), 0);
        is_raised = raises(options, device) == 0;
        EXPECT(vmpcp_unlock(device, id), 0);
        EXPECT(raises(options, device), 1);
        _exit(!is_raised);
    }
    let_wait();
    return child;
}

/* EL2 raises a vCPU so often in a period for tasks of other CPUs, and then refuses it to one that passes a
 * mutex on: the next holder raises its vCPU itself. */
static void refused(const struct options *options)
{
    struct options there = *options;
    int device = open_device(), id, status;
    bool was_refused = false;

    there.cpu = options->cpu ? 0 : 1;
    become_task(&there);
    id = vmpcp_intra_mutex(device, "refused", VMPCP_VCPU_FIRST);
    /* Another period may begin in between. */
    for (int tries = 0; !was_refused && tries < 20; tries++) {
        uint64_t before = counted(device, options->cpu, RAISED);
        pid_t child;

        EXPECT(vmpcp_lock(device, id), 0);
        child = wait_and_look(options);
        /* It was raised to have the lock of the queue. */
        EXPECT((int)(counted(device, options->cpu, RAISED) - before), 1);
        while (vmpcp_start_gcs(device, options->cpu) == 0)
            EXPECT(vmpcp_finish_gcs(device, options->cpu), 0);
        before = counted(device, there.cpu, MISUSES);
        EXPECT(vmpcp_unlock(device, id), 0);
        was_refused = counted(device, there.cpu, MISUSES) > before;
        waitpid(child, &status, 0);
        if (was_refused)
            expect(status, 0, "a process whose vCPU was raised too often");
    }
    if (!was_refused)
        fail("EL2 raises a vCPU for other CPUs without limit", 0);
    close(device);
    become_task(options);
}

static void set_online(int cpu, bool online)
{
    char path[64];
    FILE *file;

    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/online", cpu);
    file = fopen(path, "w");
    if (!file || fputs(online ? "1" : "0", file) < 0 || fclose(file))
        fail(path, -errno);
}

/* The CPU is switched off under a task that holds a mutex: EL2 takes it back, and the task can open
 * it again when the CPU is on. */
static void switched_off(const struct options *options)
{
    int device = open_device(), id = open_mutex(device, options), answer;

    EXPECT(vmpcp_lock(device, id), 0);
    set_online(options->cpu, false);
    EXPECT(vmpcp_close(device, id), -EBUSY);
    set_online(options->cpu, true);
    EXPECT(vmpcp_close(device, id), -EBUSY);
    EXPECT(vmpcp_unlock(device, id), -ESTALE);
    become_task(options);
    EXPECT(vmpcp_lock(device, id), -ESTALE);
    EXPECT(vmpcp_close(device, id), 0);
    id = open_mutex(device, options);
    /* A task of another VM may have been told meanwhile. */
    answer = vmpcp_lock(device, id);
    if (answer != -EOWNERDEAD)
        expect(answer, 0, "a mutex whose CPU was switched off");
    EXPECT(vmpcp_unlock(device, id), 0);
    close(device);
}

void self_test(const struct options *options)
{
    int device = open_device(), id;

    /* On one CPU alone every thread is bound to it. */
    if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
        EXPECT(vmpcp_inter_mutex(device, "any", "any"), -EINVAL);
    become_task(options);
    id = open_mutex(device, options);
    misuse(options, device, id);
    EXPECT(vmpcp_close(device, id), 0);
    close(device);
    deaths(options);
    unshared(options);
    left_behind(options);
    if (options->intra) {
        closed(options);
        many();
    }
    waiting(options);
    local_resources(options);
    if (options->mutex && sysconf(_SC_NPROCESSORS_ONLN) > 1) {
        moved(options);
        refused(options);
        switched_off(options);
    }
    if (!options->intra && !options->memory)
        puts("cassata: vmpcp test: how often one is told of a death is not checked without --memory");
    printf("cassata: vmpcp test=%s passed\n", options->intra ? options->intra : options->task);
}
