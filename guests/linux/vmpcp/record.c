// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* The report area: what the host reads of tasks while they run. */
#include <errno.h>
#include <string.h>

#include "tasks.h"
#include "tool.h"

/* "CASTASK" and 1. */
#define MAGIC 0x014b534154534143ull

struct header_record {
    uint64_t magic, counter_hz, tasks, capacity;
};

struct task_record {
    uint64_t name, jobs, longest, sum, late, unfinished, sections;
};

/* NULL: the VM has no report area. */
static volatile struct header_record *header;
static volatile struct task_record *records;
static volatile struct section_record *sections;

/* FNV-1a, by which EL2 and the host know names. */
static uint64_t hash(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325ull;

    while (*name)
        hash = (hash ^ (unsigned char)*name++) * 0x100000001b3ull;
    return hash;
}

/* What was written before is there before what is written after. */
static void in_order(void)
{
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

void record_open(int device, const struct declared *tasks, unsigned count, uint64_t counter_hz)
{
    size_t bytes, tables = sizeof *header + count * sizeof *records;
    volatile void *area = vmpcp_report(device, &bytes);

    if (!area && errno == ENOENT)
        return;
    if (!area)
        fail("the report area cannot be mapped", -errno);
    /* The second half belongs to the kernel's events, crates/abi/src/report/events.rs. */
    bytes = bytes / 2 / 64 * 64;
    if (bytes < tables)
        fail("the report area is too small for the tasks: give the VM a larger `report`", 0);
    header = area;
    header->magic = 0;
    in_order();
    records = (volatile void *)(header + 1);
    sections = (volatile void *)(records + count);
    for (unsigned task = 0; task < count; task++)
        records[task] = (struct task_record){ .name = hash(tasks[task].name) };
    header->counter_hz = counter_hz;
    header->tasks = count;
    header->capacity = (bytes - tables) / (count * sizeof *sections);
    in_order();
    header->magic = MAGIC;
}

void record_arrival(unsigned task, uint64_t arrival)
{
    if (header)
        records[task].unfinished = arrival;
}

void record_job(unsigned task, uint64_t response, bool is_late)
{
    volatile struct task_record *record = &records[task];

    if (!header)
        return;
    record->sum += response;
    record->late += is_late;
    if (response > record->longest)
        record->longest = response;
    in_order();
    record->jobs++;
}

void record_section(unsigned task, const char *mutex, struct section_record section)
{
    uint64_t number;

    if (!header)
        return;
    number = records[task].sections;
    if (number < header->capacity) {
        section.mutex = hash(mutex);
        sections[task * header->capacity + number] = section;
    }
    in_order();
    records[task].sections = number + 1;
}
