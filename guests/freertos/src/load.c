/* The load task. The share is one of real time: it works until the counter has
 * moved on by that much since it began in this period, whichever vCPU had the core
 * meanwhile. The work units it finishes tell how much of that it really had. */
#include "tasks.h"

#include "FreeRTOS.h"
#include "cpu.h"
#include "report.h"
#include "task.h"
#include "tick.h"

#define STACK_WORDS 1024

/* Iterations of one work unit, well under a microsecond. */
#define UNIT 128

static uint64_t period_ticks;
static uint64_t burn_ticks;

static void work_unit(void)
{
    uint64_t state = 1;

    for (int i = 0; i < UNIT; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        __asm__ volatile("" : "+r"(state));
    }
}

static void load_task(void *unused)
{
    TickType_t release = xTaskGetTickCount();
    uint64_t units = 0;

    (void)unused;
    for (;;) {
        cassata_task_release(reported_load(), tick_due(release + period_ticks));
        /* Releases that are already over are let go: what was not burnt then
         * must not be burnt on top of a later share. */
        if (xTaskDelayUntil(&release, period_ticks) == pdFALSE)
            release = xTaskGetTickCount();

        for (uint64_t begin = counter_now(); counter_now() - begin < burn_ticks; units++)
            work_unit();
        report_load_units(units);
        cassata_task_finish(reported_load(), counter_now(), tick_length(period_ticks));
    }
}

void load_create(const struct options *options)
{
    static StackType_t stack[STACK_WORDS];
    static StaticTask_t task;

    if (options->load_permille == 0)
        return;
    period_ticks = options->period_us / options->tick_us;
    burn_ticks = counter_hz() * options->period_us / 1000000 * options->load_permille / 1000;
    xTaskCreateStatic(load_task, LOAD_NAME, STACK_WORDS, NULL, LOAD_PRIORITY, stack, &task);
}
