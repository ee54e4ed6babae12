/* Tasks that wait, by two keys: the one with the largest first key is first, among equals the one
 * with the largest second key. A set of bits for each, so that every step takes the same time. */
#ifndef VMPCP_QUEUE_H
#define VMPCP_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

/* Keys are below this. */
#define VMPCP_QUEUE_KEYS 32u

struct vmpcp_queue {
    uint32_t firsts;                   /* those with an element */
    uint32_t seconds[VMPCP_QUEUE_KEYS]; /* of the elements with that first key */
};

static inline void vmpcp_queue_add(struct vmpcp_queue *queue, unsigned first, unsigned second)
{
    queue->seconds[first] |= UINT32_C(1) << second;
    queue->firsts |= UINT32_C(1) << first;
}

/* Takes the first element out; false if there is none. */
static inline bool vmpcp_queue_take(struct vmpcp_queue *queue, unsigned *first, unsigned *second)
{
    if (queue->firsts == 0)
        return false;
    *first = 31u - (unsigned)__builtin_clz(queue->firsts);
    *second = 31u - (unsigned)__builtin_clz(queue->seconds[*first]);
    queue->seconds[*first] &= ~(UINT32_C(1) << *second);
    if (queue->seconds[*first] == 0)
        queue->firsts &= ~(UINT32_C(1) << *first);
    return true;
}

#endif
