/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* A link to another VM (docs/src/links.md): messages, a stream of bytes, and the latest value, over the memory and the
 * doorbells that the hypervisor gives. Both sides use this, in FreeRTOS, bare metal and Linux:
 *
 *     struct cassata_link link;
 *
 *     cassata_link_open(&link, registers, own, peer, half_size);
 *     cassata_link_send(&link, &order, sizeof order);
 *     cassata_link_notify(&link);                          once for as many messages as one likes
 *
 *     for (;;) {
 *         cassata_link_arm(&link);                         first arm, then look
 *         while ((length = cassata_link_receive(&link, &order, sizeof order)) >= 0)
 *             ...
 *         cassata_link_notify(&link);                      there is room again
 *         if (length == CASSATA_LINK_EMPTY)
 *             ... wait for the interrupt ...
 *     }
 *
 * Each side writes its own half only. In its half are its ring, from which the peer reads, and how far it has read the
 * peer's: so there is one writer of each word, and no lock. Sending and receiving makes no call to the hypervisor, and
 * cassata_link_notify() only if the peer wants to be told. A side that looks again before it arms, and says
 * cassata_link_disarm() when it has found something, makes no exit while data flows, nor does its peer. In each direction a
 * program uses messages or a stream, not both.
 *
 * A side that is opened has a new epoch, and its ring is empty. The peer is told so (CASSATA_LINK_RESTARTED), once, by what
 * it calls next to send or to receive. What a side has read stays read: one that is started again goes on behind that. The
 * peer may be opened in the midst of a call: nothing of its new epoch is returned before CASSATA_LINK_RESTARTED, all of it
 * behind that, and never a piece of either.
 *
 * Nothing of the peer's half is believed: whatever it holds, nothing is read or written outside the halves and the
 * caller's own memory, and no loop depends on it. At worst there is CASSATA_LINK_BROKEN.
 *
 * The memory may be mapped as a device's: all accesses are aligned words. One program of a guest uses a side at a time,
 * and in it one task sends and one receives. Nothing but C11 and the compiler's atomic functions is needed. */
#ifndef CASSATA_LINK_H
#define CASSATA_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* crates/abi/src/link.rs in C: offsets of registers. */
#define CASSATA_LINK_RING 0
#define CASSATA_LINK_ARM 4
#define CASSATA_LINK_PEER 8

/* What functions return besides lengths. */
enum {
    CASSATA_LINK_EMPTY = -1,     /* nothing has come */
    CASSATA_LINK_FULL = -2,      /* the peer has to read first */
    CASSATA_LINK_TOO_LONG = -3,  /* longer than the ring, or than the caller's room: that message is dropped */
    CASSATA_LINK_RESTARTED = -4, /* the peer was opened again: told once */
    CASSATA_LINK_BROKEN = -5,    /* what the peer wrote cannot be */
    CASSATA_LINK_ABSENT = -6,    /* the peer was not opened yet */
};

#define CASSATA_LINK_MAGIC 0x314b4e4cu /* "LNK1" */
/* Longest latest value, bytes. */
#define CASSATA_LINK_VALUE_MAX 232

/* The beginning of a half; the ring follows. */
struct cassata_link_half {
    uint32_t magic;      /* CASSATA_LINK_MAGIC */
    uint32_t epoch;      /* another one each time that the side is opened, never 0 */
    uint32_t size;       /* of the ring, bytes, a power of two */
    uint32_t produced;   /* bytes written to it in this epoch, modulo 2^32 */
    uint32_t consumed;   /* bytes read of the peer's ring */
    uint32_t of_epoch;   /* in which epoch of the peer's */
    uint32_t version;    /* of the latest value: odd while it is written, 0 before there is one */
    uint32_t value_size; /* bytes of it */
    uint32_t wants_data; /* it is to be told of what the peer sends */
    uint32_t wants_room; /* it is to be told of what the peer reads */
    uint64_t value[(CASSATA_LINK_VALUE_MAX + 7) / 8];
};

struct cassata_link {
    volatile uint32_t *registers;
    volatile struct cassata_link_half *own;
    const volatile struct cassata_link_half *peer;
    uint32_t size;       /* of either ring, bytes */
    uint32_t epoch;      /* our own */
    uint32_t sends_to;   /* the peer's epoch, as the sending task knows it; 0: none yet */
    uint32_t hears_from; /* as the receiving one knows it */
    uint32_t produced, consumed, version;
};

/* Words of the ring in either half. */
static inline volatile uint64_t *cassata_link_ring_of(volatile struct cassata_link_half *half)
{
    return (volatile uint64_t *)(half + 1);
}

static inline const volatile uint64_t *cassata_link_peers_ring(const struct cassata_link *link)
{
    return (const volatile uint64_t *)(link->peer + 1);
}

/* Between accesses to the memory whose order matters to the peer, whatever type the memory has. */
static inline void cassata_link_barrier(void)
{
#ifdef __aarch64__
    __asm__ volatile("dmb sy" : : : "memory");
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* Plain accesses to registers: a hypervisor can emulate those from what the processor says of them. */
static inline void cassata_link_store(volatile uint32_t *registers, uint32_t offset, uint32_t value)
{
#ifdef __aarch64__
    __asm__ volatile("str %w0, [%1]" : : "r"(value), "r"(registers + offset / 4) : "memory");
#else
    registers[offset / 4] = value;
#endif
}

static inline uint32_t cassata_link_load(volatile uint32_t *registers, uint32_t offset)
{
#ifdef __aarch64__
    uint32_t value;

    __asm__ volatile("ldr %w0, [%1]" : "=r"(value) : "r"(registers + offset / 4) : "memory");
    return value;
#else
    return registers[offset / 4];
#endif
}

/* How large a ring is in a half of so many bytes; 0: there is no room for one. */
static inline uint32_t cassata_link_ring_size(size_t half_size)
{
    uint32_t size = 64;

    if (half_size < sizeof(struct cassata_link_half) + size || half_size > 1u << 30)
        return 0;
    while (2 * (size_t)size <= half_size - sizeof(struct cassata_link_half))
        size *= 2;
    return size;
}

/* Opens one's side: its ring is empty then, and it has no latest value. False: the halves are too small. */
static inline bool cassata_link_open(struct cassata_link *link, volatile void *registers, volatile void *own,
                                     const volatile void *peer, size_t half_size)
{
    volatile struct cassata_link_half *half = own;
    const uint32_t size = cassata_link_ring_size(half_size), epoch = half->epoch + 1;

    if (size == 0)
        return false;
    *link = (struct cassata_link){
        .registers = registers, .own = half, .peer = peer, .size = size, .epoch = epoch == 0 ? 1 : epoch
    };
    /* Without it, the peer waits. */
    half->magic = 0;
    cassata_link_barrier();
    half->epoch = link->epoch;
    /* A peer that sees anything of what follows sees by the epoch that it is new. */
    cassata_link_barrier();
    half->size = size;
    half->produced = 0;
    half->version = 0;
    half->wants_data = 0;
    half->wants_room = 0;
    cassata_link_barrier();
    half->magic = CASSATA_LINK_MAGIC;
    cassata_link_barrier();
    return true;
}

/* Looks at a link whose side this program does not open, as another one may use it: nothing is written, and the peer is told
 * nothing. Good for cassata_link_latest() and cassata_link_peer_life() only. */
static inline void cassata_link_watch(struct cassata_link *link, volatile void *registers, const volatile void *peer)
{
    *link = (struct cassata_link){ .registers = registers, .peer = peer };
}

/* Rings at the peer: it is told of what was written before. */
static inline void cassata_link_ring(const struct cassata_link *link)
{
    cassata_link_barrier();
    cassata_link_store(link->registers, CASSATA_LINK_RING, 1);
}

/* Rings at the peer if it wants to be told: of what was sent, or of what was read. */
static inline void cassata_link_notify(const struct cassata_link *link)
{
    cassata_link_barrier();
    if ((link->peer->wants_data | link->peer->wants_room) != 0)
        cassata_link_store(link->registers, CASSATA_LINK_RING, 1);
}

/* Arms the doorbell; what is called next to receive sees all for which it does not ring. */
static inline void cassata_link_arm(const struct cassata_link *link)
{
    link->own->wants_data = 1;
    cassata_link_store(link->registers, CASSATA_LINK_ARM, 1);
    cassata_link_barrier();
}

/* The same, for so many ticks of the counter (CNTFRQ_EL0 a second), 2 to 2^32 - 1: what comes later does not ring, and the
 * program has to look again by itself. So no doorbell interrupts it when it has no time for that. */
static inline void cassata_link_arm_within(const struct cassata_link *link, uint32_t ticks)
{
    link->own->wants_data = 1;
    cassata_link_store(link->registers, CASSATA_LINK_ARM, ticks);
    cassata_link_barrier();
}

/* As cassata_link_arm(), for what is called next to send. */
static inline void cassata_link_arm_for_room(const struct cassata_link *link)
{
    link->own->wants_room = 1;
    cassata_link_store(link->registers, CASSATA_LINK_ARM, 1);
    cassata_link_barrier();
}

/* Says that the peer need not ring for what it sends, until the doorbell is armed again: it may still ring once. */
static inline void cassata_link_disarm(const struct cassata_link *link)
{
    link->own->wants_data = 0;
}

/* The same for what it reads. */
static inline void cassata_link_disarm_for_room(const struct cassata_link *link)
{
    link->own->wants_room = 0;
}

/* The life of the peer's VM, 0 while it is off; an exit. */
static inline uint32_t cassata_link_peer_life(const struct cassata_link *link)
{
    return cassata_link_load(link->registers, CASSATA_LINK_PEER);
}

/* The peer's epoch; 0: it was not opened yet, or is being opened. */
static inline uint32_t cassata_link_peers_epoch(const struct cassata_link *link)
{
    const uint32_t epoch = link->peer->epoch;

    cassata_link_barrier();
    return link->peer->magic == CASSATA_LINK_MAGIC ? epoch : 0;
}

/* Compares the peer's epoch with the one that was known: 0, or an error. */
static inline int cassata_link_follow(const struct cassata_link *link, uint32_t *known)
{
    const uint32_t epoch = cassata_link_peers_epoch(link);

    if (epoch == *known && epoch != 0)
        return 0;
    if (epoch == 0)
        return CASSATA_LINK_ABSENT;
    const bool is_first = *known == 0;

    *known = epoch;
    return is_first ? 0 : CASSATA_LINK_RESTARTED;
}

/* Bytes that the peer has not read. */
static inline int64_t cassata_link_unread(const struct cassata_link *link)
{
    const uint32_t of_epoch = link->peer->of_epoch;

    cassata_link_barrier();
    /* It has read nothing since this side was opened. */
    const uint32_t consumed = of_epoch == link->epoch ? link->peer->consumed : 0;
    const uint32_t unread = link->produced - consumed;

    return unread <= link->size ? (int64_t)unread : CASSATA_LINK_BROKEN;
}

/* Copies words of memory that need not be aligned into a ring, four at a time. */
static inline void cassata_link_put_words(volatile uint64_t *to, const uint8_t *from, size_t words)
{
    uint64_t four[4];

    for (; words >= 4; words -= 4, to += 4, from += sizeof four) {
        memcpy(four, from, sizeof four);
        to[0] = four[0];
        to[1] = four[1];
        to[2] = four[2];
        to[3] = four[3];
    }
    for (; words > 0; words--, to++, from += 8) {
        memcpy(four, from, 8);
        to[0] = four[0];
    }
}

static inline void cassata_link_get_words(uint8_t *to, const volatile uint64_t *from, size_t words)
{
    uint64_t four[4];

    for (; words >= 4; words -= 4, to += sizeof four, from += 4) {
        four[0] = from[0];
        four[1] = from[1];
        four[2] = from[2];
        four[3] = from[3];
        memcpy(to, four, sizeof four);
    }
    for (; words > 0; words--, to += 8, from++) {
        four[0] = from[0];
        memcpy(to, four, 8);
    }
}

/* Words from offset `at` of a ring on that lie before its end, of so many. */
static inline size_t cassata_link_run(const struct cassata_link *link, uint32_t at, size_t words)
{
    const size_t behind = (link->size - at % link->size) / 8;

    return words < behind ? words : behind;
}

/* Copies bytes into the ring, from offset `at` on: in whole words, the last one filled up. */
static inline void cassata_link_put(const struct cassata_link *link, uint32_t at, const void *bytes, size_t length)
{
    volatile uint64_t *ring = cassata_link_ring_of(link->own);
    const uint8_t *from = bytes;
    const size_t words = length / 8, run = cassata_link_run(link, at, words);

    cassata_link_put_words(ring + at % link->size / 8, from, run);
    cassata_link_put_words(ring, from + 8 * run, words - run);
    if (length % 8 != 0) {
        uint64_t word = 0;

        memcpy(&word, from + 8 * words, length % 8);
        ring[(at + 8 * words) % link->size / 8] = word;
    }
}

/* Copies bytes from offset `at` of the peer's ring on. */
static inline void cassata_link_get(const struct cassata_link *link, uint32_t at, void *bytes, size_t length)
{
    const volatile uint64_t *ring = cassata_link_peers_ring(link);
    uint8_t *to = bytes;
    const size_t words = length / 8, run = cassata_link_run(link, at, words);

    cassata_link_get_words(to, ring + at % link->size / 8, run);
    cassata_link_get_words(to + 8 * run, ring, words - run);
    if (length % 8 != 0) {
        const uint64_t word = ring[(at + 8 * words) % link->size / 8];

        memcpy(to + 8 * words, &word, length % 8);
    }
}

/* Says that so many bytes more were sent. */
static inline void cassata_link_produce(struct cassata_link *link, size_t bytes)
{
    cassata_link_barrier();
    link->produced += (uint32_t)bytes;
    link->own->produced = link->produced;
}

/* A message takes its length and itself, in whole words. */
static inline size_t cassata_link_takes(size_t length)
{
    return 8 + (length + 7) / 8 * 8;
}

/* Sends a message, which may be empty: 0, or an error. It does not ring. */
static inline int cassata_link_send(struct cassata_link *link, const void *message, size_t length)
{
    const uint64_t header = length;
    int answer;

    if (length > link->size - 8)
        return CASSATA_LINK_TOO_LONG;
    answer = cassata_link_follow(link, &link->sends_to);
    if (answer == CASSATA_LINK_RESTARTED)
        return answer;
    /* One that is not there yet finds it. */
    const int64_t unread = cassata_link_unread(link);

    if (unread < 0)
        return (int)unread;
    if ((size_t)unread + cassata_link_takes(length) > link->size)
        return CASSATA_LINK_FULL;
    cassata_link_put(link, link->produced, &header, sizeof header);
    cassata_link_put(link, link->produced + 8, message, length);
    cassata_link_produce(link, cassata_link_takes(length));
    return 0;
}

/* Looks, behind what was read of the peer's half, whether it is of the epoch that was known before: the peer may have been
 * opened again meanwhile, and have written anything over it. 0, or CASSATA_LINK_RESTARTED, which is told once. */
static inline int cassata_link_confirm(struct cassata_link *link)
{
    cassata_link_barrier();
    const uint32_t epoch = link->peer->epoch;

    if (epoch == link->hears_from)
        return 0;
    link->hears_from = epoch;
    return CASSATA_LINK_RESTARTED;
}

/* What cannot be, unless the peer was opened again meanwhile. */
static inline int cassata_link_broken(struct cassata_link *link)
{
    const int answer = cassata_link_confirm(link);

    return answer != 0 ? answer : CASSATA_LINK_BROKEN;
}

/* Bytes that wait to be read, or an error. */
static inline int64_t cassata_link_waiting(struct cassata_link *link)
{
    const int answer = cassata_link_follow(link, &link->hears_from);
    const bool is_new = link->own->of_epoch != link->hears_from;

    if (answer == CASSATA_LINK_ABSENT)
        return answer;
    if (is_new) {
        /* This order: the peer takes `consumed` for nothing until it is of its epoch. */
        link->own->of_epoch = 0;
        cassata_link_barrier();
        link->own->consumed = 0;
        cassata_link_barrier();
        link->own->of_epoch = link->hears_from;
    }
    if (answer == CASSATA_LINK_RESTARTED)
        return answer;
    link->consumed = link->own->consumed;
    if (link->peer->size != link->size || link->consumed % 8 != 0)
        return cassata_link_broken(link);
    const uint32_t waiting = link->peer->produced - link->consumed;

    cassata_link_barrier();
    return waiting <= link->size ? (int64_t)waiting : cassata_link_broken(link);
}

/* Says that so many bytes more were read: 0, or CASSATA_LINK_RESTARTED, and they are of no use. */
static inline int cassata_link_consume(struct cassata_link *link, size_t bytes)
{
    const int answer = cassata_link_confirm(link);

    if (answer != 0)
        return answer;
    link->consumed += (uint32_t)bytes;
    link->own->consumed = link->consumed;
    return 0;
}

/* Leaves out all that the peer has sent until now: 0, or an error. */
static inline int cassata_link_skip(struct cassata_link *link)
{
    const int64_t waiting = cassata_link_waiting(link);

    return waiting < 0 ? (int)waiting : cassata_link_consume(link, (size_t)waiting);
}

/* Receives a message: its length, or an error. One that is longer than `room` is dropped. After an error `message` may
 * hold anything. */
static inline int cassata_link_receive(struct cassata_link *link, void *message, size_t room)
{
    const int64_t waiting = cassata_link_waiting(link);
    uint64_t length;

    if (waiting < 0)
        return (int)waiting;
    if (waiting == 0)
        return CASSATA_LINK_EMPTY;
    cassata_link_get(link, link->consumed, &length, sizeof length);
    if (length > link->size || cassata_link_takes(length) > (size_t)waiting)
        return cassata_link_broken(link);
    if (length <= room)
        cassata_link_get(link, link->consumed + 8, message, length);
    const int answer = cassata_link_consume(link, cassata_link_takes(length));

    if (answer != 0)
        return answer;
    return length <= room ? (int)length : CASSATA_LINK_TOO_LONG;
}

/* Writes to the stream: how many bytes, a multiple of 8 unless that is all, or an error. `length` is at most what an int
 * holds. The last word is filled up with zeros if it is not whole: write whole words but at the end of what one says. */
static inline int cassata_link_write(struct cassata_link *link, const void *bytes, size_t length)
{
    const int answer = cassata_link_follow(link, &link->sends_to);

    if (answer == CASSATA_LINK_RESTARTED)
        return answer;
    const int64_t unread = cassata_link_unread(link);

    if (unread < 0)
        return (int)unread;
    const size_t room = (link->size - (size_t)unread) / 8 * 8;

    if (length > room)
        length = room;
    if (length == 0)
        return CASSATA_LINK_FULL;
    cassata_link_put(link, link->produced, bytes, length);
    cassata_link_produce(link, (length + 7) / 8 * 8);
    return (int)length;
}

/* Reads from the stream: how many bytes, a multiple of 8, or an error. Of `room` only whole words are used. After an error
 * `bytes` may hold anything. */
static inline int cassata_link_read(struct cassata_link *link, void *bytes, size_t room)
{
    const int64_t waiting = cassata_link_waiting(link);
    size_t length = room / 8 * 8;

    if (waiting < 0)
        return (int)waiting;
    if ((uint64_t)waiting < length)
        length = (size_t)waiting / 8 * 8;
    if (length == 0)
        return CASSATA_LINK_EMPTY;
    cassata_link_get(link, link->consumed, bytes, length);
    const int answer = cassata_link_consume(link, length);

    return answer != 0 ? answer : (int)length;
}

/* Lets the peer see a new latest value: 0, or CASSATA_LINK_TOO_LONG. It never waits. */
static inline int cassata_link_publish(struct cassata_link *link, const void *value, size_t length)
{
    const uint8_t *from = value;

    if (length > CASSATA_LINK_VALUE_MAX)
        return CASSATA_LINK_TOO_LONG;
    link->own->version = ++link->version;
    cassata_link_barrier();
    link->own->value_size = (uint32_t)length;
    for (size_t done = 0; done < length; done += 8) {
        uint64_t word = 0;
        const size_t rest = length - done;

        memcpy(&word, from + done, rest < 8 ? rest : 8);
        link->own->value[done / 8] = word;
    }
    cassata_link_barrier();
    /* 0 is none. */
    if (++link->version == 0)
        link->version = 2;
    link->own->version = link->version;
    return 0;
}

/* Copies the peer's latest value: its length, or an error. CASSATA_LINK_EMPTY: there is none, or it was written in each of
 * a few looks: look again. */
static inline int cassata_link_latest(const struct cassata_link *link, void *value, size_t room)
{
    for (int look = 0; look < 4; look++) {
        uint64_t copy[(CASSATA_LINK_VALUE_MAX + 7) / 8];
        const uint32_t epoch = cassata_link_peers_epoch(link);

        if (epoch == 0)
            return CASSATA_LINK_ABSENT;
        /* A version is one of this epoch, or of a later one. */
        cassata_link_barrier();
        const uint32_t version = link->peer->version;

        cassata_link_barrier();
        const uint32_t length = link->peer->value_size;

        if (version == 0)
            return CASSATA_LINK_EMPTY;
        if (version % 2 != 0)
            continue;
        if (length > CASSATA_LINK_VALUE_MAX)
            return CASSATA_LINK_BROKEN;
        for (size_t word = 0; word < (length + 7) / 8; word++)
            copy[word] = link->peer->value[word];
        cassata_link_barrier();
        /* Versions begin again in each epoch. */
        if (link->peer->version != version || link->peer->epoch != epoch)
            continue;
        if (length > room)
            return CASSATA_LINK_TOO_LONG;
        memcpy(value, copy, length);
        return (int)length;
    }
    return CASSATA_LINK_EMPTY;
}

#endif
