/* Both sides of a link in one program: what is sent arrives once and in order, whichever is opened again, and nothing that a
 * peer writes makes a side reach outside its memory (run with address and undefined-behaviour sanitizers). */
#include "cassata_link.h"
#include "expect.h"

#include <pthread.h>

#define HALF 4096
#define RING 2048

/* Registers, and the two halves, each in memory of its own so that none is overrun unseen. */
struct wire {
    uint32_t *registers[2];
    void *halves[2];
};

static struct wire wire_new(void)
{
    struct wire wire;

    for (int side = 0; side < 2; side++) {
        wire.registers[side] = calloc(3, sizeof(uint32_t));
        wire.halves[side] = calloc(1, HALF);
    }
    return wire;
}

static void wire_free(struct wire *wire)
{
    for (int side = 0; side < 2; side++) {
        free(wire->registers[side]);
        free(wire->halves[side]);
    }
}

static struct cassata_link open_side(const struct wire *wire, int side)
{
    struct cassata_link link;

    EXPECT(cassata_link_open(&link, wire->registers[side], wire->halves[side], wire->halves[1 - side], HALF));
    EXPECT(link.size == RING);
    return link;
}

static void test_sizes(void)
{
    EXPECT(cassata_link_ring_size(0) == 0);
    EXPECT(cassata_link_ring_size(sizeof(struct cassata_link_half) + 63) == 0);
    EXPECT(cassata_link_ring_size(sizeof(struct cassata_link_half) + 64) == 64);
    EXPECT(cassata_link_ring_size(1 << 15) == 1 << 14);
    EXPECT(cassata_link_ring_size(SIZE_MAX) == 0);
    EXPECT(sizeof(struct cassata_link_half) % 8 == 0);
}

static void test_messages(void)
{
    struct wire wire = wire_new();
    struct cassata_link a = open_side(&wire, 0);
    char text[RING];

    /* The peer is not there yet, and finds what was sent. */
    EXPECT(cassata_link_receive(&a, text, sizeof text) == CASSATA_LINK_ABSENT);
    EXPECT(cassata_link_send(&a, "before", 6) == 0);
    struct cassata_link b = open_side(&wire, 1);

    EXPECT(cassata_link_receive(&b, text, sizeof text) == 6 && memcmp(text, "before", 6) == 0);
    EXPECT(cassata_link_receive(&b, text, sizeof text) == CASSATA_LINK_EMPTY);
    /* Of any length, round the ring's end and round the counter's. */
    a.produced = b.consumed = UINT32_MAX - 7;
    a.own->produced = a.produced;
    b.own->consumed = b.consumed;
    for (size_t length = 0; length <= RING - 8; length++) {
        char sent[RING];

        memset(sent, (int)length, sizeof sent);
        EXPECT(cassata_link_send(&a, sent, length) == 0);
        memset(text, 0x55, sizeof text);
        EXPECT(cassata_link_receive(&b, text, sizeof text) == (int)length);
        EXPECT(memcmp(text, sent, length) == 0);
        EXPECT(length == sizeof text || text[length] == 0x55);
    }
    EXPECT(cassata_link_skip(&b) == 0 && cassata_link_send(&a, text, 5) == 0 && cassata_link_skip(&b) == 0);
    EXPECT(cassata_link_receive(&b, text, sizeof text) == CASSATA_LINK_EMPTY);
    EXPECT(cassata_link_send(&a, text, RING - 7) == CASSATA_LINK_TOO_LONG);
    /* Until it is full; one that is too long for the receiver is dropped, the next is not. */
    for (int i = 0; i < RING / 16; i++)
        EXPECT(cassata_link_send(&a, &i, sizeof i) == 0);
    EXPECT(cassata_link_send(&a, text, 0) == CASSATA_LINK_FULL);
    EXPECT(cassata_link_receive(&b, text, 3) == CASSATA_LINK_TOO_LONG);
    for (int i = 1, seen; i < RING / 16; i++)
        EXPECT(cassata_link_receive(&b, &seen, sizeof seen) == sizeof seen && seen == i);
    EXPECT(cassata_link_receive(&b, text, sizeof text) == CASSATA_LINK_EMPTY);
    wire_free(&wire);
}

static void test_restarts(void)
{
    struct wire wire = wire_new();
    struct cassata_link a = open_side(&wire, 0), b = open_side(&wire, 1);
    int seen;

    for (int i = 0; i < 3; i++)
        EXPECT(cassata_link_send(&a, &i, sizeof i) == 0);
    EXPECT(cassata_link_receive(&b, &seen, sizeof seen) == sizeof seen && seen == 0);
    /* The receiver is opened again: it goes on where it was, and the sender is told once. */
    b = open_side(&wire, 1);
    EXPECT(cassata_link_receive(&b, &seen, sizeof seen) == sizeof seen && seen == 1);
    EXPECT(cassata_link_send(&a, &seen, sizeof seen) == CASSATA_LINK_RESTARTED);
    EXPECT(cassata_link_send(&a, (int[]){ 3 }, sizeof(int)) == 0);
    EXPECT(cassata_link_receive(&b, &seen, sizeof seen) == sizeof seen && seen == 2);
    /* The sender is opened again: what was not read is gone, and the receiver is told once. */
    a = open_side(&wire, 0);
    EXPECT(cassata_link_send(&a, (int[]){ 4 }, sizeof(int)) == 0);
    EXPECT(cassata_link_receive(&b, &seen, sizeof seen) == CASSATA_LINK_RESTARTED);
    EXPECT(cassata_link_receive(&b, &seen, sizeof seen) == sizeof seen && seen == 4);
    EXPECT(cassata_link_receive(&b, &seen, sizeof seen) == CASSATA_LINK_EMPTY);
    /* Full, and then the receiver is opened again: still full, until it reads. */
    while (cassata_link_send(&a, &seen, sizeof seen) == 0) {
    }
    b = open_side(&wire, 1);
    EXPECT(cassata_link_send(&a, &seen, sizeof seen) == CASSATA_LINK_RESTARTED);
    EXPECT(cassata_link_send(&a, &seen, sizeof seen) == CASSATA_LINK_FULL);
    EXPECT(cassata_link_receive(&b, &seen, sizeof seen) == sizeof seen);
    EXPECT(cassata_link_send(&a, &seen, sizeof seen) == 0);
    wire_free(&wire);
}

static void test_latest(void)
{
    struct wire wire = wire_new();
    struct cassata_link a = open_side(&wire, 0), b = open_side(&wire, 1);
    char value[CASSATA_LINK_VALUE_MAX + 1] = "", seen[CASSATA_LINK_VALUE_MAX];

    EXPECT(cassata_link_latest(&b, seen, sizeof seen) == CASSATA_LINK_EMPTY);
    for (size_t length = 0; length <= CASSATA_LINK_VALUE_MAX; length++) {
        memset(value, (int)length, sizeof value);
        EXPECT(cassata_link_publish(&a, value, length) == 0);
        EXPECT(cassata_link_latest(&b, seen, sizeof seen) == (int)length && memcmp(seen, value, length) == 0);
        EXPECT(cassata_link_latest(&b, seen, sizeof seen) == (int)length);
    }
    EXPECT(cassata_link_publish(&a, value, sizeof value) == CASSATA_LINK_TOO_LONG);
    EXPECT(cassata_link_latest(&b, seen, 8) == CASSATA_LINK_TOO_LONG);
    a.version = UINT32_MAX - 1;
    EXPECT(cassata_link_publish(&a, "x", 1) == 0 && cassata_link_latest(&b, seen, sizeof seen) == 1);
    /* Being written. */
    a.own->version++;
    EXPECT(cassata_link_latest(&b, seen, sizeof seen) == CASSATA_LINK_EMPTY);
    a = open_side(&wire, 0);
    EXPECT(cassata_link_latest(&b, seen, sizeof seen) == CASSATA_LINK_EMPTY);
    wire_free(&wire);
}

#define STREAM 1000000

static uint8_t byte_at(size_t at)
{
    return (uint8_t)(at * 2654435761u >> 13);
}

static void *produce(void *side)
{
    struct cassata_link *link = side;
    uint8_t bytes[512];
    unsigned seed = 1;

    for (size_t done = 0; done < STREAM;) {
        size_t length = (size_t)(rand_r(&seed) % 64 + 1) * 8;

        length = length < STREAM - done ? length : STREAM - done;
        for (size_t i = 0; i < length; i++)
            bytes[i] = byte_at(done + i);
        const int wrote = cassata_link_write(link, bytes, length);

        EXPECT(wrote > 0 || wrote == CASSATA_LINK_FULL);
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    return NULL;
}

/* Two threads; each half has one writer, as between VMs. */
static void test_stream(void)
{
    struct wire wire = wire_new();
    struct cassata_link a = open_side(&wire, 0), b = open_side(&wire, 1);
    pthread_t thread;
    uint8_t bytes[777];

    EXPECT(pthread_create(&thread, NULL, produce, &a) == 0);
    for (size_t done = 0; done < STREAM;) {
        const int length = cassata_link_read(&b, bytes, sizeof bytes);

        EXPECT(length > 0 || length == CASSATA_LINK_EMPTY);
        for (int i = 0; i < length; i++)
            EXPECT(bytes[i] == byte_at(done + (size_t)i) || done + (size_t)i >= STREAM);
        done += length > 0 ? (size_t)length : 0;
    }
    pthread_join(thread, NULL);
    wire_free(&wire);
}

/* Anything in the peer's half. */
static void test_hostile(void)
{
    unsigned seed = 7;

    for (int round = 0; round < 20000; round++) {
        struct wire wire = wire_new();
        struct cassata_link a = open_side(&wire, 0), b = open_side(&wire, 1);
        char room[64];

        EXPECT(cassata_link_send(&a, room, 0) == 0);
        EXPECT(cassata_link_receive(&b, room, sizeof room) == 0);
        for (int act = 0; act < 8; act++) {
            uint32_t *words = wire.halves[0];
            const unsigned at = (unsigned)rand_r(&seed) % 80;

            words[at] = rand_r(&seed) % 3 == 0 ? (uint32_t)rand_r(&seed) * 3 : (uint32_t)rand_r(&seed) % 4096;
            cassata_link_receive(&b, room, sizeof room);
            cassata_link_read(&b, room, sizeof room);
            cassata_link_latest(&b, room, sizeof room);
            cassata_link_send(&b, room, (size_t)rand_r(&seed) % sizeof room);
            cassata_link_write(&b, room, sizeof room);
            cassata_link_publish(&b, room, sizeof room);
        }
        wire_free(&wire);
    }
}

static void test_registers(void)
{
    struct wire wire = wire_new();
    struct cassata_link a = open_side(&wire, 0);

    cassata_link_ring(&a);
    cassata_link_arm(&a);
    wire.registers[0][2] = 5;
    EXPECT(wire.registers[0][0] == 1 && wire.registers[0][1] == 1 && cassata_link_peer_life(&a) == 5);
    cassata_link_arm_within(&a, 1000);
    EXPECT(wire.registers[0][1] == 1000);
    wire_free(&wire);
}

/* True if a side rings when it notifies its peer. */
static bool rings(const struct wire *wire, int side, const struct cassata_link *link)
{
    wire->registers[side][0] = 0;
    cassata_link_notify(link);
    return wire->registers[side][0] != 0;
}

/* A side is told only while it waits: for what is sent, or for room. */
static void test_notifications(void)
{
    struct wire wire = wire_new();
    struct cassata_link a = open_side(&wire, 0), b = open_side(&wire, 1);
    char room[8] = "";

    EXPECT(cassata_link_send(&a, room, 0) == 0 && !rings(&wire, 0, &a));
    EXPECT(cassata_link_receive(&b, room, sizeof room) == 0);
    cassata_link_arm(&b);
    EXPECT(cassata_link_receive(&b, room, sizeof room) == CASSATA_LINK_EMPTY);
    EXPECT(cassata_link_send(&a, room, 0) == 0 && rings(&wire, 0, &a));
    /* It sends itself, and waits still. */
    EXPECT(cassata_link_send(&b, room, 0) == 0 && rings(&wire, 0, &a));
    /* What it takes does not end that: it may wait for more. */
    EXPECT(cassata_link_receive(&b, room, sizeof room) == 0 && rings(&wire, 0, &a));
    cassata_link_disarm(&b);
    EXPECT(!rings(&wire, 0, &a));
    while (cassata_link_send(&a, room, sizeof room) == 0) {
    }
    cassata_link_arm_for_room(&a);
    EXPECT(cassata_link_send(&a, room, sizeof room) == CASSATA_LINK_FULL);
    EXPECT(cassata_link_receive(&b, room, sizeof room) == sizeof room && rings(&wire, 1, &b));
    cassata_link_disarm_for_room(&a);
    EXPECT(cassata_link_send(&a, room, sizeof room) == 0 && !rings(&wire, 1, &b));
    /* One that is opened anew does not wait. */
    cassata_link_arm(&a);
    EXPECT(rings(&wire, 1, &b));
    a = open_side(&wire, 0);
    EXPECT(!rings(&wire, 1, &b));
    wire_free(&wire);
}

int main(void)
{
    test_sizes();
    test_messages();
    test_restarts();
    test_latest();
    test_stream();
    test_hostile();
    test_registers();
    test_notifications();
    puts("link: ok");
    return 0;
}
