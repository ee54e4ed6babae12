// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* What the device tree says of tasks, as the kernel shows it in /proc/device-tree. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tasks.h"
#include "tool.h"

#ifndef TASKS
#define TASKS "/proc/device-tree/tasks"
#endif

_Noreturn static void wrong(const char *node, const char *what)
{
    char line[256];

    snprintf(line, sizeof line, "device tree, tasks/%s: %s", node, what);
    fail(line, 0);
}

/* Reads a property of a task, `most` bytes at most, and returns how many it read. */
static size_t property(const char *node, const char *name, void *to, size_t most)
{
    char path[512];
    ssize_t bytes;
    int file;

    snprintf(path, sizeof path, TASKS "/%s/%s", node, name);
    file = open(path, O_RDONLY | O_CLOEXEC);
    bytes = file < 0 ? -1 : read(file, to, most);
    if (file >= 0)
        close(file);
    if (bytes <= 0)
        wrong(node, name);
    return bytes;
}

/* A number of the device tree, which begins with its most significant byte. */
static uint64_t big_endian(const unsigned char *from, size_t bytes)
{
    uint64_t value = 0;

    while (bytes--)
        value = value << 8 | *from++;
    return value;
}

static uint64_t number(const char *node, const char *name)
{
    unsigned char bytes[8];

    return big_endian(bytes, property(node, name, bytes, sizeof bytes));
}

static void read_segments(const char *node, struct declared *task)
{
    /* A byte more than it may have tells that there are too many. */
    unsigned char wcets[8 * MOST_SEGMENTS + 1];
    char holds[MOST_SEGMENTS * (VMPCP_NAME_BYTES + 8)];
    size_t bytes = property(node, "wcet-ns", wcets, sizeof wcets);
    size_t left = property(node, "holds", holds, sizeof holds - 1);
    const char *at = holds;

    holds[left] = 0;
    if (bytes > 8 * MOST_SEGMENTS)
        wrong(node, "it has too many segments");
    task->segments = bytes / 8;
    for (unsigned place = 0; place < task->segments; place++) {
        struct segment *segment = &task->segment[place];
        size_t length;

        if (at >= holds + left)
            wrong(node, "holds has fewer entries than wcet-ns");
        length = strlen(at) + 1;
        segment->wcet_ns = big_endian(wcets + 8 * place, 8);
        if (!strncmp(at, "lcs ", 4))
            wrong(node, "it has a local critical section, which this program cannot run");
        if (!strncmp(at, "gcs ", 4)) {
            if (length - 4 > sizeof segment->mutex)
                wrong(node, "the name of its mutex is too long");
            strcpy(segment->mutex, at + 4);
        }
        at += length;
    }
}

static void read_task(const char *node, struct declared *task)
{
    size_t bytes = property(node, "label", task->name, sizeof task->name);

    if (task->name[bytes - 1])
        wrong(node, "its name is too long");
    task->vcpu = number(node, "vcpu");
    task->priority = number(node, "priority");
    task->period_ns = number(node, "period-ns");
    task->offset_ns = number(node, "offset-ns");
    task->jitter_ns = number(node, "jitter-ns");
    read_segments(node, task);
}

unsigned declared_read(struct declared tasks[MOST_TASKS])
{
    DIR *nodes = opendir(TASKS);
    const struct dirent *node;
    unsigned count = 0;

    while (nodes && (node = readdir(nodes))) {
        /* Besides nodes there are the properties of `tasks` itself. */
        if (node->d_type != DT_DIR || node->d_name[0] == '.')
            continue;
        if (count == MOST_TASKS)
            wrong(node->d_name, "there are too many tasks");
        read_task(node->d_name, &tasks[count++]);
    }
    if (nodes)
        closedir(nodes);
    if (!count)
        fail("the device tree declares no tasks: the description gives this VM none", 0);
    return count;
}
