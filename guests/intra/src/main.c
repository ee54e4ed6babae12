/* Tasks of three vCPUs use two mutexes of their VM, and look at what the library promises. */
#include <stddef.h>

#include "executive.h"
#include "platform.h"

#define ROUNDS 2500u
/* All tasks are released together. */
#define PERIOD_US 600u
/* Before the first mutex of a round, a task works for less than this. */
#define MOST_WORK_US 40u
#define TASKS (VCPUS * TASKS_OF_VCPU)
/* How long a task holds what the tasks of its vCPU share: before both mutexes, or after them. */
#define LOCAL_US 20u
/* Times that tasks of each vCPU at least waited for that: the lower task has it while the other one waits for
 * a mutex, and that one asks for it as well when it has had both. */
#define LEAST_WAITED_LOCALLY 30u
/* Times that tasks of two vCPUs at least waited for a mutex when it was given back. */
#define LEAST_CONTESTED 500u
/* docs/src/design/status.md */
#define WORD_MISUSES 25u

/* As guests/probe/systems/intra.toml has them. */
static const unsigned vcpu_priorities[VCPUS] = { 9, 7, 5 };
static const struct {
    unsigned vcpu, priority;
} described[TASKS] = { { 0, 4 }, { 0, 1 }, { 1, 3 }, { 1, 2 }, { 2, 6 }, { 2, 1 } };

/* What a mutex protects, and what was seen of it. All of it is changed by its holder only. */
struct resource {
    const char *name;
    enum vmpcp_order order;
    unsigned hold_us;
    int mutex;
    volatile uint64_t count;
    volatile bool is_inside;
    uint32_t least;           /* a task that goes before the next holder did not wait then */
    uint64_t intruded, overtaken, waited, contested;
};

static struct resource resources[] = {
    { .name = "vcpu first", .order = VMPCP_VCPU_FIRST, .hold_us = 30 },
    { .name = "task first", .order = VMPCP_TASK_FIRST, .hold_us = 20 },
};
#define RESOURCES (sizeof resources / sizeof *resources)

/* What the tasks of one vCPU share besides, by a resource of the library's for that. */
static struct local {
    struct vmpcp_local resource;
    volatile uint64_t count;
    volatile bool is_inside;
    const struct task *waits; /* it has asked for the resource and does not have it yet */
    uint64_t intruded, waited, low;
} locals[VCPUS];

/* By vCPU. Tasks wait for each other under both: one that sleeps in the queue of a mutex lets the
 * other one of its vCPU go on. */
static const enum vmpcp_protocol protocols[VCPUS] = {
    VMPCP_PRIORITY_CEILING, VMPCP_HIGHEST_LOCKER, VMPCP_PRIORITY_CEILING,
};

static struct task {
    struct worker worker;
    struct resource *wants;   /* the mutex that it asks for or has; only it reads this */
    struct resource *queued;  /* in the queue of which it sleeps. One word: others look at any time */
    uint64_t late, random;
} tasks[TASKS];

static struct task *task_of(struct worker *worker)
{
    return &tasks[((uint8_t *)worker - (uint8_t *)tasks) / sizeof *tasks];
}

/* A number that is larger for a task that is served before another. 0: none. */
static uint32_t place(const struct task *task, enum vmpcp_order order)
{
    uint32_t vcpu = vcpu_priorities[task->worker.task.vcpu], own = task->worker.task.priority;

    return order == VMPCP_VCPU_FIRST ? vcpu << 8 | own : own << 8 | vcpu;
}

static void asleep(struct worker *worker)
{
    struct task *task = task_of(worker);

    /* NULL: for a local resource. */
    __atomic_store_n(&task->queued, task->wants, __ATOMIC_SEQ_CST);
}

/* The calling task holds the mutex and is about to give it back: notes which of those that sleep is
 * to have it. One that is about to sleep may go before it. */
static void note_waiters(struct resource *resource)
{
    unsigned vcpus = 0;

    resource->least = 0;
    for (struct task *one = tasks; one < tasks + TASKS; one++) {
        if (__atomic_load_n(&one->queued, __ATOMIC_SEQ_CST) != resource)
            continue;
        vcpus |= 1u << one->worker.task.vcpu;
        if (place(one, resource->order) > resource->least)
            resource->least = place(one, resource->order);
    }
    resource->contested += (vcpus & (vcpus - 1)) != 0;
}

static void pass_us(unsigned us)
{
    uint64_t begin = now(), ticks = ticks_of_us(us);

    /* Between two looks at the counter, which QEMU takes long for, some hundred instructions. */
    while (now() - begin < ticks)
        for (unsigned i = 0; i < 64; i++)
            __asm__ volatile("nop");
}

_Noreturn static void fail(const char *what, uint64_t number)
{
    static bool failed;

    /* The first vCPU that finds something says so; it takes the others with it. */
    while (__atomic_exchange_n(&failed, true, __ATOMIC_RELAXED))
        __asm__ volatile("wfi");
    print("FAIL intra: ");
    print(what);
    print(" ");
    print_number(number);
    print("\nDONE passed=0 failed=1 skipped=0\n");
    switch_machine_off();
}

static void use(struct task *self, struct resource *resource)
{
    struct vmpcp_task *task = &self->worker.task;
    uint64_t count;

    self->wants = resource;
    if (vmpcp_intra_lock(resource->mutex, task) != VMPCP_OK)
        fail("a mutex is refused, count", resource->count);
    resource->waited += self->queued != NULL;
    __atomic_store_n(&self->queued, NULL, __ATOMIC_SEQ_CST);
    resource->intruded += resource->is_inside;
    resource->overtaken += place(self, resource->order) < resource->least;
    resource->is_inside = true;
    count = resource->count;
    pass_us(resource->hold_us);
    resource->count = count + 1;
    resource->is_inside = false;
    note_waiters(resource);
    if (vmpcp_intra_unlock(resource->mutex, task) != VMPCP_OK)
        fail("a mutex is not taken back, count", count);
    /* If it sleeps next, it is for another thing. */
    self->wants = NULL;
}

/* The task's level is what both protocols give the holder: the ceiling from the beginning, or the
 * priority of the task that waits for it. */
static bool is_raised(const struct local *local, const struct vmpcp_task *task)
{
    if (local->resource.protocol == VMPCP_HIGHEST_LOCKER)
        return task->level >= local->resource.ceiling;
    return local->waits == NULL || task->level >= local->waits->worker.task.priority;
}

static void use_local(struct task *self)
{
    struct vmpcp_task *task = &self->worker.task;
    struct local *local = &locals[task->vcpu];
    uint64_t count;

    local->waited += local->is_inside;
    /* The only task that can ask meanwhile is of lower priority, and does not run before this one
     * has the resource or sleeps. */
    if (local->is_inside)
        local->waits = self;
    if (vmpcp_local_lock(&local->resource, task) != VMPCP_OK)
        fail("a local resource is refused, count", local->count);
    local->waits = NULL;
    local->intruded += local->is_inside;
    local->is_inside = true;
    count = local->count;
    pass_us(LOCAL_US);
    local->count = count + 1;
    local->is_inside = false;
    local->low += !is_raised(local, task);
    if (vmpcp_local_unlock(&local->resource, task) != VMPCP_OK)
        fail("a local resource is not taken back, count", count);
    local->low += task->level != task->priority;
}

/* A number below `below`, from a fixed sequence of the task's own. */
static unsigned random_below(struct task *self, unsigned below)
{
    self->random = self->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(self->random >> 33) % below;
}

static void work(struct worker *worker)
{
    struct task *self = task_of(worker);
    uint64_t release = worker->release;

    self->random = (uint64_t)(self - tasks) + 1;
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned first = random_below(self, RESOURCES);
        bool is_local_first = random_below(self, 2) == 0;

        pass_us(random_below(self, MOST_WORK_US));
        if (is_local_first)
            use_local(self);
        for (unsigned i = 0; i < RESOURCES; i++)
            use(self, &resources[(first + i) % RESOURCES]);
        if (!is_local_first)
            use_local(self);
        release += ticks_of_us(PERIOD_US);
        self->late += now() > release;
        executive_delay_until(worker, release);
    }
}

static void figure(const char *name, uint64_t value)
{
    print(" ");
    print(name);
    print("=");
    print_number(value);
}

static void report(void)
{
    uint64_t late = 0, waited = 0, contested = 0, waited_locally = 0;

    for (unsigned i = 0; i < TASKS; i++)
        late += tasks[i].late;
    if (late > 0)
        fail("rounds that were not over within their periods:", late);
    for (unsigned i = 0; i < RESOURCES; i++) {
        const struct resource *resource = &resources[i];
        if (resource->count != TASKS * ROUNDS)
            fail("two tasks held a mutex at a time, of all rounds it counted", resource->count);
        if (resource->intruded > 0)
            fail("tasks that found another one inside:", resource->intruded);
        if (resource->overtaken > 0)
            fail("tasks that had a mutex before one that goes first:", resource->overtaken);
        if (resource->contested < LEAST_CONTESTED)
            fail("tasks of two vCPUs waited together only so often:", resource->contested);
        waited += resource->waited;
        contested += resource->contested;
    }
    for (unsigned i = 0; i < VCPUS; i++) {
        const struct local *local = &locals[i];
        if (local->count != TASKS_OF_VCPU * ROUNDS)
            fail("two tasks held a local resource at a time, of all uses it counted", local->count);
        if (local->intruded > 0)
            fail("tasks that found another one inside a local resource:", local->intruded);
        if (local->low > 0)
            fail("tasks that ran at another level than a local resource gives:", local->low);
        if (local->waited < LEAST_WAITED_LOCALLY)
            fail("tasks waited for a local resource only so often:", local->waited);
        waited_locally += local->waited;
    }
    print("PASS intra");
    figure("rounds", TASKS * ROUNDS);
    figure("waited", waited);
    figure("contested", contested);
    figure("waited_locally", waited_locally);
    print("\nDONE passed=1 failed=0 skipped=0\n");
    switch_machine_off();
}

/* What raised this vCPU is over, and EL2 has refused nothing yet. */
void vcpu_has_ended(unsigned vcpu)
{
    static unsigned ended;

    if (counter_of(vcpu, WORD_MISUSES) != 0)
        fail("calls that EL2 refused:", counter_of(vcpu, WORD_MISUSES));
    if (vmpcp_finish_gcs(vcpu) != VMPCP_INVALID || counter_of(vcpu, WORD_MISUSES) != 1)
        fail("something raises for ever vCPU", vcpu);
    if (__atomic_add_fetch(&ended, 1, __ATOMIC_SEQ_CST) == VCPUS)
        report();
}

/* The highest priority of a task of the vCPU: all use its local resource. */
static unsigned ceiling_of(unsigned vcpu)
{
    unsigned ceiling = 0;

    for (unsigned i = 0; i < TASKS; i++)
        if (described[i].vcpu == vcpu && described[i].priority > ceiling)
            ceiling = described[i].priority;
    return ceiling;
}

static void prepare(void)
{
    uint64_t begin;

    print("RUN intra\n");
    if (vmpcp_init(&executive_port, vcpu_priorities, VCPUS) != VMPCP_OK)
        fail("there is no service below of revision 1 and", 1);
    for (unsigned i = 0; i < RESOURCES; i++) {
        resources[i].mutex = vmpcp_intra_open(resources[i].name, resources[i].order);
        if (resources[i].mutex < 0)
            fail("there is no mutex", i);
    }
    for (unsigned i = 0; i < VCPUS; i++)
        if (vmpcp_local_open(&locals[i].resource, i, ceiling_of(i), protocols[i]) != VMPCP_OK)
            fail("there is no local resource of vCPU", i);
    begin = now() + ticks_of_us(5000);
    for (unsigned i = 0; i < TASKS; i++) {
        struct worker *worker = &tasks[i].worker;
        worker->asleep = asleep;
        worker->body = work;
        executive_add(worker, described[i].vcpu, i % TASKS_OF_VCPU, begin);
        if (vmpcp_task_add(&worker->task, worker, described[i].vcpu, described[i].priority)
            != VMPCP_OK)
            fail("there is no task", i);
    }
}

/* From start.S. */
void vcpu_main(unsigned vcpu)
{
    gic_start_vcpu(vcpu);
    if (vcpu == 0) {
        prepare();
        for (unsigned other = 1; other < VCPUS; other++)
            if (switch_on(other) != 0)
                fail("CPU_ON is refused for vCPU", other);
    }
    executive_run();
}

/* From start.S: an exception that nothing is there for. */
void exception(uint64_t syndrome, uint64_t address, uint64_t fault_address)
{
    print("EXCEPTION intra");
    figure("esr", syndrome);
    figure("elr", address);
    figure("far", fault_address);
    print("\n");
    switch_machine_off();
}
