/* What the command line may say. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Names of a system's description, with their zeros. */
#define NAME_SIZE 32

/* What wakes the measured task. */
enum wake {
    WAKE_TIMER, /* the tick */
    WAKE_SGI,   /* an interrupt from the other core */
    WAKE_RTC,   /* a device's: the real-time clock */
    WAKE_GRANT, /* a mutex of the hypervisor that the other core gives back */
};

/* How the hypervisor is told when a task above `load` runs. */
enum boost {
    BOOST_NONE, /* it is not */
    BOOST_CALL, /* by a call when that begins, and when it ends */
    BOOST_LINE, /* in the line of the vCPU; by a call, too, when it ends and others share the core */
};

struct options {
    uint64_t load_permille; /* load=        share of the core to burn, 0 to 1000 */
    uint64_t period_us;     /* period_us=   of both tasks, a multiple of the tick */
    uint64_t tick_us;       /* tick_us=     the kernel's tick, 10 to 1000000 */
    uint64_t jitter_percent; /* jitter=    each tick comes so much of a tick early or late at most, 0 to 49 */
    enum wake wake;         /* wake=        timer, sgi, rtc, grant; in the mean each period but for the timer */
    uint64_t start_ms;      /* start_ms=    asleep for so long before the first tick */
    uint64_t activations;   /* activations= to measure before power-off, 0: endless */
    /* Instead of the measured task, one that shares memory: */
    char mutex[NAME_SIZE];  /* mutex=       the mutex that protects it; "": no such task */
    char task[NAME_SIZE];   /* task=        what the description calls the task */
    char memory[NAME_SIZE]; /* memory=      the memory; if not said, it is called as the mutex */
    uint64_t participant;   /* participant= 0 to 3, no other one's */
    uint64_t hold_us;       /* hold_us=     how long each round takes */
    uint64_t die_at;        /* die_at=      in this round it resets the machine, 0: never */
    uint64_t trace;         /* trace=       1: task switches go to the report area */
    enum boost boost;       /* boost=       none, call, line */
    char link[NAME_SIZE];   /* link=        besides: controls a motor, and takes orders by that link; "": it does not */
    /* Instead of both, one that measures calls of guests/vmpcp: */
    uint64_t bench;         /* bench=       so often each, 0: no such task */
    uint64_t bench_stop;    /* bench_stop=  2 n + 1: power-off before call n is made the last time,
                             *              2 n + 2: after that, 0: at the end */
    /* Instead of all these, three that test what guests/vmpcp keeps for one VM: */
    uint64_t resources;     /* resources=   so many rounds of each kind, 0: no such tasks */
};

/* Reads `NAME=VALUE ...`; false, after saying what is wrong, if it is not that. */
bool options_parse(const char *text, struct options *options);

#endif
