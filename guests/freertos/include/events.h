/* Task switches, recorded in the report area where `trace=1` asks for it. */
#ifndef EVENTS_H
#define EVENTS_H

#include <stdbool.h>

/* Whether they are recorded. */
extern bool events_wanted;

/* Begins; false, after saying why, if there is no area for it. Before report_open(). */
bool events_open(void);

/* The task `name` has the core from now on. Interrupts are masked. */
void events_switched_in(const void *task, const char *name);

#endif
