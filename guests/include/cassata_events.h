/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* A guest's own events in its report area: crates/abi/src/report/events.rs in C, with what it
 * takes to write them. Each vCPU writes its own ring, with its interrupts masked:
 *
 *     struct cassata_event *event = cassata_events_next(events, vcpu);
 *     ... fill it ...
 *     cassata_events_publish(events, vcpu);
 */
#ifndef CASSATA_EVENTS_H
#define CASSATA_EVENTS_H

#ifdef __KERNEL__
#include <linux/stddef.h>
#include <linux/types.h>
#else
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

static inline struct cassata_ring *cassata_events_ring(struct cassata_events *events, uint64_t vcpu)
{
    return (struct cassata_ring *)(events + 1) + vcpu;
}

/* Initialises the events in a report area of `size` bytes; NULL if it is too small. */
static inline struct cassata_events *cassata_events_open(void *area, uint64_t size, uint64_t rings,
                                                         uint64_t counter_hz, uint64_t now)
{
    uint64_t begin = cassata_events_offset(size), capacity, ring;
    uint64_t heads = sizeof(struct cassata_events) + rings * sizeof(struct cassata_ring);
    struct cassata_events *events = (struct cassata_events *)((char *)area + begin);

    if (rings == 0 || size - begin < heads)
        return NULL;
    capacity = (size - begin - heads) / (rings * sizeof(struct cassata_event));
    if (capacity == 0)
        return NULL;
    /* A guest that starts again finds what it left: the reader must not take the old for new. */
    __atomic_store_n(&events->magic, 0, __ATOMIC_SEQ_CST);
    events->counter_hz = counter_hz;
    events->begun = now;
    events->rings = rings;
    events->capacity = capacity;
    for (ring = 0; ring < rings; ring++)
        cassata_events_ring(events, ring)->written = 0;
    __atomic_store_n(&events->magic, CASSATA_EVENTS_MAGIC, __ATOMIC_RELEASE);
    return events;
}

/* The event to fill next; it is seen when it is published. */
static inline struct cassata_event *cassata_events_next(struct cassata_events *events, uint64_t vcpu)
{
    struct cassata_ring *rings = cassata_events_ring(events, 0);
    struct cassata_event *all = (struct cassata_event *)(rings + events->rings);
    uint64_t written = rings[vcpu].written;

    return &all[vcpu * events->capacity + written % events->capacity];
}

static inline void cassata_events_publish(struct cassata_events *events, uint64_t vcpu)
{
    struct cassata_ring *ring = cassata_events_ring(events, vcpu);

    __atomic_store_n(&ring->written, ring->written + 1, __ATOMIC_RELEASE);
}

#endif
