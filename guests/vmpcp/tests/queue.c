/* The queue of tasks that wait, beside one that looks at every element. */
#include "queue.h"

#include "expect.h"
#include "internal.h"

struct vmpcp_answer vmpcp_call(uint32_t function, uint64_t x1, uint64_t x2)
{
    (void)function, (void)x1, (void)x2;
    return (struct vmpcp_answer){ { 0 } };
}

uint64_t vmpcp_counter(void)
{
    return 0;
}

static bool present[VMPCP_QUEUE_KEYS][VMPCP_QUEUE_KEYS];

/* The largest first key with the largest second key, looked for one by one. */
static bool largest(unsigned *first, unsigned *second)
{
    for (*first = VMPCP_QUEUE_KEYS; (*first)-- > 0;)
        for (*second = VMPCP_QUEUE_KEYS; (*second)-- > 0;)
            if (present[*first][*second])
                return true;
    return false;
}

int main(void)
{
    static struct vmpcp_queue queue;
    unsigned first, second, expected_first, expected_second;

    EXPECT(!vmpcp_queue_take(&queue, &first, &second));
    for (int step = 0; step < 100000; step++) {
        first = random_below(VMPCP_QUEUE_KEYS);
        second = random_below(VMPCP_QUEUE_KEYS);
        if (random_below(100) < 45 + (unsigned)step / 10000) {
            vmpcp_queue_add(&queue, first, second);
            present[first][second] = true;
            continue;
        }
        bool some = largest(&expected_first, &expected_second);
        EXPECT(vmpcp_queue_take(&queue, &first, &second) == some);
        if (some) {
            EXPECT(first == expected_first && second == expected_second);
            present[first][second] = false;
        }
    }
    puts("vmpcp queue: ok");
    return 0;
}
