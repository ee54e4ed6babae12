#include "boosts.h"

#include <stdint.h>

#include "console.h"
#include "firmware.h"
#include "tasks.h"

/* crates/abi/src/service.rs in C. */
#define BOOST       0xc6000027u
#define DEBOOST     0xc6000028u
#define MYSELF      UINT64_MAX
#define POLICY_FIFO 1

bool boosts_wanted;

static bool said;

bool boosts_open(void)
{
    boosts_wanted = firmware_call(DEBOOST, MYSELF, 0, 0).x[0] == 0;
    if (!boosts_wanted)
        print("freertos: error: boost=1 needs `boost` of this vCPU in the description\n");
    return boosts_wanted;
}

/* The load task and the idle task are not urgent. */
void boosts_switched_in(unsigned long priority)
{
    bool urgent = priority > LOAD_PRIORITY;

    if (urgent == said)
        return;
    said = urgent;
    if (urgent)
        firmware_call(BOOST, MYSELF, POLICY_FIFO, priority);
    else
        firmware_call(DEBOOST, MYSELF, 0, 0);
}
