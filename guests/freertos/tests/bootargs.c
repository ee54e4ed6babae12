/* Runs on the host, with the address and undefined-behaviour sanitizers: the
 * tree comes from outside, so no damage to it may lead outside it. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bootargs.h"
#include "expect.h"
#include "options.h"
#include "spread.h"

/* options.c complains here. */
static unsigned complaints;

void print(const char *format, ...)
{
    (void)format;
    complaints++;
}

/* / { a = "b"; other { bootargs = "no"; }; chosen { bootargs = "load=5"; }; }; */
static const unsigned char tree[] = {
    0xd0, 0x0d, 0xfe, 0xed, 0, 0, 0, 171, 0, 0, 0, 56, 0, 0, 0, 160, /* magic size struct strings */
    0, 0, 0, 40, 0, 0, 0, 17, 0, 0, 0, 16, 0, 0, 0, 0,              /* reserve versions cpu */
    0, 0, 0, 11, 0, 0, 0, 104,                                       /* strings', struct's size */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,                 /* reserve map */
    0, 0, 0, 1, 0, 0, 0, 0,
    0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 9, 'b', 0, 0, 0,
    0, 0, 0, 4,
    0, 0, 0, 1, 'o', 't', 'h', 'e', 'r', 0, 0, 0,
    0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 0, 'n', 'o', 0, 0,
    0, 0, 0, 2,
    0, 0, 0, 1, 'c', 'h', 'o', 's', 'e', 'n', 0, 0,
    0, 0, 0, 3, 0, 0, 0, 7, 0, 0, 0, 0, 'l', 'o', 'a', 'd', '=', '5', 0, 0,
    0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 9,
    'b', 'o', 'o', 't', 'a', 'r', 'g', 's', 0, 'a', 0,
};

/* A copy that ends where its memory ends, damaged at one place. */
static void damaged(size_t place, unsigned char value)
{
    unsigned char *copy = malloc(sizeof tree);

    memcpy(copy, tree, sizeof tree);
    copy[place] = value;
    /* The size is the one thing that must be believed; it is damaged below. */
    if (place < 4 || place >= 8) {
        EXPECT(strlen(bootargs_find(copy)) < sizeof tree);
        shared_memory_find(copy, "page");
        link_end_find(copy, "page");
    }
    free(copy);
}

static void test_trees(void)
{
    _Static_assert(sizeof tree == 171, "header says so");
    EXPECT(strcmp(bootargs_find(tree), "load=5") == 0);
    EXPECT(strcmp(bootargs_find(NULL), "") == 0);

    for (size_t place = 0; place < sizeof tree; place++)
        for (unsigned value = 0; value < 256; value++)
            damaged(place, (unsigned char)value);

    for (unsigned char size = 40; size < sizeof tree; size++) {
        unsigned char *copy = malloc(size);
        memcpy(copy, tree, size);
        copy[7] = size;
        EXPECT(strlen(bootargs_find(copy)) < size);
        free(copy);
    }
}

/* A tree of three nodes: the wanted memory, another, and one that is read-only. */
static size_t tree_of_memories(unsigned char *bytes)
{
    static const char strings[] = "label\0reg\0read-only";
    static const struct { const char *node, *label; unsigned char address, pages; bool read_only; } nodes[] = {
        { "shared-memory@10", "page", 0x10, 1, false },
        { "memory@40", "decoy", 0x40, 9, false },
        { "shared-memory@11", "wide", 0x11, 17, true },
    };
    unsigned char *p = bytes + 40;
    const unsigned char *begin = p;
#define WORD(value) (memcpy(p, (unsigned char[]){ 0, 0, (value) >> 8, (value) & 255 }, 4), p += 4)
#define TEXT(text) (memcpy(p, text, strlen(text)), p += (strlen(text) + 4) & ~3ul)

    memset(bytes, 0, 512);
    WORD(1), WORD(0);
    for (size_t i = 0; i < 3; i++) {
        WORD(1), TEXT(nodes[i].node);
        if (nodes[i].read_only)
            WORD(3), WORD(0), WORD(10);
        WORD(3), WORD((unsigned)strlen(nodes[i].label) + 1), WORD(0), TEXT(nodes[i].label);
        WORD(3), WORD(16), WORD(6);
        WORD(0), p[0] = nodes[i].address, p += 4, WORD(0), WORD(nodes[i].pages << 4), WORD(2);
    }
    WORD(2), WORD(9);
    unsigned structure = (unsigned)(p - begin);
    memcpy(p, strings, sizeof strings);
    p += sizeof strings;
    unsigned size = (unsigned)(p - bytes);
    p = bytes;
    WORD(0xd00d), memcpy(bytes, "\xd0\x0d\xfe\xed", 4);
    WORD(size), WORD(40u), WORD(40 + structure), WORD(0), WORD(17u), WORD(16u), WORD(0);
    WORD((unsigned)sizeof strings), WORD(structure);
    return size;
}

static void test_shared_memory(void)
{
    unsigned char tree[512];
    size_t size = tree_of_memories(tree);
    struct shared_memory memory = shared_memory_find(tree, "page");

    EXPECT(size < sizeof tree);
    EXPECT(memory.address == 0x10000000 && memory.size == 0x10 && !memory.read_only);
    memory = shared_memory_find(tree, "wide");
    EXPECT(memory.address == 0x11000000 && memory.size == 0x110 && memory.read_only);
    EXPECT(shared_memory_find(tree, "decoy").size == 0);
    EXPECT(shared_memory_find(tree, "pag").size == 0);
    EXPECT(shared_memory_find(NULL, "page").size == 0);
}

/* A tree with one end of a link, behind a node that only begins alike. */
static void test_link(void)
{
    static const char strings[] = "label\0reg\0interrupts";
    unsigned char bytes[512] = { 0 }, *p = bytes + 40;
    const unsigned char *begin = p;

    WORD(1), WORD(0);
    for (int i = 0; i < 2; i++) {
        WORD(1), TEXT(i == 0 ? "linker@1" : "link@b200000");
        WORD(3), WORD(8), WORD(0), TEXT("control");
        WORD(3), WORD(48), WORD(6);
        for (unsigned word = 1; word <= 12; word++)
            WORD(word);
        WORD(3), WORD(12), WORD(10);
        WORD(0), WORD(248), WORD(1);
        WORD(2);
    }
    WORD(2), WORD(9);
    unsigned structure = (unsigned)(p - begin);
    memcpy(p, strings, sizeof strings);
    unsigned size = (unsigned)(p - bytes + sizeof strings);
    p = bytes;
    WORD(0xd00d), memcpy(bytes, "\xd0\x0d\xfe\xed", 4);
    WORD(size), WORD(40u), WORD(40 + structure), WORD(0), WORD(17u), WORD(16u), WORD(0);
    WORD((unsigned)sizeof strings), WORD(structure);

    struct link_end end = link_end_find(bytes, "control");
    EXPECT(end.registers == 0x100000002 && end.own == 0x500000006 && end.half_size == 0x700000008);
    EXPECT(end.peer == 0x90000000a && end.intid == 280);
    EXPECT(link_end_find(bytes, "contro").registers == 0 && link_end_find(NULL, "control").registers == 0);
}

static void test_options(void)
{
    static const char *const wrong[] = {
        "load", "load=", "load=x", "load=1001", "load=1x", "load=-1", "period_us=0",
        "period_us=1500", "activations=4294967296", "activations=99999999999999999999", "laod=1",
        "load=1,period_us=1000", "mutex=", "mutex=page", "task=", "participant=4 mutex=a task=b",
        "mutex=a task=a-name-of-thirty-two-bytes-is-too", "tick_us=9", "tick_us=1000001", "tick_us=300 period_us=1000",
        "trace=", "trace=2", "boost=", "boost=1", "boost=lines", "jitter=", "jitter=50", "jitter=1 task=a", "tick_us=97",
        "wake=", "wake=sg load=0", "wake=sgi", "wake=rtc load=0 jitter=1", "wake=grant load=0 task=a",
        "wake=sgi load=0 period_us=99", "wake=timers",
    };
    struct options options;

    EXPECT(options_parse("", &options));
    EXPECT(options.load_permille == 300 && options.period_us == 1000 && options.activations == 0);
    EXPECT(options.tick_us == 1000 && options.start_ms == 0);
    EXPECT(options_parse("period_us=150 start_ms=2000 tick_us=50", &options));
    EXPECT(options.period_us == 150 && options.tick_us == 50 && options.start_ms == 2000);
    EXPECT(options_parse(" load=1000  activations=7 period_us=20000 ", &options));
    EXPECT(options.load_permille == 1000 && options.period_us == 20000 && options.activations == 7);
    EXPECT(options.mutex[0] == '\0' && options.hold_us == 0 && options.die_at == 0);
    EXPECT(options_parse("mutex=page task=control participant=3 hold_us=20 die_at=9", &options));
    EXPECT(strcmp(options.mutex, "page") == 0 && strcmp(options.task, "control") == 0);
    EXPECT(strcmp(options.memory, "page") == 0 && options.participant == 3);
    EXPECT(options.hold_us == 20 && options.die_at == 9);
    EXPECT(options_parse("memory=wide task=t mutex=m", &options));
    EXPECT(strcmp(options.memory, "wide") == 0);
    EXPECT(options.jitter_percent == 0 && options_parse("tick_us=97 period_us=97 jitter=49", &options));
    EXPECT(options.tick_us == 97 && options.period_us == 97 && options.jitter_percent == 49);
    EXPECT(options_parse("wake=timer", &options) && options.wake == WAKE_TIMER && options.load_permille == 300);
    EXPECT(options_parse("load=0 wake=sgi period_us=1500", &options) && options.wake == WAKE_SGI);
    EXPECT(options_parse("wake=rtc load=0", &options) && options.wake == WAKE_RTC && options.period_us == 1000);
    EXPECT(options_parse("wake=grant load=0", &options) && options.wake == WAKE_GRANT);
    EXPECT(options_parse("", &options) && options.wake == WAKE_TIMER);
    EXPECT(options.trace == 0 && options_parse("trace=1", &options) && options.trace == 1);
    EXPECT(options.boost == BOOST_NONE && options_parse("boost=call", &options) && options.boost == BOOST_CALL);
    EXPECT(options_parse("boost=line", &options) && options.boost == BOOST_LINE);
    EXPECT(options_parse("boost=none", &options) && options.boost == BOOST_NONE);
    EXPECT(complaints == 0);

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        EXPECT(!options_parse(wrong[i], &options));
        EXPECT(complaints == i + 1);
    }
}

/* From end to end, and evenly: of each tenth there is a tenth. */
static void test_spread(void)
{
    const uint64_t most = 19400, all = 100000;
    uint64_t least = most, greatest = 0, tenths[10] = { 0 };

    for (uint64_t number = 1; number <= all; number++) {
        uint64_t value = spread(number, most);
        EXPECT(value <= most && value == spread(number, most));
        least = value < least ? value : least;
        greatest = value > greatest ? value : greatest;
        tenths[value * 10 / (most + 1)]++;
    }
    EXPECT(least == 0 && greatest == most);
    for (size_t i = 0; i < 10; i++)
        EXPECT(tenths[i] > all / 10 - 500 && tenths[i] < all / 10 + 500);
    EXPECT(spread(1, 0) == 0 && spread(7, UINT32_MAX) <= UINT32_MAX);
}

int main(void)
{
    test_spread();
    test_trees();
    test_shared_memory();
    test_link();
    test_options();
    puts("bootargs and options: ok");
    return 0;
}
