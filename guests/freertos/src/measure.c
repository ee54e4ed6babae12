/* The measured task. */
#include "tasks.h"

#include "FreeRTOS.h"
#include "console.h"
#include "cpu.h"
#include "firmware.h"
#include "pacer.h"
#include "report.h"
#include "statistics.h"
#include "task.h"
#include "tick.h"

#define STACK_WORDS 1024

static struct options options;
static struct statistics response, dispatch;
static uint64_t period_ticks, missed;

static void finish(void)
{
    cassata_task_release(reported_load(), 0);
    print("freertos: summary activations=%lu missed=%lu", dispatch.count, missed);
    statistics_print("response", &response);
    statistics_print("dispatch", &dispatch);
    print("\n");
    system_off();
}

static void record(struct report_sample sample, int late)
{
    report_sample(sample, late);
    missed += (uint64_t)late;
    statistics_add(&response, sample.response);
    statistics_add(&dispatch, sample.dispatch);
}

/* The activation released by tick number `release` began at `now`. Every
 * release is recorded once, however late: see tick.c. */
static void record_tick(TickType_t release, uint64_t now)
{
    uint64_t raised = tick_due(release);
    struct report_sample sample = { .raised = raised };

    sample.dispatch = saturate32(now - raised);
    /* If the handler's time is forgotten: it ran before this task did. */
    sample.response = tick_response(release, sample.dispatch);
    record(sample, now >= tick_due(release + period_ticks));
}

static void measured_task(void *unused)
{
    TickType_t release = xTaskGetTickCount();

    (void)unused;
    for (;;) {
        cassata_task_release(reported_task(), tick_due(release + period_ticks));
        xTaskDelayUntil(&release, period_ticks);
        record_tick(release, counter_now());
        cassata_task_finish(reported_task(), counter_now(), tick_length(period_ticks));
        if (dispatch.count == options.activations)
            finish();
    }
}

/* No interrupt of the pacer's is missed: the next waits until this one is served. */
static void paced_task(void *unused)
{
    (void)unused;
    for (;;) {
        record(pacer_await(), false);
        if (dispatch.count == options.activations)
            finish();
        pacer_release();
    }
}

void measure_create(const struct options *chosen)
{
    static StackType_t stack[STACK_WORDS];
    static StaticTask_t task;

    options = *chosen;
    period_ticks = chosen->period_us / chosen->tick_us;
    if (chosen->task[0] != '\0' && !report_tasks_open(chosen->task))
        system_off();
    report_open(counter_hz() * chosen->period_us / 1000000, chosen->load_permille);
    const bool is_paced = pacer_create(chosen);
    TaskHandle_t handle = xTaskCreateStatic(is_paced ? paced_task : measured_task, "measure", STACK_WORDS, NULL,
                                            MEASURED_PRIORITY, stack, &task);
    if (is_paced)
        pacer_wakes(handle);
}
