/* The task that shares memory with other VMs: each period it locks the mutex, does a round on the
 * page (guests/vmpcp/include/vmpcp_page.h), and gives the mutex back. */
#include "FreeRTOS.h"
#include "bootargs.h"
#include "cassata_tasks.h"
#include "console.h"
#include "cpu.h"
#include "firmware.h"
#include "gic.h"
#include "report.h"
#include "statistics.h"
#include "task.h"
#include "tasks.h"
#include "tick.h"
#include "vmpcp_freertos.h"
#include "vmpcp_page.h"

#define STACK_WORDS 1024

static struct options options;
static volatile struct vmpcp_page *page;
static struct vmpcp_task self;
static struct vmpcp_inter mutex;
static struct statistics locking;
static uint64_t waited, violations, owner_died;

static void must(int answer, const char *what)
{
    if (answer >= 0)
        return;
    print("freertos: error: %s answers -%u\n", what, (unsigned)-answer);
    system_off();
}

/* As load.c: so much time by the counter, whichever vCPU had the core meanwhile. */
static void pass_us(uint64_t us)
{
    uint64_t ticks = counter_hz() / 1000000 * us, begin = counter_now();

    while (counter_now() - begin < ticks) {
    }
}

static void round(void)
{
    struct cassata_section section = { .mutex = cassata_hash(options.mutex) };
    bool sound;
    int answer;

    section.asked = counter_now();
    answer = vmpcp_inter_lock(&mutex);
    section.had = counter_now();
    must(answer, "MUTEX_LOCK");
    section.queued = mutex.queued;
    statistics_add(&locking, section.had - section.asked);
    waited += mutex.queued != 0;
    owner_died += answer == VMPCP_OWNER_DIED;
    sound = vmpcp_page_begin(page, answer == VMPCP_OWNER_DIED);
    if (options.die_at != 0 && locking.count == options.die_at) {
        /* The job never ends. */
        cassata_task_release(reported_task(), 0);
        system_reset();
    }
    pass_us(options.hold_us);
    sound = vmpcp_page_finish(page, options.participant) && sound;
    section.gives = counter_now();
    must(vmpcp_inter_unlock(&mutex), "MUTEX_UNLOCK");
    section.gave = counter_now();
    cassata_task_section(reported_task(), &section);
    violations += !sound;
}

static void finish(void)
{
    cassata_task_release(reported_load(), 0);
    print("freertos: shared rounds=%lu waited=%lu owner_died=%lu violations=%lu", locking.count, waited,
          owner_died, violations);
    statistics_print("lock", &locking);
    print("\n");
    system_off();
}

static void sharing_task(void *unused)
{
    const TickType_t period = options.period_us / options.tick_us;
    TickType_t release = xTaskGetTickCount();

    (void)unused;
    must(vmpcp_inter_open(&mutex, &self, options.mutex, options.task), "MUTEX_OPEN");
    for (;;) {
        cassata_task_release(reported_task(), tick_due(release + period));
        xTaskDelayUntil(&release, period);
        round();
        cassata_task_finish(reported_task(), counter_now(), tick_length(period));
        if (locking.count == options.activations)
            finish();
    }
}

bool sharing_create(const struct options *chosen, const void *device_tree)
{
    static StackType_t stack[STACK_WORDS];
    static StaticTask_t task;
    const struct shared_memory memory = shared_memory_find(device_tree, chosen->memory);

    options = *chosen;
    if (memory.size < sizeof *page || memory.read_only) {
        print("freertos: error: there is no memory \"%s\" to write\n", chosen->memory);
        return false;
    }
    page = (volatile struct vmpcp_page *)memory.address;
    if (!report_tasks_open(chosen->task))
        return false;
    must(vmpcp_init(&vmpcp_freertos, (const unsigned[]){ 0 }, 1), "the service");
    TaskHandle_t handle = xTaskCreateStatic(sharing_task, "sharing", STACK_WORDS, NULL,
                                            SHARING_PRIORITY, stack, &task);
    must(vmpcp_task_add(&self, handle, 0, SHARING_PRIORITY), "vmpcp_task_add");
    gic_enable_private(VMPCP_GRANT_INTID, portLOWEST_USABLE_INTERRUPT_PRIORITY);
    print("freertos: shares memory \"%s\" under mutex \"%s\", participant %lu\n", chosen->memory,
          chosen->mutex, chosen->participant);
    return true;
}

void sharing_interrupt(void)
{
    vmpcp_freertos_interrupt();
}
