/* Calls to the firmware or hypervisor below: PSCI, and Cassata's service if it is there. */
#ifndef FIRMWARE_H
#define FIRMWARE_H

#include <stdbool.h>
#include <stdint.h>

struct answer {
    uint64_t x[4];
};

/* Makes a call with up to three arguments. */
struct answer firmware_call(uint32_t function, uint64_t first, uint64_t second, uint64_t third);

/* Switches the core of that affinity on, which begins with pacer_run; false if there is none that is off. */
bool cpu_on(uint64_t affinity);

/* Switches this machine off (PSCI SYSTEM_OFF). */
void system_off(void) __attribute__((noreturn));

/* Starts this machine again (PSCI SYSTEM_RESET). */
void system_reset(void) __attribute__((noreturn));

/* Where the report area is and how large, in bytes; false when there is none. */
bool report_area(uint64_t *address, uint64_t *size);

#endif
