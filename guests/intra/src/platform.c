/* GICv3 (Arm IHI 0069), PSCI (Arm DEN0022), PL011, and the Cassata service. */
#include "platform.h"

#include <stddef.h>

#define COUNTER         0xc6000002u
#define PSCI_CPU_ON     0xc4000003u
#define PSCI_SYSTEM_OFF 0x84000008u

#define UARTDR      (UART_BASE + 0x00)
#define UARTFR      (UART_BASE + 0x18)
#define UARTFR_TXFF (1u << 5)

/* One plain access each, so that EL2 can emulate it from the syndrome. */
static void write32(uint64_t address, uint32_t value)
{
    __asm__ volatile("str %w0, [%1]" : : "r"(value), "r"(address) : "memory");
}

static uint32_t read32(uint64_t address)
{
    uint32_t value;

    __asm__ volatile("ldr %w0, [%1]" : "=r"(value) : "r"(address) : "memory");
    return value;
}

void gic_start_vcpu(unsigned vcpu)
{
    uint64_t redistributor = GICR_BASE + (uint64_t)vcpu * GICR_STRIDE, sgis = redistributor + 0x10000;

    if (vcpu == 0)
        write32(GICD_BASE, 1u << 4 | 1u << 1); /* ARE, group 1 */
    write32(redistributor + 0x14, read32(redistributor + 0x14) & ~2u); /* GICR_WAKER */
    while (read32(redistributor + 0x14) & 4u) {
    }
    write32(sgis + 0x80, ~0u); /* all in group 1 */
    write32(sgis + 0x100, 1u << TIMER_INTID | 1u << GRANT_SGI);
    write_register(s3_0_c12_c12_5, 1); /* ICC_SRE_EL1 */
    barrier();
    write_register(s3_0_c4_c6_0, 0xff); /* ICC_PMR_EL1 */
    write_register(s3_0_c12_c12_7, 1); /* ICC_IGRPEN1_EL1 */
    barrier();
}

uint32_t gic_acknowledge(void)
{
    uint32_t intid = (uint32_t)read_register(s3_0_c12_c12_0) & 0xffffff; /* ICC_IAR1_EL1 */

    /* The interrupt is acknowledged before what its sender wrote is read. */
    __asm__ volatile("dsb sy" : : : "memory");
    return intid;
}

void gic_end(uint32_t intid)
{
    write_register(s3_0_c12_c12_1, intid); /* ICC_EOIR1_EL1 */
    barrier();
}

void gic_interrupt_vcpu(unsigned vcpu)
{
    /* What was written before is there when the interrupt comes. */
    __asm__ volatile("dsb ishst" : : : "memory");
    /* ICC_SGI1R_EL1; vCPU n has affinity 0.0.0.n. */
    write_register(s3_0_c12_c11_5, (uint64_t)GRANT_SGI << 24 | UINT64_C(1) << vcpu);
    barrier();
}

struct answer {
    uint64_t x[4];
};

static struct answer call(uint32_t function, uint64_t first, uint64_t second, uint64_t third)
{
    register uint64_t x0 __asm__("x0") = function;
    register uint64_t x1 __asm__("x1") = first;
    register uint64_t x2 __asm__("x2") = second;
    register uint64_t x3 __asm__("x3") = third;

    __asm__ volatile("hvc #0" : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3) : : "memory");
    return (struct answer){ { x0, x1, x2, x3 } };
}

int64_t switch_on(unsigned vcpu)
{
    extern char start_vcpu[];

    return (int64_t)call(PSCI_CPU_ON, vcpu, (uint64_t)start_vcpu, vcpu).x[0];
}

void switch_machine_off(void)
{
    for (;;)
        call(PSCI_SYSTEM_OFF, 0, 0, 0);
}

uint64_t counter_of(unsigned vcpu, unsigned word)
{
    return call(COUNTER, vcpu, word, 0).x[1];
}

void print(const char *text)
{
    for (; *text != '\0'; text++) {
        while (read32(UARTFR) & UARTFR_TXFF) {
        }
        write32(UARTDR, (unsigned char)*text);
    }
}

void print_number(uint64_t value)
{
    char digits[21], *first = &digits[20];

    *first = '\0';
    do
        *--first = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    print(first);
}

/* The compiler may call these for what it finds to be one of them. */
void *memset(void *to, int byte, size_t count)
{
    for (unsigned char *at = to; count > 0; count--)
        *at++ = (unsigned char)byte;
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t count)
{
    const unsigned char *source = from;

    for (unsigned char *at = to; count > 0; count--)
        *at++ = *source++;
    return to;
}
