/* What is below: crates/abi/src/platform.rs and service.rs in C. */
#ifndef PLATFORM_H
#define PLATFORM_H

#define GICD_BASE   0x08000000
#define GICR_BASE   0x080a0000
#define GICR_STRIDE 0x20000
#define UART_BASE   0x09000000
#define RAM_BASE    0x40000000

/* The EL1 virtual timer's private interrupt. */
#define TIMER_INTID 27u
/* The SGI by which vCPUs interrupt each other. */
#define GRANT_SGI   1u

#ifndef __ASSEMBLER__
#include <stdint.h>

#define read_register(name) ({ uint64_t v_; __asm__ volatile("mrs %0, " #name : "=r"(v_)); v_; })
#define write_register(name, value) \
    __asm__ volatile("msr " #name ", %0" : : "r"((uint64_t)(value)) : "memory")
#define barrier() __asm__ volatile("isb" : : : "memory")

static inline unsigned this_vcpu(void)
{
    return (unsigned)read_register(tpidr_el1);
}

/* The counter, ticks. */
static inline uint64_t now(void)
{
    barrier();
    return read_register(cntvct_el0);
}

static inline uint64_t ticks_of_us(uint64_t us)
{
    return read_register(cntfrq_el0) / 1000000 * us;
}

static inline void mask_interrupts(void)
{
    __asm__ volatile("msr daifset, #2" : : : "memory");
}

static inline void unmask_interrupts(void)
{
    __asm__ volatile("msr daifclr, #2" : : : "memory");
}

/* Enables this vCPU's interrupts in the GIC. */
void gic_start_vcpu(unsigned vcpu);
uint32_t gic_acknowledge(void);
void gic_end(uint32_t intid);
void gic_interrupt_vcpu(unsigned vcpu);

/* Switches a vCPU on, which begins with `vcpu_main`. Returns 0, or an error of PSCI. */
int64_t switch_on(unsigned vcpu);
_Noreturn void switch_machine_off(void);
/* A word that EL2 counts of a vCPU of this VM (docs/src/design/status.md). */
uint64_t counter_of(unsigned vcpu, unsigned word);

void print(const char *text);
void print_number(uint64_t value);

#endif
#endif
