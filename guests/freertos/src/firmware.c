#include "firmware.h"

#include "cpu.h"

/* crates/abi/src/service.rs in C. */
#define CALL_UID        0x8600ff01u
#define REPORT_AREA     0xc6000003u
#define PSCI_CPU_ON     0xc4000003u
#define PSCI_SYSTEM_OFF 0x84000008u
#define PSCI_SYSTEM_RESET 0x84000009u

static const uint32_t SERVICE_UID[4] = { 0xd27c4d1e, 0x534c2b0f, 0x6373509a, 0x61746173 };

/* Where the second core begins: start.S. */
void second_core(void);

/* SMC Calling Convention 1.1 (DEN0028): X4 to X17 are preserved. */
struct answer firmware_call(uint32_t function, uint64_t first, uint64_t second, uint64_t third)
{
    register uint64_t x0 __asm__("x0") = function;
    register uint64_t x1 __asm__("x1") = first;
    register uint64_t x2 __asm__("x2") = second;
    register uint64_t x3 __asm__("x3") = third;

    __asm__ volatile("hvc #0" : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3) : : "memory");
    return (struct answer){ { x0, x1, x2, x3 } };
}

static struct answer call(uint32_t function)
{
    return firmware_call(function, 0, 0, 0);
}

bool cpu_on(uint64_t affinity)
{
    return firmware_call(PSCI_CPU_ON, affinity, (uint64_t)second_core, 0).x[0] == 0;
}

void system_off(void)
{
    call(PSCI_SYSTEM_OFF);
    for (;;)
        __asm__ volatile("wfi");
}

void system_reset(void)
{
    call(PSCI_SYSTEM_RESET);
    for (;;)
        __asm__ volatile("wfi");
}

static bool cassata_is_below(void)
{
    struct answer uid = call(CALL_UID);

    for (int word = 0; word < 4; word++)
        if ((uint32_t)uid.x[word] != SERVICE_UID[word])
            return false;
    return true;
}

bool report_area(uint64_t *address, uint64_t *size)
{
    struct answer area;

    if (!cassata_is_below())
        return false;
    area = call(REPORT_AREA);
    if (area.x[0] != 0)
        return false;
    *address = area.x[1];
    *size = area.x[2];
    return true;
}
