// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* `vmpcp tasks`: what it refuses in the device tree, and that it keeps to its half of the report area. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tasks.h"
#include "tool.h"

#define EXPECT(condition) expect(condition, #condition, __LINE__)

static void expect(bool holds, const char *what, int line)
{
    if (!holds) {
        fprintf(stderr, "tests/tasks.c:%d: %s\n", line, what);
        exit(1);
    }
}

/* Where fail() goes, and with what. */
static jmp_buf failed;
static char reason[256];

_Noreturn void fail(const char *what, int error)
{
    (void)error;
    snprintf(reason, sizeof reason, "%s", what);
    longjmp(failed, 1);
}

/* The report area. */
static char *area;
static size_t area_size;

void *vmpcp_report(int device, size_t *bytes)
{
    (void)device;
    *bytes = area_size;
    return area;
}

static void set(const char *property, const void *value, size_t bytes)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof path, TASKS "/one/%s", property);
    file = fopen(path, "w");
    EXPECT(file && fwrite(value, 1, bytes, file) == bytes && !fclose(file));
}

static struct declared tasks[MOST_TASKS];

/* Reads a task with so many segments of 1 ns and these holds. Whether it was taken. */
static bool takes(unsigned segments, const char *holds, size_t bytes)
{
    char wcets[8 * 32] = { 0 };

    for (unsigned at = 0; at < segments; at++)
        wcets[8 * at + 7] = 1;
    set("wcet-ns", wcets, 8 * segments);
    set("holds", holds, bytes);
    *reason = 0;
    if (setjmp(failed))
        return false;
    EXPECT(declared_read(tasks) == 1);
    return true;
}

static void test_declared(void)
{
    static const char *const numbers[] = { "vcpu", "priority", "period-ns", "offset-ns", "jitter-ns" };
    char holds[1000] = { 0 };

    EXPECT(!mkdir(TASKS, 0700) && !mkdir(TASKS "/one", 0700));
    set("label", "one", 4);
    for (size_t at = 0; at < sizeof numbers / sizeof *numbers; at++)
        set(numbers[at], "\0\0\0\7", 4);

    EXPECT(takes(2, "\0gcs R", 7));
    EXPECT(tasks[0].segments == 2 && tasks[0].priority == 7 && tasks[0].segment[1].wcet_ns == 1);
    EXPECT(!*tasks[0].segment[0].mutex && !strcmp(tasks[0].segment[1].mutex, "R"));
    EXPECT(takes(MOST_SEGMENTS, holds, MOST_SEGMENTS) && tasks[0].segments == MOST_SEGMENTS);
    EXPECT(!takes(MOST_SEGMENTS + 1, holds, MOST_SEGMENTS + 1));
    EXPECT(strstr(reason, "too many segments"));
    EXPECT(!takes(20, holds, 20) && strstr(reason, "too many segments"));
    EXPECT(!takes(3, holds, 2) && strstr(reason, "fewer entries"));
    /* One entry that is longer than all may be together, and has no end. */
    memset(holds, 'x', sizeof holds);
    EXPECT(!takes(2, holds, sizeof holds) && strstr(reason, "fewer entries"));
}

static void test_record(size_t size, bool fits)
{
    struct declared all[3] = { { .name = "a" }, { .name = "b" }, { .name = "c" } };
    const struct cassata_section section = { 1, 2, 3, 4, 5, 6 };
    volatile size_t written = 0;

    area = calloc(1, size);
    area_size = size;
    if (setjmp(failed)) {
        EXPECT(!fits && strstr(reason, "too small"));
        free(area);
        return;
    }
    record_open(0, all, 3, 1000);
    EXPECT(fits);
    for (unsigned number = 0; number < size; number++)
        cassata_task_section(record_of(number % 3), &section);
    for (size_t at = 0; at < size; at++)
        written = area[at] ? at + 1 : written;
    /* A kernel's events begin at the half, crates/abi/src/report/events.rs. All tasks have the same
     * room, so less than a section of each is left. */
    EXPECT(written <= size / 2 / 64 * 64 && written + 4 * sizeof section > size / 2 / 64 * 64);
    free(area);
}

int main(void)
{
    test_declared();
    test_record(4096, true);
    test_record(4096 + 100, true);
    test_record(65536, true);
    test_record(256, false);
    puts("tasks: ok");
    return 0;
}
