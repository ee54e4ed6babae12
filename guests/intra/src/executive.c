#include "executive.h"

#include <stddef.h>

#include "platform.h"

/* What a vCPU does; only that vCPU looks at it, with its interrupts masked. */
struct executive {
    struct worker *tasks[TASKS_OF_VCPU];
    struct worker *current;   /* NULL: it idles, on the stack that it began with */
    uint64_t *idle;
};

static struct executive executives[VCPUS];

void switch_stacks(uint64_t **save, uint64_t *to);
void begin_task(void);

static struct executive *own(void)
{
    return &executives[this_vcpu()];
}

/* Gives this vCPU to the task that is next, with interrupts masked. */
static void schedule(void)
{
    struct executive *executive = own();
    struct worker *before = executive->current, *next = NULL;

    for (unsigned i = 0; i < TASKS_OF_VCPU; i++) {
        struct worker *one = executive->tasks[i];
        if (one != NULL && one->state == READY
            && (next == NULL || one->task.level > next->task.level))
            next = one;
    }
    if (next == before)
        return;
    executive->current = next;
    switch_stacks(before == NULL ? &executive->idle : &before->stack,
                  next == NULL ? executive->idle : next->stack);
}

/* Sets the timer for the first task that waits for an instant. */
static void set_timer(void)
{
    struct executive *executive = own();
    uint64_t first = UINT64_MAX;

    for (unsigned i = 0; i < TASKS_OF_VCPU; i++) {
        struct worker *one = executive->tasks[i];
        if (one != NULL && one->state == DELAYED && one->release < first)
            first = one->release;
    }
    write_register(cntv_cval_el0, first);
    write_register(cntv_ctl_el0, first != UINT64_MAX);
    barrier();
}

static void release_tasks(void)
{
    struct executive *executive = own();

    for (unsigned i = 0; i < TASKS_OF_VCPU; i++) {
        struct worker *one = executive->tasks[i];
        if (one != NULL && one->state == DELAYED && one->release <= now())
            one->state = READY;
    }
    set_timer();
}

/* From start.S. */
void interrupt(void)
{
    uint32_t intid = gic_acknowledge();

    if (intid == TIMER_INTID)
        release_tasks();
    else if (intid == GRANT_SGI)
        vmpcp_intra_interrupt(this_vcpu());
    gic_end(intid);
    schedule();
}

void executive_add(struct worker *worker, unsigned vcpu, unsigned number, uint64_t release)
{
    /* What switch_stacks takes from it: X19 to X30. */
    worker->stack = (uint64_t *)(worker->memory + STACK_BYTES) - 12;
    worker->stack[0] = (uint64_t)worker;
    worker->stack[11] = (uint64_t)begin_task;
    worker->state = DELAYED;
    worker->release = release;
    executives[vcpu].tasks[number] = worker;
}

void executive_run(void)
{
    mask_interrupts();
    set_timer();
    unmask_interrupts();
    for (;;)
        __asm__ volatile("wfi");
}

/* From start.S: the first that a task does. */
void run_task(struct worker *self)
{
    bool is_last = true;

    self->body(self);
    mask_interrupts();
    self->state = ENDED;
    for (unsigned i = 0; i < TASKS_OF_VCPU; i++)
        is_last &= own()->tasks[i]->state == ENDED;
    if (is_last)
        vcpu_has_ended(this_vcpu());
    schedule();
}

void executive_delay_until(struct worker *self, uint64_t release)
{
    mask_interrupts();
    self->release = release;
    self->state = DELAYED;
    set_timer();
    schedule();
    unmask_interrupts();
}

static void enter(void)
{
    mask_interrupts();
}

static void leave(void)
{
    schedule();
    unmask_interrupts();
}

/* The level is the task's own, see `schedule`; `leave` follows. */
static void set_priority(struct vmpcp_task *task, unsigned level)
{
    (void)task;
    (void)level;
}

static void sleep_until_woken(struct vmpcp_task *task)
{
    struct worker *self = task->os;

    mask_interrupts();
    self->asleep(self);
    if (!self->woken) {
        self->state = SLEEPS;
        schedule();
    }
    self->woken = false;
    unmask_interrupts();
}

/* Interrupts are masked, here and in the handler. */
static void wake(struct vmpcp_task *task, bool from_interrupt)
{
    struct worker *worker = task->os;

    (void)from_interrupt;
    worker->woken = true;
    if (worker->state == SLEEPS)
        worker->state = READY;
}

const struct vmpcp_port executive_port = {
    .enter = enter,
    .leave = leave,
    .set_priority = set_priority,
    .sleep = sleep_until_woken,
    .wake = wake,
    .interrupt = gic_interrupt_vcpu,
};
