/* Least, mean and greatest of a series. */
#ifndef STATISTICS_H
#define STATISTICS_H

#include <stdint.h>

struct statistics {
    uint64_t count, sum, min, max;
};

/* Adds one value; a series begins with all members 0. */
static inline void statistics_add(struct statistics *series, uint64_t value)
{
    if (series->count == 0 || value < series->min)
        series->min = value;
    if (value > series->max)
        series->max = value;
    series->sum += value;
    series->count++;
}

/* Prints ` NAME_ns min=... mean=... max=...` of a series in counter ticks. */
void statistics_print(const char *name, const struct statistics *series);

#endif
