#include "pacer.h"

#include "FreeRTOS.h"
#include "cassata_tasks.h"
#include "console.h"
#include "cpu.h"
#include "firmware.h"
#include "gic.h"
#include "platform.h"
#include "spread.h"
#include "task.h"
#include "tasks.h"
#include "vmpcp_freertos.h"

/* The interrupt that one core sends to another. */
#define SGI_INTID 1

/* PL031 (Arm DDI 0224), as the board has it. */
#define RTC_DR   (RTC_BASE + 0x00)
#define RTC_MR   (RTC_BASE + 0x04)
#define RTC_IMSC (RTC_BASE + 0x10)
#define RTC_RIS  (RTC_BASE + 0x14)
#define RTC_ICR  (RTC_BASE + 0x1c)

/* The names in the description of the mutex, the task here, and the pacer. */
#define MUTEX "R"
#define TASK  "measured"
#define PACER "pacer"

/* crates/abi/src/service.rs in C. */
#define MUTEX_OPEN   0xc6000012u
#define MUTEX_LOCK   0xc6000014u
#define MUTEX_UNLOCK 0xc6000016u

/* After one interrupt, so long at least until the next: the task sleeps by then. */
#define LEAST_US 20

/* What the cores tell each other. The pacer writes when it raised an interrupt before that comes,
 * and the number of an interrupt that is about to come; the task the number of the last that it
 * has served. */
static uint64_t raised, announced, served;

static enum wake wake;
static uint64_t begin, mean_ticks, least_ticks;
static TaskHandle_t woken;
static struct vmpcp_task self;
static struct vmpcp_inter mutex;
static uint64_t handle;

/* Of the interrupt that is served. */
static struct report_sample sample;

static void put(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static uint64_t get(uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* The second core never sleeps: no hypervisor has anything to do for it. It looks at the counter
 * now and then only, which takes an emulator less time than looking always. */
static void pause_until(uint64_t when)
{
    while (counter_now() < when)
        for (int i = 0; i < 100; i++)
            __asm__ volatile("");
}

/* A core may see another's counter a little behind its own. */
static uint32_t since(uint64_t now, uint64_t then)
{
    uint64_t passed = now > then ? now - then : 0;

    return passed > UINT32_MAX ? UINT32_MAX : (uint32_t)passed;
}

static void must(bool is_so, const char *what)
{
    if (is_so)
        return;
    print("freertos: error: %s\n", what);
    system_off();
}

/* The second core: brings the device or the mutex so far that one store or call raises the interrupt. */
static void prepare(uint64_t number)
{
    switch (wake) {
    case WAKE_RTC:
        mmio_write32(RTC_IMSC, 0);
        /* The second may pass between the read and the write. */
        while (mmio_read32(RTC_RIS) == 0)
            mmio_write32(RTC_MR, mmio_read32(RTC_DR));
        break;
    case WAKE_GRANT:
        must((int64_t)firmware_call(MUTEX_LOCK, handle, 0, 0).x[0] >= 0, "the pacer does not get the mutex");
        break;
    case WAKE_SGI:
    case WAKE_TIMER:
        break;
    }
    put(&announced, number);
    /* On which the task comes to wait for the mutex. */
    if (wake == WAKE_GRANT)
        gic_send_to_first(SGI_INTID);
}

static void raise(void)
{
    switch (wake) {
    case WAKE_RTC:
        mmio_write32(RTC_IMSC, 1);
        break;
    case WAKE_GRANT:
        firmware_call(MUTEX_UNLOCK, handle, 0, 0);
        break;
    case WAKE_SGI:
    case WAKE_TIMER:
        gic_send_to_first(SGI_INTID);
        break;
    }
}

void pacer_run(void)
{
    gic_init_sender();
    if (wake == WAKE_GRANT)
        handle = firmware_call(MUTEX_OPEN, cassata_hash(MUTEX), cassata_hash(PACER), 0).x[1];
    pause_until(begin);
    for (uint64_t number = 1;; number++) {
        prepare(number);
        pause_until(counter_now() + least_ticks + spread(number, 2 * (mean_ticks - least_ticks)));
        put(&raised, counter_now());
        DSB();
        raise();
        while (get(&served) != number) {
        }
    }
}

bool pacer_create(const struct options *options)
{
    wake = options->wake;
    mean_ticks = counter_hz() * options->period_us / 1000000;
    least_ticks = counter_hz() * LEAST_US / 1000000;
    switch (wake) {
    case WAKE_TIMER:
        return false;
    case WAKE_SGI:
        gic_enable_private(SGI_INTID, portLOWEST_USABLE_INTERRUPT_PRIORITY);
        break;
    case WAKE_RTC:
        gic_enable_shared(RTC_INTID, portLOWEST_USABLE_INTERRUPT_PRIORITY);
        break;
    case WAKE_GRANT:
        gic_enable_private(SGI_INTID, portLOWEST_USABLE_INTERRUPT_PRIORITY);
        must(vmpcp_init(&vmpcp_freertos, (const unsigned[]){ 0 }, 1) >= 0, "wake=grant needs the hypervisor");
        gic_enable_private(VMPCP_GRANT_INTID, portLOWEST_USABLE_INTERRUPT_PRIORITY);
        break;
    }
    return true;
}

void pacer_wakes(void *task)
{
    woken = task;
    if (wake != WAKE_GRANT)
        return;
    must(vmpcp_task_add(&self, task, 0, MEASURED_PRIORITY) >= 0, "vmpcp_task_add");
    must(vmpcp_inter_open(&mutex, &self, MUTEX, TASK) >= 0, "wake=grant needs a gcs \"" MUTEX "\" of the tasks \""
         TASK "\" and \"" PACER "\"");
}

bool pacer_begin(uint64_t when)
{
    if (wake == WAKE_TIMER)
        return false;
    begin = when;
    must(cpu_on(1), "wake= needs a second core");
    return true;
}

struct report_sample pacer_await(void)
{
    ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
    if (wake == WAKE_GRANT)
        must(vmpcp_inter_lock(&mutex) >= 0, "MUTEX_LOCK");
    sample.dispatch = since(counter_now(), sample.raised);
    return sample;
}

void pacer_release(void)
{
    if (wake == WAKE_GRANT)
        must(vmpcp_inter_unlock(&mutex) >= 0, "MUTEX_UNLOCK");
    put(&served, get(&announced));
}

void pacer_interrupt(uint32_t intid, uint64_t entered)
{
    BaseType_t switches = pdFALSE;

    sample.raised = get(&raised);
    sample.response = since(entered, sample.raised);
    if (intid == VMPCP_GRANT_INTID) {
        vmpcp_freertos_interrupt();
        return;
    }
    if (intid == RTC_INTID)
        mmio_write32(RTC_ICR, 1);
    vTaskNotifyGiveFromISR(woken, &switches);
    portYIELD_FROM_ISR(switches);
}
