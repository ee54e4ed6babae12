#include "events.h"

#include "FreeRTOS.h"
#include "cassata_events.h"
#include "console.h"
#include "cpu.h"
#include "firmware.h"

bool events_wanted;

static struct cassata_writer writer;

bool events_open(void)
{
    uint64_t address, size;

    events_wanted = report_area(&address, &size) &&
                    cassata_events_open(&writer, 1, (void *)address, size, counter_hz(),
                                        counter_now());
    if (!events_wanted)
        print("freertos: error: trace=1 needs a report area: "
              "`report = \"64K\"` in the description\n");
    return events_wanted;
}

void events_switched_in(const void *task, const char *name)
{
    struct cassata_event *event = cassata_events_next(&writer);

    _Static_assert(configMAX_TASK_NAME_LEN <= CASSATA_EVENT_TEXT, "a name fits");
    event->time = counter_now();
    event->kind = CASSATA_EVENT_SWITCH;
    event->length = configMAX_TASK_NAME_LEN;
    event->reserved = 0;
    event->task = (uint32_t)(uintptr_t)task;
    __builtin_memcpy(event->text, name, configMAX_TASK_NAME_LEN);
    cassata_events_publish(&writer);
}
