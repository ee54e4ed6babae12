#include "vmpcp_freertos.h"

#include "FreeRTOS.h"
#include "task.h"

/* Of the kernel's priorities the upper half is for tasks in sections that other vCPUs wait for, in
 * the order of the lower half. */
#define GLOBAL (configMAX_PRIORITIES / 2)

/* The task that an interrupt has woken is to run now. */
static BaseType_t switches;

static void enter(void)
{
    vTaskSuspendAll();
}

static void leave(void)
{
    xTaskResumeAll();
}

static void set_priority(struct vmpcp_task *task, unsigned level)
{
    unsigned within = level % VMPCP_PRIORITIES;

    configASSERT(within < GLOBAL);
    vTaskPrioritySet(task->os, within + (level < VMPCP_PRIORITIES ? 0 : GLOBAL));
}

static void sleep_until_woken(struct vmpcp_task *self)
{
    (void)self;
    ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
}

static void wake(struct vmpcp_task *task, bool from_interrupt)
{
    if (from_interrupt)
        vTaskNotifyGiveFromISR(task->os, &switches);
    else
        xTaskNotifyGive(task->os);
}

const struct vmpcp_port vmpcp_freertos = {
    .enter = enter,
    .leave = leave,
    .set_priority = set_priority,
    .sleep = sleep_until_woken,
    .wake = wake,
    .interrupt = NULL, /* there is one vCPU */
};

void vmpcp_freertos_interrupt(void)
{
    switches = pdFALSE;
    vmpcp_inter_interrupt(0);
    portYIELD_FROM_ISR(switches);
}
