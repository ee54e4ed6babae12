/* Three tasks share what guests/vmpcp keeps for tasks of one VM: resources of this vCPU under both
 * protocols, and a mutex of the VM. Each round is one of the stories below, in which each task notes what
 * it does, by a letter: the order tells which of them ran. Says so as the probe does. */
#include <string.h>

#include "FreeRTOS.h"
#include "console.h"
#include "firmware.h"
#include "task.h"
#include "tasks.h"
#include "vmpcp_freertos.h"

#define STACK_WORDS 1024

/* As the library and the kernel have them. */
#define LOW 1
#define MIDDLE 2
#define HIGH 3

/* Ticks from the beginning of a round: until when the low task holds something, when it looks at what was
 * noted, and when the next round begins. */
#define GIVES_BACK 6
#define LOOKS 8
#define ROUND 10

/* The tick at which the first round begins. */
#define FIRST 10

/* Letters in a round. */
#define MOST_EVENTS 16

struct story {
    const char *name, expected[MOST_EVENTS];
    TickType_t high_begins, middle_begins;
    void (*low)(TickType_t until), (*middle)(void), (*high)(void);
};

static uint64_t rounds;
static struct vmpcp_task low, middle, high;
static struct vmpcp_local inherits, nested, ceiling;
static int mutex;
static char happened[MOST_EVENTS];
static unsigned events;

static void must(int answer)
{
    if (answer >= 0)
        return;
    print("FAIL resources: a call of vmpcp answers -%u\nDONE passed=0 failed=1 skipped=0\n",
          (unsigned)-answer);
    system_off();
}

static void note(char event)
{
    if (events < MOST_EVENTS - 1)
        happened[events++] = event;
}

static void sleep_until(TickType_t tick)
{
    TickType_t zero = 0;

    xTaskDelayUntil(&zero, tick);
}

static void work_until(TickType_t tick)
{
    while (xTaskGetTickCount() < tick) {
    }
}

/* Holds it, and another one within that: what the task holds itself is in no task's way. */
static void hold(struct vmpcp_local *resource, TickType_t until)
{
    must(vmpcp_local_lock(resource, &low));
    note('L');
    work_until(until);
    must(vmpcp_local_lock(&nested, &low));
    must(vmpcp_local_unlock(&nested, &low));
    note('l');
    must(vmpcp_local_unlock(resource, &low));
}

static void low_inherits(TickType_t until)
{
    hold(&inherits, until);
}

static void low_has_the_ceiling(TickType_t until)
{
    hold(&ceiling, until);
}

/* It sleeps in its section: else none of the others would run before its end. */
static void low_holds_the_mutex(TickType_t until)
{
    must(vmpcp_intra_lock(mutex, &low));
    note('L');
    sleep_until(until);
    note('l');
    must(vmpcp_intra_unlock(mutex, &low));
}

static void use(struct vmpcp_local *resource, struct vmpcp_task *self)
{
    must(vmpcp_local_lock(resource, self));
    note(self == &high ? 'H' : 'M');
    must(vmpcp_local_unlock(resource, self));
}

static void use_mutex(struct vmpcp_task *self)
{
    if (vmpcp_intra_trylock(mutex, self) != VMPCP_BUSY)
        note('?');
    must(vmpcp_intra_lock(mutex, self));
    note(self == &high ? 'H' : 'M');
    must(vmpcp_intra_unlock(mutex, self));
}

static void nothing(void)
{
}

static void middle_wants_another(void)
{
    use(&nested, &middle);
}

static void middle_wants_the_mutex(void)
{
    use_mutex(&middle);
}

static void high_wants_it(void)
{
    use(&inherits, &high);
}

static void high_wants_the_ceiling(void)
{
    use(&ceiling, &high);
}

static void high_wants_the_mutex(void)
{
    use_mutex(&high);
}

static const struct story stories[] = {
    /* The middle task does not run while the high one waits for the low one. */
    { "inherited", "LhlHme", 2, 4, low_inherits, nothing, high_wants_it },
    /* What the middle task wants is free, but it could then keep the high one waiting. */
    { "ceiling-protocol", "LmhlHMe", 4, 2, low_inherits, middle_wants_another, high_wants_it },
    /* None of the others runs meanwhile. */
    { "highest-locker", "LlhHme", 2, 4, low_has_the_ceiling, nothing, high_wants_the_ceiling },
    /* The high task goes before the middle one, which waits longer. */
    { "intra-vm-mutex", "LmhlHMe", 4, 2, low_holds_the_mutex, middle_wants_the_mutex,
      high_wants_the_mutex },
};
#define STORIES (sizeof stories / sizeof *stories)

static TickType_t begins(uint64_t round)
{
    return FIRST + round * ROUND;
}

static const struct story *of(uint64_t round)
{
    return &stories[round % STORIES];
}

static void check(const struct story *story)
{
    if (memcmp(happened, story->expected, MOST_EVENTS) == 0)
        return;
    print("FAIL %s: the order is %s, not %s\nDONE passed=0 failed=1 skipped=0\n", story->name, happened,
          story->expected);
    system_off();
}

static void low_task(void *unused)
{
    (void)unused;
    for (uint64_t round = 0; round < rounds * STORIES; round++) {
        sleep_until(begins(round));
        memset(happened, 0, sizeof happened);
        events = 0;
        of(round)->low(begins(round) + GIVES_BACK);
        note('e');
        sleep_until(begins(round) + LOOKS);
        check(of(round));
    }
    /* Nothing raises the vCPU any more, and that is the first call that is refused. */
    if (vmpcp_finish_gcs(0) != VMPCP_INVALID) {
        print("FAIL resources: the vCPU is still raised\nDONE passed=0 failed=1 skipped=0\n");
        system_off();
    }
    for (size_t i = 0; i < STORIES; i++)
        print("PASS %s rounds=%lu\n", stories[i].name, rounds);
    print("DONE passed=%u failed=0 skipped=0\n", (unsigned)STORIES);
    system_off();
}

static void middle_task(void *unused)
{
    (void)unused;
    for (uint64_t round = 0;; round++) {
        sleep_until(begins(round) + of(round)->middle_begins);
        note('m');
        of(round)->middle();
    }
}

static void high_task(void *unused)
{
    (void)unused;
    for (uint64_t round = 0;; round++) {
        sleep_until(begins(round) + of(round)->high_begins);
        note('h');
        of(round)->high();
    }
}

void resources_create(const struct options *options)
{
    static StackType_t stacks[3][STACK_WORDS];
    static StaticTask_t tasks[3];
    static const struct {
        const char *name;
        TaskFunction_t body;
        struct vmpcp_task *task;
        unsigned priority;
    } all[] = {
        { "low", low_task, &low, LOW },
        { "middle", middle_task, &middle, MIDDLE },
        { "high", high_task, &high, HIGH },
    };

    rounds = options->resources;
    print("RUN resources\n");
    must(vmpcp_init(&vmpcp_freertos, (const unsigned[]){ 0 }, 1));
    must(vmpcp_local_open(&inherits, 0, HIGH, VMPCP_PRIORITY_CEILING));
    must(vmpcp_local_open(&nested, 0, MIDDLE, VMPCP_PRIORITY_CEILING));
    must(vmpcp_local_open(&ceiling, 0, HIGH, VMPCP_HIGHEST_LOCKER));
    mutex = vmpcp_intra_open("resources", VMPCP_VCPU_FIRST);
    must(mutex);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        TaskHandle_t handle = xTaskCreateStatic(all[i].body, all[i].name, STACK_WORDS, NULL,
                                                all[i].priority, stacks[i], &tasks[i]);
        must(vmpcp_task_add(all[i].task, handle, 0, all[i].priority));
    }
}
