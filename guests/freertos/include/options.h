/* What the command line may say. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct options {
    uint64_t load_permille; /* load=        share of the core to burn, 0 to 1000 */
    uint64_t period_us;     /* period_us=   of both tasks, a multiple of the tick */
    uint64_t tick_us;       /* tick_us=     the kernel's tick, 10 to 1000000 */
    uint64_t start_ms;      /* start_ms=    asleep for so long before the first tick */
    uint64_t activations;   /* activations= to measure before power-off, 0: endless */
};

/* Reads `NAME=NUMBER ...`; false, after saying what is wrong, if it is not that. */
bool options_parse(const char *text, struct options *options);

#endif
