/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the files of the command-line tool know of each other. */
#ifndef VMPCP_TOOL_H
#define VMPCP_TOOL_H

#include <stdint.h>

#include "vmpcp.h"
#include "vmpcp_page.h"

/* What the command line says; see the usage in tool.c. */
struct options {
    const char *mutex, *task, *other, *intra, *memory;
    enum vmpcp_order order;
    int cpu, priority, participant;
    unsigned long rounds, inside_us, pause_us, begin_ms, reserve_us, jobs, for_ms;
};

/* Ends the program with one line on standard error. `error` is negative, or 0 for none. */
_Noreturn void fail(const char *what, int error);

/* Binds the calling thread to the CPU and gives it the priority that the options say. */
void become_task(const struct options *options);
/* Opens the mutex that the options name. */
int open_mutex(int device, const struct options *options);

/* Maps the page in the shared memory of this name, and says what it counts. */
volatile struct vmpcp_page *map_page(int device, const char *name, bool must_write);
void say_page(const char *name, const volatile struct vmpcp_page *page);

uint64_t now_ns(void);
/* Works for so long: it does not sleep. */
void work_us(unsigned long us);

void self_test(const struct options *options);
/* The part of it that needs neither the device nor EL2. */
void local_resources(const struct options *options);
void measure(const struct options *options);
void run_tasks(const struct options *options);

#endif
