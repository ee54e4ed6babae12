// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Resources that threads of one CPU share are mutexes of the C library, not of the module. This tries
 * both of its protocols: in which order three threads run. */
#include "tool.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t resource;
static sem_t middle_begins, high_begins;
/* What happened, a letter each; the threads are of one CPU. */
static char happened[16];
static unsigned events;

static void note(char event)
{
    if (events < sizeof happened - 1)
        happened[events++] = event;
}

static void must(int error, const char *what)
{
    if (error)
        fail(what, -error);
}

/* Holds the resource, and lets the higher one of the others begin first. */
static void *low(void *unused)
{
    (void)unused;
    must(pthread_mutex_lock(&resource), "pthread_mutex_lock");
    note('L');
    sem_post(&high_begins);
    sem_post(&middle_begins);
    note('l');
    must(pthread_mutex_unlock(&resource), "pthread_mutex_unlock");
    note('e');
    return NULL;
}

/* Does not use the resource. */
static void *middle(void *unused)
{
    (void)unused;
    sem_wait(&middle_begins);
    note('m');
    return NULL;
}

static void *high(void *unused)
{
    (void)unused;
    sem_wait(&high_begins);
    note('h');
    must(pthread_mutex_lock(&resource), "pthread_mutex_lock");
    note('H');
    must(pthread_mutex_unlock(&resource), "pthread_mutex_unlock");
    return NULL;
}

static pthread_t start(void *(*body)(void *), int priority)
{
    const struct sched_param parameters = { .sched_priority = priority };
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_attr_init(&attributes);
    must(pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED), "explicit scheduling");
    must(pthread_attr_setschedpolicy(&attributes, SCHED_FIFO), "SCHED_FIFO");
    must(pthread_attr_setschedparam(&attributes, &parameters), "a priority");
    must(pthread_create(&thread, &attributes, body, NULL), "pthread_create");
    pthread_attr_destroy(&attributes);
    return thread;
}

static void order_is(const struct options *options, int protocol, const char *expected)
{
    const int lowest = options->priority + 1;
    pthread_mutexattr_t attributes;
    pthread_t threads[3];

    memset(happened, 0, sizeof happened);
    events = 0;
    sem_init(&middle_begins, 0, 0);
    sem_init(&high_begins, 0, 0);
    pthread_mutexattr_init(&attributes);
    must(pthread_mutexattr_setprotocol(&attributes, protocol), "the protocol of a mutex");
    if (protocol == PTHREAD_PRIO_PROTECT)
        must(pthread_mutexattr_setprioceiling(&attributes, lowest + 2), "the ceiling of a mutex");
    must(pthread_mutex_init(&resource, &attributes), "pthread_mutex_init");
    /* The first two sleep by the time that the third begins. */
    threads[0] = start(high, lowest + 2);
    threads[1] = start(middle, lowest + 1);
    threads[2] = start(low, lowest);
    for (int at = 0; at < 3; at++)
        must(pthread_join(threads[at], NULL), "pthread_join");
    pthread_mutex_destroy(&resource);
    pthread_mutexattr_destroy(&attributes);
    if (strcmp(happened, expected)) {
        fprintf(stderr, "vmpcp: error: with a local resource threads ran in the order %s, not %s\n",
                happened, expected);
        exit(1);
    }
}

void local_resources(const struct options *options)
{
    /* Without a protocol the middle one keeps the low one from giving it back. */
    order_is(options, PTHREAD_PRIO_NONE, "LhmlHe");
    /* The low one goes before the middle one as soon as the high one waits for it; */
    order_is(options, PTHREAD_PRIO_INHERIT, "LhlHme");
    /* from the beginning, so that the high one does not begin and then wait. */
    order_is(options, PTHREAD_PRIO_PROTECT, "LlhHme");
}
