// QEMU's virt board, as far as the metronome needs it.
#pragma once
#include <stdint.h>

#define MAX_CORES 8
#define TIMER_INTID 27 // EL1 virtual timer

#define read_register(name) ({ uint64_t v_; __asm__ volatile("mrs %0, " #name : "=r"(v_)); v_; })
#define write_register(name, value) __asm__ volatile("msr " #name ", %0" ::"r"((uint64_t)(value)))
#define barrier() __asm__ volatile("isb" ::: "memory")

static inline unsigned this_core(void) { return (unsigned)read_register(tpidr_el1); }
static inline uint64_t now(void) { return read_register(cntvct_el0); }

// Turns a core's interrupts on, in the GIC, masked in PSTATE.
void gic_start_core(unsigned core);
uint32_t gic_acknowledge(void);
void gic_end(uint32_t intid);
void gic_interrupt_core(unsigned core);

// Returns 0 if there is such a core.
int64_t psci_cpu_on(unsigned core);
_Noreturn void psci_system_off(void);

void print(const char *text);
void print_number(uint64_t value);
