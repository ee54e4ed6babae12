/* Numbers that look random and are the same in each run. */
#ifndef SPREAD_H
#define SPREAD_H

#include <stdint.h>

/* A number from 0 to `most`, both included, as evenly spread as 32 bits allow: `most`
 * must be below 2^32. The same for the same `number` (the finalizer of SplitMix64: Steele,
 * Lea, Flood, OOPSLA 2014). */
static inline uint64_t spread(uint64_t number, uint64_t most)
{
    uint64_t z = number * 0x9e3779b97f4a7c15ull;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    return (z >> 32) * (most + 1) >> 32;
}

#endif
