// The roles: waking at each period, calling the hypervisor, and being woken by the second core.
#include "platform.h"

enum role { WAKE, CALL, WOKEN };

// How many values there is room for.
#define ROOM (1u << 16)
// How long one line takes at least, so that the console of no hypervisor overflows.
#define LINE_NS 20000
// How far ahead the timer is set that fires while the guest runs.
#define AHEAD_NS 20000
// Repetitions that are not told: the first may find what the hypervisor prepares once.
#define FIRST 4

static uint32_t values[ROOM] __attribute__((section(".bss")));
static struct {
    volatile uint64_t seen; // the counter in the last handler
    volatile uint64_t fired; // interrupts so far
} __attribute__((aligned(64))) cores[2];
// When the second core has sent its last interrupt, and how many of them the first has taken.
static uint64_t sent, taken;

extern void burn(uint64_t pairs);

// Called by the vector.
void interrupt(uint64_t counter)
{
    uint32_t intid = gic_acknowledge();
    cores[this_core()].seen = counter;
    cores[this_core()].fired++;
    if (intid == TIMER_INTID) {
        write_register(cntv_ctl_el0, 0);
        barrier();
    }
    gic_end(intid);
}

static void set_timer(uint64_t due)
{
    write_register(cntv_cval_el0, due);
    write_register(cntv_ctl_el0, 1);
    barrier();
}

// Sleeps until the next interrupt is handled. Masked: one that is pending ends the sleep, and is taken
// behind it.
static void sleep(void)
{
    unsigned core = this_core();
    uint64_t before = cores[core].fired;
    while (cores[core].fired == before)
        __asm__ volatile("wfi\n\tmsr daifclr, #2\n\tisb\n\tmsr daifset, #2" ::: "memory");
}

static void sleep_until(uint64_t due)
{
    set_timer(due);
    sleep();
}

static _Noreturn void stay(void)
{
    for (;;)
        __asm__ volatile("wfi");
}

static void pause(void)
{
    uint64_t end = now() + LINE_NS;
    while (now() < end)
        ;
}

static void tell_values(const char *name, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        tell(name, values[i]);
        pause();
    }
}

// Wakes once in each period. One that passes meanwhile is missed: a guest that gets no time must
// come to an end as well.
static void wake(void)
{
    uint64_t due = parameters.begin_ns, woken = 0, missed = 0;
    sleep_until(due - 1000000);
    tell_word("begin");
    for (uint64_t period = 0; period < parameters.count || parameters.is_endless; period++) {
        if (now() >= due) {
            missed++;
        } else {
            sleep_until(due);
            values[woken++ % ROOM] = (uint32_t)(cores[0].seen - due);
            burn(parameters.burn_ns / 2);
        }
        due += parameters.period_ns;
    }
    tell_values("wake", woken < ROOM ? woken : ROOM);
    tell("missed", missed);
}

static uint64_t call(void)
{
    uint64_t before = now();
    psci_version();
    return now() - before;
}

static uint64_t read(void)
{
    uint64_t before = now();
    gic_type();
    return now() - before;
}

// Returns the time until the vector of an interrupt that the guest sends itself while it runs.
static uint64_t interrupt_self(void)
{
    uint64_t count = cores[0].fired, before = now();
    __asm__ volatile("msr daifclr, #2" ::: "memory");
    gic_interrupt_first();
    while (cores[0].fired == count)
        ;
    __asm__ volatile("msr daifset, #2" ::: "memory");
    return cores[0].seen - before;
}

// Returns how late the timer's interrupt comes while the guest runs.
static uint64_t timer(void)
{
    uint64_t count = cores[0].fired, due = now() + AHEAD_NS;
    set_timer(due);
    __asm__ volatile("msr daifclr, #2" ::: "memory");
    while (cores[0].fired == count)
        ;
    __asm__ volatile("msr daifset, #2" ::: "memory");
    return cores[0].seen - due;
}

static void repeat(const char *name, uint64_t (*once)(void))
{
    for (uint64_t i = 0; i < parameters.count + FIRST; i++) {
        uint64_t took = once();
        if (i >= FIRST)
            values[(i - FIRST) % ROOM] = (uint32_t)took;
    }
    tell_values(name, parameters.count);
}

// Interrupts the first core, which sleeps, at times that it cannot know. The next one comes when the
// first core has taken this one.
static _Noreturn void interrupt_first(void)
{
    uint64_t random = 1, due = now();
    for (uint64_t i = 0; i < parameters.count; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        // From half of the mean time to one and a half of it.
        due += parameters.period_ns / 2 + (random >> 32) * parameters.period_ns / (1ull << 32);
        if (due > now())
            sleep_until(due);
        __atomic_store_n(&sent, now(), __ATOMIC_RELEASE);
        gic_interrupt_first();
        while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) <= i)
            ;
    }
    stay();
}

static void be_woken(void)
{
    sleep_until(parameters.begin_ns);
    tell_word("begin");
    if (psci_start_second() != 0) {
        tell_word("alone");
        stay();
    }
    for (uint64_t i = 0; i < parameters.count; i++) {
        sleep();
        values[i % ROOM] = (uint32_t)(cores[0].seen - __atomic_load_n(&sent, __ATOMIC_ACQUIRE));
        __atomic_store_n(&taken, i + 1, __ATOMIC_RELEASE);
    }
    tell_values("woken", parameters.count < ROOM ? parameters.count : ROOM);
}

_Noreturn void run(void)
{
    gic_start();
    if (this_core() != 0)
        interrupt_first();
    if (parameters.role == WAKE) {
        wake();
    } else if (parameters.role == WOKEN) {
        be_woken();
    } else {
        sleep_until(parameters.begin_ns);
        tell_word("begin");
        repeat("call", call);
        repeat("read", read);
        repeat("sgi", interrupt_self);
        repeat("timer", timer);
    }
    tell_word("done");
    stay();
}

_Noreturn void fault(uint64_t syndrome, uint64_t address)
{
    tell("esr", syndrome);
    tell("elr", address);
    tell_word("fault");
    stay();
}
