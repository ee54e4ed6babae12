/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Running the tasks that the description declares: what the files of `vmpcp tasks` know of each
 * other. */
#ifndef VMPCP_TASKS_H
#define VMPCP_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "cassata_tasks.h"
#include "vmpcp_ioctl.h"

#define MOST_TASKS 32
#define MOST_SEGMENTS 8

/* declared.c: node `tasks` of the device tree, docs/src/guests.md. */

/* A stretch of execution, with the mutex that is held meanwhile; "": none. */
struct segment {
    uint64_t wcet_ns;
    char mutex[VMPCP_NAME_BYTES];
};

struct declared {
    char name[VMPCP_NAME_BYTES];
    unsigned vcpu, priority, segments;
    uint64_t period_ns, offset_ns, jitter_ns;
    struct segment segment[MOST_SEGMENTS];
};

/* Reads all tasks of this VM, and returns how many there are. Ends the program where they are none
 * that it can run. */
unsigned declared_read(struct declared tasks[MOST_TASKS]);

/* record.c: the report area, in the format of tasks, guests/include/cassata_tasks.h. */

/* Maps the area and sets it up. Without a report area nothing is recorded. */
void record_open(int device, const struct declared *tasks, unsigned count, uint64_t counter_hz);
/* What records a task; called by the task's own thread only. */
struct cassata_task_writer *record_of(unsigned task);

#endif
