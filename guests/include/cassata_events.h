/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* A guest's own events in its report area: crates/abi/src/report/events.rs in C, with what it
 * takes to write them. Each vCPU writes its own ring, with its interrupts masked:
 *
 *     struct cassata_event *event = cassata_events_next(&writers[vcpu]);
 *     ... fill it ...
 *     cassata_events_publish(&writers[vcpu]);
 *
 * Nothing is read from the area: programs of the guest may have mapped it, and may write there what
 * they like.
 */
#ifndef CASSATA_EVENTS_H
#define CASSATA_EVENTS_H

#ifdef __KERNEL__
#include <linux/stddef.h>
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#endif

#define CASSATA_EVENTS_MAGIC 0x01544e5645534143ull /* "CASEVNT\x01" */
#define CASSATA_EVENT_SWITCH 0  /* the task has the vCPU from now on */
#define CASSATA_EVENT_MARK 1    /* the task has marked this moment */
#define CASSATA_EVENT_TEXT 48

struct cassata_events {
    uint64_t magic;             /* CASSATA_EVENTS_MAGIC, written last */
    uint64_t counter_hz;        /* frequency of the counter */
    uint64_t begun;             /* counter when this was initialised */
    uint64_t rings;             /* one for each vCPU */
    uint64_t capacity;          /* events in each ring */
    uint64_t reserved[3];
};

struct cassata_ring {
    uint64_t written;           /* events written; the next goes to written % capacity */
    uint64_t reserved[7];
};

struct cassata_event {
    uint64_t time;              /* by the counter */
    uint8_t kind;
    uint8_t length;             /* of the text; a zero in it ends it earlier */
    uint16_t reserved;
    uint32_t task;              /* by any number of the guest's */
    char text[CASSATA_EVENT_TEXT];
};

/* What writes one ring, in the guest's own memory. Two vCPUs should share no cache line here either. */
struct cassata_writer {
    struct cassata_ring *ring;
    struct cassata_event *events;
    uint64_t capacity;          /* not 0 */
    uint64_t written;
    uint64_t unused[4];
};

_Static_assert(sizeof(struct cassata_events) == 64, "header is eight words");
_Static_assert(offsetof(struct cassata_events, begun) == 16, "begun");
_Static_assert(offsetof(struct cassata_events, capacity) == 32, "capacity");
_Static_assert(sizeof(struct cassata_ring) == 64, "ring is eight words");
_Static_assert(sizeof(struct cassata_event) == 64, "event is eight words");
_Static_assert(offsetof(struct cassata_event, kind) == 8, "kind");
_Static_assert(offsetof(struct cassata_event, length) == 9, "length");
_Static_assert(offsetof(struct cassata_event, task) == 12, "task");
_Static_assert(offsetof(struct cassata_event, text) == 16, "text");

/* Where the events begin in a report area of `size` bytes. */
static inline uint64_t cassata_events_offset(uint64_t size)
{
    return size / 2 / sizeof(struct cassata_events) * sizeof(struct cassata_events);
}

/* Initialises the events in a report area of `size` bytes, and the writers of so many rings; false if
 * it is too small. */
static inline bool cassata_events_open(struct cassata_writer *writers, uint64_t rings, void *area,
                                       uint64_t size, uint64_t counter_hz, uint64_t now)
{
    uint64_t begin = cassata_events_offset(size), capacity, number;
    uint64_t heads = sizeof(struct cassata_events) + rings * sizeof(struct cassata_ring);
    struct cassata_events *events = (struct cassata_events *)((char *)area + begin);
    struct cassata_ring *ring = (struct cassata_ring *)(events + 1);
    struct cassata_event *event = (struct cassata_event *)(ring + rings);

    if (rings == 0 || size - begin < heads)
        return false;
    capacity = (size - begin - heads) / (rings * sizeof(struct cassata_event));
    if (capacity == 0)
        return false;
    /* A guest that starts again finds what it left: the reader must not take the old for new. A store
     * that releases orders only what comes before it, so a fence follows. */
    __atomic_store_n(&events->magic, 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    events->counter_hz = counter_hz;
    events->begun = now;
    events->rings = rings;
    events->capacity = capacity;
    for (number = 0; number < rings; number++) {
        ring[number].written = 0;
        writers[number].ring = &ring[number];
        writers[number].events = &event[number * capacity];
        writers[number].capacity = capacity;
        writers[number].written = 0;
    }
    __atomic_store_n(&events->magic, CASSATA_EVENTS_MAGIC, __ATOMIC_RELEASE);
    return true;
}

/* The event to fill next; it is seen when it is published. */
static inline struct cassata_event *cassata_events_next(const struct cassata_writer *writer)
{
    return &writer->events[writer->written % writer->capacity];
}

static inline void cassata_events_publish(struct cassata_writer *writer)
{
    __atomic_store_n(&writer->ring->written, ++writer->written, __ATOMIC_RELEASE);
    /* The reader refuses an event that may be written over, and knows it by `written`: so what is
     * written next must not be seen before it. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

#endif
