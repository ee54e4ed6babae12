/* The pacer: this machine's second core, which wakes the measured task at times that nothing
 * foretells, one at a time, by an interrupt that it raises itself. */
#ifndef PACER_H
#define PACER_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"
#include "report.h"

/* Takes the options, and enables the interrupt that `wake=` names; false if that is the timer's,
 * for which there is no pacer. Before the scheduler starts. */
bool pacer_create(const struct options *options);

/* Makes the pacer's counterpart of the calling task, which the interrupts will wake: `task` is its
 * handle. */
void pacer_wakes(void *task);

/* Starts the second core, which raises nothing before the counter is at `when`. False if there is no
 * pacer. */
bool pacer_begin(uint64_t when);

/* Sleeps until an interrupt has come, and answers what it took. */
struct report_sample pacer_await(void);

/* Lets the next interrupt come. */
void pacer_release(void);

/* The handler of interrupts that are not the tick's; `entered` is when the vector was reached. */
void pacer_interrupt(uint32_t intid, uint64_t entered);

#endif
