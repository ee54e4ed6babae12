/* The kernel's tick: the virtual timer, drift-free. */
#ifndef TICK_H
#define TICK_H

#include <stdint.h>

#include "options.h"

/* How long a tick is and when they begin; before the scheduler starts. */
void tick_create(const struct options *options);

/* When tick number `tick` (the first is 1) is due, by the counter. With jitter
 * it differs from a multiple of the tick's length by so much at most. */
uint64_t tick_due(uint64_t tick);

/* How long `count` ticks are without jitter, in ticks of the counter. */
uint64_t tick_length(uint64_t count);

/* Ticks of the counter from the moment a tick was due to the first instruction
 * of our interrupt vector; `bound` when it is no longer on record. */
uint32_t tick_response(uint64_t tick, uint32_t bound);

/* value, or the largest that 32 bits hold. */
static inline uint32_t saturate32(uint64_t value)
{
    return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

#endif
