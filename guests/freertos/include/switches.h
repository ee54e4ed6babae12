/* What is told of task switches. */
#ifndef SWITCHES_H
#define SWITCHES_H

#include <stdbool.h>

#include "options.h"

/* Whether anything is: the kernel asks before each call (FreeRTOSConfig.h). */
extern bool switches_told;

/* Opens what the options ask for; false, after saying why, if that cannot be. Before report_open(). */
bool switches_open(const struct options *options);

/* The task `name` has the core from now on. Interrupts are masked. */
void switched_in(const void *task, const char *name, unsigned long priority);

#endif
