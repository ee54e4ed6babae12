/* A page of memory that several VMs share under one mutex of the hypervisor, and the round that
 * each participant does on it while it holds the mutex. FreeRTOS and Linux use this file alike.
 *
 * What the mutex protects is that `a` and `b` agree: a round changes one of them at its beginning
 * and the other one at its end. A participant that finds them different while it holds the mutex
 * has found another one inside (a violation), unless the mutex said that its holder before died:
 * then this one left off in the middle, and the round puts it right.
 *
 * No other header is needed but <stdint.h> and <stdbool.h>. */
#ifndef VMPCP_PAGE_H
#define VMPCP_PAGE_H

#include <stdbool.h>
#include <stdint.h>

/* "VMPCPAG1" as bytes in memory. */
#define VMPCP_PAGE_MAGIC 0x3147415050434d56ULL
#define VMPCP_PAGE_PARTICIPANTS 4u

/* Eight bytes each, little-endian, in this order, from the beginning of the shared memory on. All
 * are 0 at power-on. */
struct vmpcp_page {
    uint64_t magic;                              /* 0 until the first round of all */
    uint64_t a;                                  /* equal to b, except within a round */
    uint64_t b;
    uint64_t rounds_by[VMPCP_PAGE_PARTICIPANTS]; /* rounds that each participant has finished */
    uint64_t violations;                         /* a and b differed, and no holder had died */
    uint64_t owner_died;                         /* rounds begun after a holder had died */
};

_Static_assert(sizeof(struct vmpcp_page) == 72, "other programs read it at these offsets");

/* Begins a round: the caller has just locked the mutex. `owner_died` is what locking answered.
 * Returns false if it found a violation, which it has counted. The caller may then do anything
 * that takes time, and must call vmpcp_page_finish before it unlocks the mutex. */
static inline bool vmpcp_page_begin(volatile struct vmpcp_page *page, bool owner_died)
{
    bool sound = page->a == page->b || owner_died;

    if (page->magic != VMPCP_PAGE_MAGIC)
        page->magic = VMPCP_PAGE_MAGIC;
    if (owner_died)
        page->owner_died = page->owner_died + 1;
    if (!sound)
        page->violations = page->violations + 1;
    if (page->a != page->b)
        page->b = page->a; /* so that one violation is counted once */
    page->a = page->a + 1;
    return sound;
}

/* Ends a round. `participant` is below VMPCP_PAGE_PARTICIPANTS and no other task's: it is given on
 * the command line. Returns false if another participant was inside meanwhile, which it has
 * counted as a violation. */
static inline bool vmpcp_page_finish(volatile struct vmpcp_page *page, unsigned participant)
{
    bool sound = page->a == page->b + 1;

    if (!sound)
        page->violations = page->violations + 1;
    page->b = page->a;
    page->rounds_by[participant] = page->rounds_by[participant] + 1;
    return sound;
}

#endif
