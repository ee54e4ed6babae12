// QEMU's virt board: GICv3 (Arm IHI 0069), PSCI by HVC (Arm DEN 0022), PL011.
#include "platform.h"

#define GICD 0x08000000ull
#define GICR 0x080a0000ull
#define GICR_STRIDE 0x20000ull
#define SGI_BASE 0x10000ull
#define UART 0x09000000ull

#define SGI_INTID 1

static volatile uint32_t *word(uint64_t address) { return (volatile uint32_t *)address; }

void gic_start_core(unsigned core)
{
    uint64_t redistributor = GICR + core * GICR_STRIDE;
    if (core == 0)
        *word(GICD) = 0x12; // ARE, group 1
    *word(redistributor + 0x14) &= ~2u; // GICR_WAKER: awake
    while (*word(redistributor + 0x14) & 4u)
        ;
    *word(redistributor + SGI_BASE + 0x80) = ~0u; // all in group 1
    *word(redistributor + SGI_BASE + 0x100) = 1u << TIMER_INTID | 1u << SGI_INTID;
    write_register(S3_0_C12_C12_5, 1); // ICC_SRE_EL1
    barrier();
    write_register(S3_0_C4_C6_0, 0xff); // ICC_PMR_EL1
    write_register(S3_0_C12_C12_7, 1); // ICC_IGRPEN1_EL1
    barrier();
}

uint32_t gic_acknowledge(void) { return (uint32_t)read_register(S3_0_C12_C12_0) & 0xffffff; }

void gic_end(uint32_t intid)
{
    write_register(S3_0_C12_C12_1, intid);
    barrier();
}

void gic_interrupt_core(unsigned core)
{
    // ICC_SGI1R_EL1; affinity 0.0.0.core
    write_register(S3_0_C12_C11_5, (uint64_t)SGI_INTID << 24 | 1ull << core);
    barrier();
}

static int64_t psci(uint64_t function, uint64_t a, uint64_t b, uint64_t c)
{
    register uint64_t x0 __asm__("x0") = function;
    register uint64_t x1 __asm__("x1") = a;
    register uint64_t x2 __asm__("x2") = b;
    register uint64_t x3 __asm__("x3") = c;
    __asm__ volatile("hvc #0" : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3)::"memory");
    return (int64_t)x0;
}

extern char start_core[];

int64_t psci_cpu_on(unsigned core) { return psci(0xc4000003, core, (uint64_t)start_core, core); }

_Noreturn void psci_system_off(void)
{
    for (;;)
        psci(0x84000008, 0, 0, 0);
}

void print(const char *text)
{
    for (; *text; text++)
        *word(UART) = (uint8_t)*text;
}

void print_number(uint64_t value)
{
    char digits[21];
    char *first = &digits[20];
    *first = 0;
    do
        *--first = (char)('0' + value % 10);
    while (value /= 10);
    print(first);
}

// The compiler may call it for what it finds to be one.
void *memset(void *target, int byte, unsigned long size)
{
    for (unsigned char *at = target; size; size--)
        *at++ = (unsigned char)byte;
    return target;
}
