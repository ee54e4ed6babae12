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

static void write_many(struct cassata_events *events, uint64_t vcpu, uint64_t count)
{
    for (uint64_t number = 0; number < count; number++) {
        struct cassata_event *event = cassata_events_next(events, vcpu);

        memset(event, 0xff, sizeof *event);
        event->time = number;
        cassata_events_publish(events, vcpu);
    }
}

/* An area of just this size: the sanitizer finds what is written outside. */
static void test_size(uint64_t size, uint64_t rings, uint64_t capacity)
{
    char *area = calloc(1, size + 1);
    struct cassata_events *events = cassata_events_open(area, size, rings, 1000, 5);

    EXPECT((events != NULL) == (capacity > 0));
    for (uint64_t vcpu = 0; events && vcpu < rings; vcpu++) {
        EXPECT(events->capacity == capacity && events->magic == CASSATA_EVENTS_MAGIC);
        write_many(events, vcpu, 2 * capacity + 1);
        EXPECT(cassata_events_ring(events, vcpu)->written == 2 * capacity + 1);
        EXPECT(cassata_events_next(events, vcpu)->time == (capacity > 1 ? capacity + 1 : 2 * capacity));
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
    puts("events: ok");
    return 0;
}
