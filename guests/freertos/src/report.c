#include "report.h"

#include "cassata_events.h"
#include "console.h"
#include "cpu.h"
#include "events.h"
#include "firmware.h"

/* Samples go here without a hypervisor that offers an area, so that the measured path
 * stays the same. What reads them finds this variable by its name
 * (crates/lab/src/bench/lhp/bare_rtos.rs). */
static struct {
    struct report_header header;
    struct report_sample ring[64];
} own_area;

static struct report_header *header = &own_area.header;
static struct report_sample *ring = own_area.ring;

/* Of tasks; they do nothing before report_tasks_open. */
static struct cassata_task_writer writers[2];

bool report_tasks_open(const char *task)
{
    const char *const names[] = { task, LOAD_NAME };
    uint64_t address, size;

    if (!report_area(&address, &size)
        || cassata_tasks_open(writers, names, 2, (void *)address, size, counter_hz()))
        return true;
    print("freertos: error: the report area is too small for the tasks\n");
    return false;
}

struct cassata_task_writer *reported_task(void)
{
    return &writers[0];
}

struct cassata_task_writer *reported_load(void)
{
    return &writers[1];
}

static void publish(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

void report_open(uint64_t period, uint64_t load_permille)
{
    uint64_t address, size = sizeof own_area;

    /* Of the two formats an area has one. */
    if (writers[0].to == NULL && report_area(&address, &size) && size > sizeof *header + sizeof *ring) {
        /* Events have the second half, if they are asked for. */
        if (events_wanted)
            size = cassata_events_offset(size);
        header = (struct report_header *)address;
        ring = (struct report_sample *)(address + sizeof *header);
    } else {
        size = sizeof own_area;
    }
    /* A restarted guest finds the area as it left it: its reader must not
     * take the old magic for the new content. */
    publish(&header->magic, 0);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    header->counter_hz = counter_hz();
    header->capacity = (size - sizeof *header) / sizeof *ring;
    header->written = 0;
    header->missed = 0;
    header->period = period;
    header->load_permille = load_permille;
    header->load_units = 0;
    publish(&header->magic, REPORT_MAGIC);
}

void report_sample(struct report_sample sample, int missed)
{
    uint64_t written = header->written;

    ring[written % header->capacity] = sample;
    if (missed)
        publish(&header->missed, header->missed + 1);
    publish(&header->written, written + 1);
}

void report_load_units(uint64_t units)
{
    publish(&header->load_units, units);
}
