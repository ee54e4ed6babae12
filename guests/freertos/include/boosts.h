/* What the hypervisor is told of the urgency of what runs, where `boost=` asks for it. */
#ifndef BOOSTS_H
#define BOOSTS_H

#include <stdbool.h>

#include "options.h"

/* Whether it is told. */
extern bool boosts_wanted;

/* Begins; false, after saying why, if the hypervisor does not boost this vCPU, or cannot be told so. */
bool boosts_open(enum boost by);

/* A task of this priority has the core from now on. Interrupts are masked. */
void boosts_switched_in(unsigned long priority);

#endif
