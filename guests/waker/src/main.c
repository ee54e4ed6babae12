// The two roles: waking at each period, and calling the hypervisor.
#include "platform.h"

enum role { WAKE, CALL };

// How many values there is room for.
#define ROOM (1u << 16)
// How long one line takes at least, so that the console of no hypervisor overflows.
#define LINE_NS 20000
// How far ahead the timer is set that fires while the guest runs.
#define AHEAD_NS 20000
// Repetitions that are not told: the first may find what the hypervisor prepares once.
#define FIRST 4

static uint32_t values[ROOM] __attribute__((section(".bss")));
static volatile uint64_t seen; // the counter in the last handler
static volatile uint64_t fired; // interrupts so far

extern void burn(uint64_t pairs);

// Called by the vector.
void interrupt(uint64_t counter)
{
    uint32_t intid = gic_acknowledge();
    seen = counter;
    fired++;
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
    uint64_t before = fired;
    while (fired == before)
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
            values[woken++ % ROOM] = (uint32_t)(seen - due);
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
    uint64_t count = fired, before = now();
    __asm__ volatile("msr daifclr, #2" ::: "memory");
    gic_interrupt_self();
    while (fired == count)
        ;
    __asm__ volatile("msr daifset, #2" ::: "memory");
    return seen - before;
}

// Returns how late the timer's interrupt comes while the guest runs.
static uint64_t timer(void)
{
    uint64_t count = fired, due = now() + AHEAD_NS;
    set_timer(due);
    __asm__ volatile("msr daifclr, #2" ::: "memory");
    while (fired == count)
        ;
    __asm__ volatile("msr daifset, #2" ::: "memory");
    return seen - due;
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

_Noreturn void run(void)
{
    gic_start();
    if (parameters.role == WAKE) {
        wake();
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
