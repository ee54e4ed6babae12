/* System registers and barriers. */
#ifndef CPU_H
#define CPU_H

#include <stdint.h>

#define READ_SYSREG(name) ({ uint64_t v_; __asm__ volatile("mrs %0, " name : "=r"(v_)); v_; })
#define WRITE_SYSREG(name, value) \
    __asm__ volatile("msr " name ", %0" : : "r"((uint64_t)(value)) : "memory")
#define ISB() __asm__ volatile("isb" : : : "memory")
#define DSB() __asm__ volatile("dsb sy" : : : "memory")

/* The GIC CPU interface, by encoding because older assemblers lack the names. */
#define ICC_BPR1_EL1    "s3_0_c12_c12_3"
#define ICC_SRE_EL1     "s3_0_c12_c12_5"
#define ICC_IGRPEN1_EL1 "s3_0_c12_c12_7"
#define ICC_PMR_EL1     "s3_0_c4_c6_0"
#define ICC_SGI1R_EL1   "s3_0_c12_c11_5"

/* The generic counter as this virtual machine sees it, in ticks. */
static inline uint64_t counter_now(void)
{
    return READ_SYSREG("cntvct_el0");
}

/* Ticks of the counter in a second. */
static inline uint64_t counter_hz(void)
{
    return READ_SYSREG("cntfrq_el0");
}

static inline void mmio_write32(uint64_t address, uint32_t value)
{
    /* One plain store: a hypervisor must be able to emulate it from the
     * syndrome, which compound addressing modes do not give. */
    __asm__ volatile("str %w0, [%1]" : : "r"(value), "r"(address) : "memory");
}

static inline uint32_t mmio_read32(uint64_t address)
{
    uint32_t value;
    __asm__ volatile("ldr %w0, [%1]" : "=r"(value) : "r"(address) : "memory");
    return value;
}

#endif
