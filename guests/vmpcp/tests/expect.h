#ifndef EXPECT_H
#define EXPECT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPECT(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

/* A number below `below`, from a fixed sequence. */
static inline unsigned random_below(unsigned below)
{
    static uint64_t state = 1;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

#endif
