// What every hypervisor gives a bare-metal guest, at the addresses that the parameters say.
#pragma once
#include <stdint.h>

#define TIMER_INTID 27 // EL1 virtual timer

#define read_register(name) ({ uint64_t v_; __asm__ volatile("mrs %0, " #name : "=r"(v_)); v_; })
#define write_register(name, value) __asm__ volatile("msr " #name ", %0" ::"r"((uint64_t)(value)))
#define barrier() __asm__ volatile("isb" ::: "memory")

// As crates/lab/src/bench/peers/waker.rs writes them. The counter counts nanoseconds.
struct parameters {
    uint64_t magic;
    uint64_t gicd, gicr, uart; // physical addresses
    uint64_t role;             // enum role
    uint64_t begin_ns;         // the counter when the first period begins
    uint64_t period_ns;        // or the mean time between interrupts of the second core's
    uint64_t count;            // periods, interrupts, or repetitions of each micro-benchmark
    uint64_t burn_ns;          // executed in each period
    uint64_t is_endless;       // after the last period comes another one, and nothing is told
};

extern const volatile struct parameters parameters;

static inline unsigned this_core(void) { return (unsigned)read_register(tpidr_el1); }
static inline uint64_t now(void) { return read_register(cntvct_el0); }

// Turns this core's interrupts on, in the GIC, masked in PSTATE.
void gic_start(void);
uint32_t gic_acknowledge(void);
void gic_end(uint32_t intid);
// Sends the first core an interrupt that software generates.
static inline void gic_interrupt_first(void)
{
    // ICC_SGI1R_EL1: INTID 1 for affinity 0.0.0.0
    write_register(S3_0_C12_C11_5, (uint64_t)1 << 24 | 1);
}
uint32_t gic_type(void);

uint64_t psci_version(void);
// Returns 0 if there is a second core.
int64_t psci_start_second(void);

// Tells a value under a name, in a line of at most 30 characters: Xen cuts longer ones.
void tell(const char *name, uint64_t value);
void tell_word(const char *word);
