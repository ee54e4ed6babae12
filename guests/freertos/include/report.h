/* The report area: crates/abi/src/report.rs in C. Times are in ticks of the
 * counter. A sample is written first and `written` after it. */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cassata_tasks.h"

#define REPORT_MAGIC 0x0154504552534143ull /* "CASREPT\x01" */

struct report_header {
    uint64_t magic;         /* REPORT_MAGIC, written last */
    uint64_t counter_hz;    /* frequency of the counter */
    uint64_t capacity;      /* samples in the ring */
    uint64_t written;       /* samples written since the start */
    uint64_t missed;        /* activations that began after their period, or never */
    uint64_t period;        /* of the measured task */
    uint64_t load_permille; /* what the load task burns of the core */
    uint64_t load_units;    /* work units it has finished */
};

struct report_sample {
    uint64_t raised;        /* when the interrupt was due */
    uint32_t response;      /* from then to the handler's first instruction */
    uint32_t dispatch;      /* from then to the task's first instruction */
};

_Static_assert(sizeof(struct report_header) == 64, "header is eight words");
_Static_assert(offsetof(struct report_header, written) == 24, "written");
_Static_assert(offsetof(struct report_header, load_units) == 56, "load_units");
_Static_assert(sizeof(struct report_sample) == 16, "sample is two words");
_Static_assert(offsetof(struct report_sample, response) == 8, "response");
_Static_assert(offsetof(struct report_sample, dispatch) == 12, "dispatch");

/* Finds the area (or takes a small one of our own, also after report_tasks_open) and initialises it. */
void report_open(uint64_t period, uint64_t load_permille);

/* Adds one activation. One writer only. */
void report_sample(struct report_sample sample, int missed);

/* Says how many work units the load task has finished. One writer only. */
void report_load_units(uint64_t units);

/* Instead of all that: the area's other format, in which a task of that name and the load task, as
 * LOAD_NAME, report of their jobs. False, after saying why, if the area is too small for it; without an
 * area the writers do nothing. */
#define LOAD_NAME "load"
bool report_tasks_open(const char *task);
struct cassata_task_writer *reported_task(void);
struct cassata_task_writer *reported_load(void);

#endif
