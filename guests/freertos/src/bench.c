/* How long each call of guests/vmpcp takes, by the counter: Table II of vMPCP (RTSS 2014). No
 * other task wants what is locked. */
#include "FreeRTOS.h"
#include "console.h"
#include "cpu.h"
#include "firmware.h"
#include "statistics.h"
#include "task.h"
#include "tasks.h"
#include "vmpcp_freertos.h"

#define STACK_WORDS 1024

/* As systems/bench/vmpcp.toml calls them. */
#define MUTEX "R"

static uint64_t repetitions, stop;
static struct vmpcp_task one, two;
static struct vmpcp_inter of_one, of_two;
static int number;

static void must(int answer)
{
    if (answer >= 0)
        return;
    print("freertos: error: a call of vmpcp answers -%u\n", (unsigned)-answer);
    system_off();
}

static void nothing(void)
{
}

static void intra_open(void)
{
    number = vmpcp_intra_open(MUTEX, VMPCP_VCPU_FIRST);
    must(number);
}

static void intra_destroy(void)
{
    must(vmpcp_intra_destroy(number));
}

static void intra_destroy_twice(void)
{
    intra_destroy();
    intra_destroy();
}

static void intra_lock(void)
{
    must(vmpcp_intra_lock(number, &one));
}

static void intra_trylock(void)
{
    must(vmpcp_intra_trylock(number, &one));
}

static void intra_unlock(void)
{
    must(vmpcp_intra_unlock(number, &one));
}

static void intra_open_and_lock(void)
{
    intra_open();
    intra_lock();
}

static void intra_unlock_and_destroy(void)
{
    intra_unlock();
    intra_destroy();
}

static void start_gcs(void)
{
    must(vmpcp_start_gcs(0));
}

static void finish_gcs(void)
{
    must(vmpcp_finish_gcs(0));
}

static void inter_open(void)
{
    must(vmpcp_inter_open(&of_one, &one, MUTEX, "one"));
}

static void inter_open_by_two(void)
{
    must(vmpcp_inter_open(&of_two, &two, MUTEX, "two"));
}

static void inter_close(void)
{
    must(vmpcp_inter_close(&of_one));
}

static void inter_close_both(void)
{
    must(vmpcp_inter_close(&of_one));
    must(vmpcp_inter_close(&of_two));
}

static void inter_lock(void)
{
    must(vmpcp_inter_lock(&of_one));
}

static void inter_trylock(void)
{
    must(vmpcp_inter_trylock(&of_one));
}

static void inter_unlock(void)
{
    must(vmpcp_inter_unlock(&of_one));
}

static void inter_open_and_lock(void)
{
    inter_open();
    inter_lock();
}

static void inter_unlock_and_close(void)
{
    inter_unlock();
    inter_close();
}

/* What is measured, and what is done before and after each time. */
static const struct {
    const char *name;
    void (*before)(void), (*measured)(void), (*after)(void);
} calls[] = {
    { "intra_open_create", nothing, intra_open, intra_destroy },
    { "intra_open_existing", intra_open, intra_open, intra_destroy_twice },
    { "intra_destroy", intra_open, intra_destroy, nothing },
    { "intra_lock", intra_open, intra_lock, intra_unlock_and_destroy },
    { "intra_trylock", intra_open, intra_trylock, intra_unlock_and_destroy },
    { "intra_unlock", intra_open_and_lock, intra_unlock, intra_destroy },
    { "start_gcs", nothing, start_gcs, finish_gcs },
    { "finish_gcs", start_gcs, finish_gcs, nothing },
    { "inter_open_create", nothing, inter_open, inter_close },
    { "inter_open_existing", inter_open_by_two, inter_open, inter_close_both },
    { "inter_destroy", inter_open, inter_close, nothing },
    { "inter_lock", inter_open, inter_lock, inter_unlock_and_close },
    { "inter_trylock", inter_open, inter_trylock, inter_unlock_and_close },
    { "inter_unlock", inter_open_and_lock, inter_unlock, inter_close },
};

static uint64_t ticks_of(void (*measured)(void))
{
    uint64_t begin = counter_now();

    measured();
    return counter_now() - begin;
}

/* Powers off if it was asked to before or after the last time that this call is made: what EL2
 * executes until then differs by what it executes for the call. */
static void stop_here(size_t call, uint64_t n, bool after)
{
    if (n + 1 == repetitions && stop == 2 * call + after + 1)
        system_off();
}

static void bench_task(void *unused)
{
    uint64_t overhead = UINT64_MAX;

    (void)unused;
    for (int i = 0; i < 100; i++) {
        uint64_t ticks = ticks_of(nothing);
        overhead = ticks < overhead ? ticks : overhead;
    }
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct statistics series = { 0 };
        for (uint64_t n = 0; n < repetitions; n++) {
            calls[i].before();
            stop_here(i, n, false);
            uint64_t ticks = ticks_of(calls[i].measured);
            stop_here(i, n, true);
            statistics_add(&series, ticks < overhead ? 0 : ticks - overhead);
            calls[i].after();
        }
        print("freertos: vmpcp %s count=%lu", calls[i].name, series.count);
        statistics_print("call", &series);
        print("\n");
    }
    system_off();
}

void bench_create(const struct options *options)
{
    static StackType_t stack[STACK_WORDS];
    static StaticTask_t task;
    TaskHandle_t handle;

    repetitions = options->bench;
    stop = options->bench_stop;
    must(vmpcp_init(&vmpcp_freertos, (const unsigned[]){ 0 }, 1));
    handle = xTaskCreateStatic(bench_task, "bench", STACK_WORDS, NULL, SHARING_PRIORITY, stack, &task);
    must(vmpcp_task_add(&one, handle, 0, SHARING_PRIORITY));
    /* It never runs: only its use of the mutex counts. */
    must(vmpcp_task_add(&two, NULL, 0, SHARING_PRIORITY + 1));
}
