/* Runs on the host, with the address and undefined-behaviour sanitizers: the
 * tree comes from outside, so no damage to it may lead outside it. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bootargs.h"
#include "options.h"

#define EXPECT(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

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
    if (place < 4 || place >= 8)
        EXPECT(strlen(bootargs_find(copy)) < sizeof tree);
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

static void test_options(void)
{
    static const char *const wrong[] = {
        "load", "load=", "load=x", "load=1001", "load=1x", "load=-1", "period_us=0",
        "period_us=1500", "activations=4294967296", "activations=99999999999999999999", "laod=1",
        "load=1,period_us=1000", "tick_us=9", "tick_us=1000001", "tick_us=300 period_us=1000",
    };
    struct options options;

    EXPECT(options_parse("", &options));
    EXPECT(options.load_permille == 300 && options.period_us == 1000 && options.activations == 0);
    EXPECT(options.tick_us == 1000 && options.start_ms == 0);
    EXPECT(options_parse("period_us=150 start_ms=2000 tick_us=50", &options));
    EXPECT(options.period_us == 150 && options.tick_us == 50 && options.start_ms == 2000);
    EXPECT(options_parse(" load=1000  activations=7 period_us=20000 ", &options));
    EXPECT(options.load_permille == 1000 && options.period_us == 20000 && options.activations == 7);
    EXPECT(complaints == 0);

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        EXPECT(!options_parse(wrong[i], &options));
        EXPECT(complaints == i + 1);
    }
}

int main(void)
{
    test_trees();
    test_options();
    puts("bootargs and options: ok");
    return 0;
}
