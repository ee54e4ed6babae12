// GICv3 (Arm IHI 0069), PSCI by HVC (Arm DEN 0022), the data and flag registers of a PL011.
#include "platform.h"

#define GICR_STRIDE 0x20000ull
#define SGI_BASE 0x10000ull

static volatile uint32_t *word(uint64_t address) { return (volatile uint32_t *)address; }

void gic_start(void)
{
    uint64_t redistributor = parameters.gicr + this_core() * GICR_STRIDE;
    if (this_core() == 0)
        *word(parameters.gicd) = 0x12; // ARE, group 1
    *word(redistributor + 0x14) &= ~2u; // GICR_WAKER: awake
    while (*word(redistributor + 0x14) & 4u)
        ;
    *word(redistributor + SGI_BASE + 0x80) = ~0u; // all in group 1
    *word(redistributor + SGI_BASE + 0x100) = 1u << TIMER_INTID | 1u << 1;
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

uint32_t gic_type(void) { return *word(parameters.gicd + 4); }

static uint64_t psci(uint64_t function, uint64_t a, uint64_t b, uint64_t c)
{
    register uint64_t x0 __asm__("x0") = function;
    register uint64_t x1 __asm__("x1") = a;
    register uint64_t x2 __asm__("x2") = b;
    register uint64_t x3 __asm__("x3") = c;
    __asm__ volatile("hvc #0" : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3)::"memory");
    return x0;
}

uint64_t psci_version(void) { return psci(0x84000000, 0, 0, 0); }

extern char enter_second[];

int64_t psci_start_second(void)
{
    return (int64_t)psci(0xc4000003, 1, (uint64_t)enter_second, 1);
}

static void put(char c)
{
    while (*word(parameters.uart + 0x18) & 1u << 5) // UARTFR.TXFF
        ;
    *word(parameters.uart) = (uint8_t)c;
}

static void print(const char *text)
{
    while (*text)
        put(*text++);
}

static void print_number(uint64_t value)
{
    char digits[21];
    char *first = &digits[20];
    *first = 0;
    do
        *--first = (char)('0' + value % 10);
    while (value /= 10);
    print(first);
}

void tell(const char *name, uint64_t value)
{
    print("waker: ");
    print(name);
    put(' ');
    print_number(value);
    put('\n');
}

void tell_word(const char *word)
{
    print("waker: ");
    print(word);
    put('\n');
}
