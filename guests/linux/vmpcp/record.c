// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* The report area: what the host reads of tasks while they run. */
#include <errno.h>

#include "tasks.h"
#include "tool.h"

/* They do nothing where the VM has no report area. */
static struct cassata_task_writer writers[MOST_TASKS];

void record_open(int device, const struct declared *tasks, unsigned count, uint64_t counter_hz)
{
    const char *names[MOST_TASKS];
    size_t bytes;
    void *area = vmpcp_report(device, &bytes);

    if (!area && errno == ENOENT)
        return;
    if (!area)
        fail("the report area cannot be mapped", -errno);
    for (unsigned task = 0; task < count; task++)
        names[task] = tasks[task].name;
    if (!cassata_tasks_open(writers, names, count, area, bytes, counter_hz))
        fail("the report area is too small for the tasks: give the VM a larger `report`", 0);
}

struct cassata_task_writer *record_of(unsigned task)
{
    return &writers[task];
}
