#include "boosts.h"

#include <stddef.h>
#include <stdint.h>

#include "console.h"
#include "firmware.h"
#include "tasks.h"

/* crates/abi/src/service.rs in C. */
#define PREEMPTION_LINE 0xc6000023u
#define BOOST           0xc6000027u
#define DEBOOST         0xc6000028u
#define MYSELF          UINT64_MAX
#define POLICY_FIFO     1

/* What the vCPU shares with the hypervisor: crates/abi/src/preemption.rs in C. */
struct line {
    uint32_t desire_no_preempt, cancelled, grace_ns, overcommitted, task, awaited, reserved[10];
};
_Static_assert(sizeof(struct line) == 64, "a line");

bool boosts_wanted;

static bool said;
/* NULL: it says it by calls. */
static volatile struct line *line;

bool boosts_open(enum boost by)
{
    struct answer answer;

    if (firmware_call(DEBOOST, MYSELF, 0, 0).x[0] != 0) {
        print("freertos: error: boost= needs `boost` of this vCPU in the description\n");
        return false;
    }
    if (by == BOOST_LINE) {
        answer = firmware_call(PREEMPTION_LINE, 0, 0, 0);
        if (answer.x[0] != 0) {
            print("freertos: error: boost=line needs `yield = true` of this VM in the description\n");
            return false;
        }
        line = (volatile struct line *)answer.x[1];
    }
    boosts_wanted = true;
    return true;
}

/* The load task and the idle task are not urgent. */
void boosts_switched_in(unsigned long priority)
{
    bool urgent = priority > LOAD_PRIORITY;

    if (urgent == said)
        return;
    said = urgent;
    if (line != NULL) {
        line->task = urgent ? POLICY_FIFO | (uint32_t)priority << 8 : 0;
        if (urgent || line->awaited == 0)
            return;
    }
    if (urgent)
        firmware_call(BOOST, MYSELF, POLICY_FIFO, priority);
    else
        firmware_call(DEBOOST, MYSELF, 0, 0);
}
