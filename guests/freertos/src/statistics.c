#include "statistics.h"

#include "console.h"
#include "cpu.h"

static uint64_t nanoseconds(uint64_t ticks)
{
    uint64_t hz = counter_hz();

    return ticks / hz * 1000000000 + ticks % hz * 1000000000 / hz;
}

void statistics_print(const char *name, const struct statistics *series)
{
    uint64_t mean = series->count == 0 ? 0 : series->sum / series->count;

    print(" %s_ns min=%lu mean=%lu max=%lu", name, nanoseconds(series->min),
          nanoseconds(mean), nanoseconds(series->max));
}
