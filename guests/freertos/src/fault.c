/* What must not happen: say so, then stop. */
#include <stdint.h>

#include "FreeRTOS.h"
#include "console.h"
#include "firmware.h"
#include "task.h"

/* From vectors.S: an unexpected exception. */
void fault_report(uint64_t vector, uint64_t esr, uint64_t elr, uint64_t far)
    __attribute__((noreturn));

void fault_report(uint64_t vector, uint64_t esr, uint64_t elr, uint64_t far)
{
    print("freertos: fault: exception vector=%lu esr=0x%lx elr=0x%lx far=0x%lx\n",
          vector, esr, elr, far);
    system_off();
}

void assertion_failed(const char *file, uint32_t line)
{
    print("freertos: fault: assertion at %s:%u\n", file, line);
    system_off();
}

void vApplicationStackOverflowHook(TaskHandle_t task, char *name)
{
    (void)task;
    print("freertos: fault: stack overflow in task %s\n", name);
    system_off();
}
