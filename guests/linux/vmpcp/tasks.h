/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Running the tasks that the description declares: what the files of `vmpcp tasks` know of each
 * other. */
#ifndef VMPCP_TASKS_H
#define VMPCP_TASKS_H

#include <stdbool.h>
#include <stdint.h>

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

/* record.c: the report area, in the format of tasks, crates/abi/src/report/tasks.rs. */

/* A global critical section. All times are what the counter showed. */
struct section_record {
    uint64_t mutex, asked, queued, had, gives, gave;
};

/* Maps the area and sets it up. Without a report area nothing is recorded. */
void record_open(int device, const struct declared *tasks, unsigned count, uint64_t counter_hz);
/* The period of the task's next job begins at `arrival`; 0: there is none. These three are called
 * by the task's own thread. */
void record_arrival(unsigned task, uint64_t arrival);
void record_job(unsigned task, uint64_t response, bool is_late);
/* Records a section that has ended, of the mutex of this name, where there is room for it. */
void record_section(unsigned task, const char *mutex, struct section_record section);

#endif
