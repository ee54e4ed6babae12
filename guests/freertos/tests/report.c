/* What a guest reports of its tasks: where it stands in the area, and that nothing is written elsewhere. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cassata_events.h"
#include "cassata_tasks.h"

static void expect(int holds, const char *what, int line)
{
    if (!holds) {
        fprintf(stderr, "tests/report.c:%d: %s\n", line, what);
        exit(1);
    }
}
#define EXPECT(condition) expect(condition, #condition, __LINE__)

static const char *const names[] = { "controller", "load" };

/* An area of just this size: the sanitizer finds what is written outside. */
static void test_size(uint64_t size, uint64_t count, bool fits)
{
    char *area = calloc(1, size + 1);
    struct cassata_tasks *header = (struct cassata_tasks *)area;
    struct cassata_task *tasks = (struct cassata_task *)(header + 1);
    struct cassata_section *sections = (struct cassata_section *)(tasks + count);
    const struct cassata_section section = { ~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull };
    struct cassata_task_writer writers[2] = { 0 };

    EXPECT(cassata_tasks_open(writers, names, count, area, size, 1000) == fits);
    for (uint64_t number = 0; fits && number < size; number++)
        cassata_task_section(&writers[number % count], &section);
    for (uint64_t task = 0; fits && task < count; task++) {
        EXPECT(tasks[task].name == cassata_hash(names[task]) && tasks[task].sections == size / count);
        if (header->capacity > 0)
            EXPECT(sections[(task + 1) * header->capacity - 1].gave == ~0ull);
    }
    for (uint64_t at = cassata_tasks_room(size); at <= size; at++)
        EXPECT(area[at] == 0);
    free(area);
}

static void test_jobs(void)
{
    static char area[4096];
    struct cassata_task *task = (struct cassata_task *)(area + sizeof(struct cassata_tasks));
    struct cassata_task_writer writers[2];

    EXPECT(cassata_tasks_open(writers, names, 2, area, sizeof area, 1000));
    EXPECT(!memcmp(area, "CASTASK\1", 8));
    cassata_task_release(&writers[1], 100);
    EXPECT(task[1].unfinished == 100 && task[1].jobs == 0);
    cassata_task_finish(&writers[1], 130, 30);
    cassata_task_release(&writers[1], 200);
    /* The guest's own program writes there: what was counted stays. */
    task[1].jobs = 7;
    cassata_task_finish(&writers[1], 231, 30);
    EXPECT(task[1].jobs == 2 && task[1].sum == 61 && task[1].longest == 31 && task[1].late == 1);
    EXPECT(task[1].unfinished == 0 && task[0].jobs == 0);
    /* The guest starts again. */
    EXPECT(cassata_tasks_open(writers, names, 2, area, sizeof area, 1000));
    EXPECT(task[1].jobs == 0 && task[1].longest == 0);
}

/* Without an area the same calls do nothing. */
static void test_none(void)
{
    struct cassata_task_writer writer = { 0 };
    const struct cassata_section section = { 0 };

    cassata_task_release(&writer, 5);
    cassata_task_section(&writer, &section);
    cassata_task_finish(&writer, 9, 3);
    EXPECT(writer.to == NULL && writer.own.jobs == 1);
}

int main(void)
{
    /* FNV-1a of "a", as its authors publish it. */
    EXPECT(cassata_hash("a") == 0xaf63dc4c8601ec8cull);
    for (uint64_t size = 0; size < 1000; size++)
        EXPECT(cassata_tasks_room(size) == cassata_events_offset(size));
    test_size(65536, 2, true);
    test_size(4096, 2, true);
    test_size(4096 + 100, 1, true);
    test_size(384, 2, true);
    test_size(320, 2, false);
    test_size(4096, 0, false);
    test_jobs();
    test_none();
    puts("report: ok");
    return 0;
}
