/* The application: one task that is measured, one that keeps the core busy. */
#ifndef TASKS_H
#define TASKS_H

#include "options.h"

/* Creates the periodic task of highest priority. It records interrupt response
 * time and dispatch latency of each activation in the report area; after
 * options->activations of them it prints a summary and switches off. */
void measure_create(const struct options *options);

/* Creates the task that burns options->load_permille of each period, at lower
 * priority; none if that is 0. */
void load_create(const struct options *options);

#endif
