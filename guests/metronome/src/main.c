// The phases, and what is measured in them.
#include "platform.h"

enum phase { BUSY, IDLE, MIXED, IPI, PHASES };
static const char *const names[PHASES] = { "busy", "idle", "mixed", "ipi" };

#define INTERRUPTS ((volatile uint64_t *)0x48000000)
#define SHORTEST_NS 500
#define LOOP_INSTRUCTIONS 4

// How late interrupts were, by power of two: bin 0 is on time.
#define BINS 24

struct record {
    uint64_t interrupts, early, latest_ns, late_sum_ns;
    uint64_t bins[BINS];
    uint64_t loops, most_missing, most_surplus; // instructions against time
    uint64_t sgis;
} __attribute__((aligned(64)));

struct core {
    struct record record;
    uint64_t due; // when the interrupt is to come
    uint64_t seen; // the counter in the last handler
    uint64_t left; // interrupts in this phase
    uint64_t random;
    volatile uint64_t fired; // the timer's interrupt has come
} __attribute__((aligned(64)));

static struct core cores[MAX_CORES];
static unsigned count;
static volatile enum phase phase;
static unsigned opened, finished; // phases begun; cores that have ended this one
// The latest time that any core has read, and the farthest any other was behind.
static uint64_t latest_read, farthest_behind;

static unsigned random_below(struct core *core, unsigned n)
{
    core->random = core->random * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(core->random >> 33) % n;
}

static void max_shared(uint64_t *shared, uint64_t value)
{
    uint64_t old = __atomic_load_n(shared, __ATOMIC_RELAXED);
    while (old < value && !__atomic_compare_exchange_n(shared, &old, value, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static void compare_clocks(void)
{
    uint64_t others = __atomic_load_n(&latest_read, __ATOMIC_ACQUIRE);
    uint64_t mine = now();
    if (mine < others)
        max_shared(&farthest_behind, others - mine);
    else
        max_shared(&latest_read, mine);
}

static void set_timer(struct core *core)
{
    core->fired = 0;
    core->due = now() + SHORTEST_NS + random_below(core, 6000);
    write_register(cntv_cval_el0, core->due);
    write_register(cntv_ctl_el0, 1);
    barrier();
}

static void record_timer(struct core *core, uint64_t seen)
{
    struct record *r = &core->record;
    r->interrupts++;
    if (seen < core->due) {
        r->early++;
        return;
    }
    uint64_t late = seen - core->due;
    r->late_sum_ns += late;
    if (late > r->latest_ns)
        r->latest_ns = late;
    unsigned bin = late ? 64 - (unsigned)__builtin_clzll(late) : 0;
    r->bins[bin < BINS ? bin : BINS - 1]++;
}

// Called by the vector; returns whether the loop is to end.
uint64_t interrupt(uint64_t seen)
{
    struct core *core = &cores[this_core()];
    uint32_t intid = gic_acknowledge();
    core->seen = seen;
    if (intid == TIMER_INTID) {
        write_register(cntv_ctl_el0, 0);
        barrier();
        record_timer(core, seen);
        core->fired = 1;
    } else {
        core->record.sgis++;
    }
    gic_end(intid);
    return 1;
}

// Runs until the next interrupt of any kind, and compares instructions with time.
static void run_loop(struct core *core)
{
    extern uint64_t count_until_interrupt(void);
    uint64_t before = now();
    uint64_t executed = count_until_interrupt() * LOOP_INSTRUCTIONS;
    uint64_t took = core->seen - before;
    struct record *r = &core->record;
    r->loops++;
    if (took > executed && took - executed > r->most_missing)
        r->most_missing = took - executed;
    if (executed > took && executed - took > r->most_surplus)
        r->most_surplus = executed - took;
}

static void sleep(struct core *core)
{
    // Masked: a pending interrupt ends the sleep, and is taken afterwards. The
    // handler sets x20.
    if (!core->fired)
        __asm__ volatile("wfi\n\tmsr daifclr, #2\n\tisb\n\tmsr daifset, #2" ::: "memory", "x20");
}

static void wait_for_timer(struct core *core, unsigned index)
{
    set_timer(core);
    while (!core->fired) {
        if (phase == IPI && count > 1 && random_below(core, 4) == 0)
            gic_interrupt_core((index + 1) % count);
        if (phase == BUSY || (phase != IDLE && random_below(core, 2)))
            run_loop(core);
        else
            sleep(core);
    }
    compare_clocks();
}

static void field(const char *name, uint64_t value)
{
    print(" ");
    print(name);
    print("=");
    print_number(value);
}

static void report(void)
{
    for (unsigned i = 0; i < count; i++) {
        struct record *r = &cores[i].record;
        print("metronome: phase=");
        print(names[phase]);
        field("core", i);
        field("interrupts", r->interrupts);
        field("early", r->early);
        field("latest_ns", r->latest_ns);
        field("late_sum_ns", r->late_sum_ns);
        field("loops", r->loops);
        field("most_missing", r->most_missing);
        field("most_surplus", r->most_surplus);
        field("sgis", r->sgis);
        print(" bins=");
        for (unsigned b = 0; b < BINS; b++) {
            print_number(r->bins[b]);
            print(b + 1 < BINS ? "," : "\n");
        }
        *r = (struct record){ 0 };
    }
}

static void run_phase(struct core *core, unsigned index)
{
    for (core->left = *INTERRUPTS; core->left; core->left--)
        wait_for_timer(core, index);
}

static void lead(void)
{
    for (count = 1; count < MAX_CORES && psci_cpu_on(count) == 0; count++)
        ;
    for (unsigned p = 0; p < PHASES; p++) {
        phase = (enum phase)p;
        finished = 0;
        __atomic_store_n(&opened, p + 1, __ATOMIC_RELEASE);
        run_phase(&cores[0], 0);
        while (__atomic_load_n(&finished, __ATOMIC_ACQUIRE) < count - 1)
            ;
        report();
    }
    print("metronome:");
    field("farthest_behind_ns", farthest_behind);
    print("\nmetronome: done\n");
    psci_system_off();
}

static void follow(unsigned index)
{
    for (unsigned p = 0; p < PHASES; p++) {
        while (__atomic_load_n(&opened, __ATOMIC_ACQUIRE) <= p)
            ;
        run_phase(&cores[index], index);
        __atomic_add_fetch(&finished, 1, __ATOMIC_ACQ_REL);
    }
}

_Noreturn void core_main(unsigned index)
{
    cores[index].random = index + 1;
    gic_start_core(index);
    if (index == 0)
        lead();
    follow(index);
    for (;;)
        __asm__ volatile("wfi");
}

_Noreturn void fault(uint64_t syndrome, uint64_t address)
{
    print("metronome: fault");
    field("esr", syndrome);
    field("elr", address);
    print("\n");
    psci_system_off();
}
