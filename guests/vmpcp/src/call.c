#include "internal.h"

/* SMC Calling Convention 1.1 (DEN0028): X4 to X17 are preserved. */
struct vmpcp_answer vmpcp_call(uint32_t function, uint64_t first, uint64_t second)
{
    register uint64_t x0 __asm__("x0") = function;
    register uint64_t x1 __asm__("x1") = first;
    register uint64_t x2 __asm__("x2") = second;
    register uint64_t x3 __asm__("x3") = 0;

    __asm__ volatile("hvc #0" : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3) : : "memory");
    return (struct vmpcp_answer){ { x0, x1, x2, x3 } };
}

uint64_t vmpcp_counter(void)
{
    uint64_t value;

    __asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(value) : : "memory");
    return value;
}
