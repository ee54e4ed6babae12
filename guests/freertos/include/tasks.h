/* The application: one task that is measured, or one that shares memory with other VMs, and one
 * that keeps the core busy. */
#ifndef TASKS_H
#define TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"

/* Their priorities. */
#define LOAD_PRIORITY       1
#define ORDERS_PRIORITY     1
#define SHARING_PRIORITY    2
#define MOTOR_PRIORITY      2
#define MEASURED_PRIORITY   3

/* Creates the periodic task of highest priority. It records interrupt response
 * time and dispatch latency of each activation in the report area; after
 * options->activations of them it prints a summary and switches off. */
void measure_create(const struct options *options);

/* Creates the task that burns options->load_permille of each period, at lower
 * priority; none if that is 0. */
void load_create(const struct options *options);

/* Creates the task that works on memory that other VMs have, under a mutex of the hypervisor:
 * a round each period. After options->activations of them it prints a summary and switches off.
 * False, after saying why, if there is no such memory. */
bool sharing_create(const struct options *options, const void *device_tree);

/* Creates the task that measures how long each call of guests/vmpcp takes; then it switches off. */
void bench_create(const struct options *options);

/* Creates three tasks that share local resources and a mutex of this VM, and check in which order they run;
 * then it switches off. */
void resources_create(const struct options *options);

/* Creates the task that controls a simulated motor each period, and the one that takes orders for it from another
 * VM, by a link. False, after saying why, if there is no such link. */
bool motor_create(const struct options *options, const void *device_tree);

/* Handles an interrupt if it is the link's doorbell. */
void motor_interrupt(uint32_t intid);

/* The handler of the interrupt that says that a mutex was granted. */
void sharing_interrupt(void);

#endif
