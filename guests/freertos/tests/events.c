/* Guests' own events: where they are, and that none is written elsewhere. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cassata_events.h"

static void expect(int holds, const char *what, int line)
{
    if (!holds) {
        fprintf(stderr, "tests/events.c:%d: %s\n", line, what);
        exit(1);
    }
}
#define EXPECT(condition) expect(condition, #condition, __LINE__)

static void write_many(struct cassata_writer *writer, uint64_t count)
{
    for (uint64_t number = 0; number < count; number++) {
        struct cassata_event *event = cassata_events_next(writer);

        memset(event, 0xff, sizeof *event);
        event->time = number;
        cassata_events_publish(writer);
    }
}

/* A program of the guest writes over all of the area's second half: that steers no write. */
static void test_overwritten(int byte)
{
    enum { SIZE = 4096, RINGS = 2 };
    uint64_t begin = cassata_events_offset(SIZE), capacity;
    char *area = calloc(1, SIZE);
    struct cassata_writer writers[RINGS];
    struct cassata_ring *rings = (struct cassata_ring *)(area + begin + sizeof(struct cassata_events));
    const struct cassata_event *events = (const struct cassata_event *)(rings + RINGS);

    EXPECT(cassata_events_open(writers, RINGS, area, SIZE, 1000, 5));
    capacity = writers[0].capacity;
    write_many(&writers[1], 3);
    memset(area + begin, byte, SIZE - begin);
    EXPECT(cassata_events_next(&writers[1]) == &events[capacity + 3]);
    write_many(&writers[1], 1);
    EXPECT(rings[1].written == 4 && events[capacity + 3].time == 0);
    /* The sanitizer finds what goes outside; what is inside, but not its own, stays as it is. */
    write_many(&writers[1], 2 * capacity);
    for (char *at = area; at < (const char *)&events[capacity]; at++)
        EXPECT(*at == (at < area + begin ? 0 : (char)byte) ||
               (at >= (char *)&rings[1].written && at < (char *)&rings[1].reserved));
    EXPECT(rings[1].written == 4 + 2 * capacity);
    free(area);
}

/* An area of just this size: the sanitizer finds what is written outside. */
static void test_size(uint64_t size, uint64_t rings, uint64_t capacity)
{
    char *area = calloc(1, size + 1);
    struct cassata_events *events = (struct cassata_events *)(area + cassata_events_offset(size));
    struct cassata_ring *heads = (struct cassata_ring *)(events + 1);
    struct cassata_writer writers[8];
    bool opened = cassata_events_open(writers, rings, area, size, 1000, 5);

    EXPECT(opened == (capacity > 0));
    for (uint64_t vcpu = 0; opened && vcpu < rings; vcpu++) {
        struct cassata_writer *writer = &writers[vcpu];

        EXPECT(events->capacity == capacity && events->magic == CASSATA_EVENTS_MAGIC);
        write_many(writer, 2 * capacity + 1);
        EXPECT(heads[vcpu].written == 2 * capacity + 1);
        EXPECT(cassata_events_next(writer)->time == (capacity > 1 ? capacity + 1 : 2 * capacity));
    }
    for (uint64_t at = 0; at < cassata_events_offset(size); at++)
        EXPECT(area[at] == 0);
    EXPECT(area[size] == 0);
    free(area);
}

int main(void)
{
    /* As crates/abi/src/report/events.rs says. */
    test_size(4096, 1, 30);
    test_size(4096, 8, 2);
    test_size(65536, 2, 254);
    test_size(1 << 20, 2, 4094);
    test_size(256, 1, 0);
    test_size(4096, 0, 0);
    test_size(64, 1, 0);
    test_overwritten(0);
    test_overwritten(0xff);
    puts("events: ok");
    return 0;
}
