/* Tasks that share resources. Each is a thread, and one runs at a time: until it ends or sleeps,
 * when the test goes on. The test plays the operating system, and the hypervisor. */
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include "expect.h"
#include "internal.h"

#define TASKS 6

/* A task, and its thread. */
struct actor {
    struct vmpcp_task task;
    void (*body)(struct actor *);
    pthread_t thread;
    sem_t go;
    bool started, ended, asleep;
    unsigned woken;
    int answer;
};

static struct actor actors[TASKS];
static sem_t back;
static bool inside;
/* vCPUs that were interrupted, a bit for each. */
static unsigned interrupted;

static struct actor *actor_of(struct vmpcp_task *task)
{
    return task->os;
}

static void enter(void)
{
    EXPECT(!inside);
    inside = true;
}

static void leave(void)
{
    EXPECT(inside);
    inside = false;
}

static void set_priority(struct vmpcp_task *task, unsigned level)
{
    EXPECT(inside && level < VMPCP_LEVELS && task->level == level);
}

static void sleep_until_woken(struct vmpcp_task *self)
{
    struct actor *actor = actor_of(self);

    EXPECT(!inside);
    if (actor->woken == 0) {
        actor->asleep = true;
        sem_post(&back);
        sem_wait(&actor->go);
    }
    actor->asleep = false;
    actor->woken = 0;
}

static void wake(struct vmpcp_task *task, bool from_interrupt)
{
    EXPECT(inside != from_interrupt);
    actor_of(task)->woken++;
}

static void interrupt(unsigned vcpu)
{
    EXPECT(!inside);
    interrupted |= 1u << vcpu;
}

static const struct vmpcp_port port = { enter, leave, set_priority, sleep_until_woken, wake, interrupt };

/* The hypervisor: one mutex "m" with the tasks "t0" to "t5" by rank, all on one vCPU. */
static bool service_is_there = true;
static int64_t gcs_answer;
static int raised[VMPCP_VCPUS];
static int holder;            /* rank + 1, or 0 */
static unsigned queued;       /* by rank */
static bool died;             /* the last one that held it, if a task does not hold it */
static bool abandon_is_there;
static uint8_t byte;

static uint64_t fnv(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    return hash;
}

static struct vmpcp_answer answer(int64_t x0, uint64_t x1, uint64_t x2)
{
    return (struct vmpcp_answer){ { (uint64_t)x0, x1, x2, 0 } };
}

static int64_t mutex_call(uint32_t function, int rank)
{
    bool waits = queued >> rank & 1, holds = holder == rank + 1;

    switch (function) {
    case MUTEX_CLOSE:
        return waits || holds ? -3 : 0;
    case MUTEX_LOCK:
    case MUTEX_TRYLOCK:
        if (waits || holds)
            return -3;
        if (holder == 0) {
            holder = rank + 1;
            byte = (uint8_t)(died << 7 | holder);
            return died ? OWNER_DIED : HELD;
        }
        if (function == MUTEX_TRYLOCK)
            return BUSY;
        queued |= 1u << rank;
        return QUEUED;
    default: /* MUTEX_UNLOCK, MUTEX_ABANDON */
        if (function == MUTEX_ABANDON && !abandon_is_there)
            return NOT_SUPPORTED;
        if (!holds)
            return -3;
        holder = queued == 0 ? 0 : __builtin_ctz(queued) + 1;
        queued &= queued - 1;
        died = function == MUTEX_ABANDON;
        byte = (uint8_t)(holder == 0 ? 0 : died << 7 | holder);
        return 0;
    }
}

uint64_t vmpcp_counter(void)
{
    static uint64_t counter;

    return ++counter;
}

struct vmpcp_answer vmpcp_call(uint32_t function, uint64_t x1, uint64_t x2)
{
    char name[] = "t0";

    EXPECT(!inside);
    switch (function) {
    case CALL_UID:
        if (!service_is_there)
            return answer(-1, 0, 0);
        return (struct vmpcp_answer){ { 0xd27c4d1e, 0x534c2b0f, 0x6373509a, 0x61746173 } };
    case CALL_REVISION:
        return answer(1, abandon_is_there ? 2 : 1, 0);
    case START_GCS:
        raised[x1] += gcs_answer == 0;
        return answer(gcs_answer, 0, 0);
    case FINISH_GCS:
        EXPECT(--raised[x1] >= 0);
        return answer(0, 0, 0);
    case MUTEX_OPEN:
        for (int rank = 0; rank < TASKS && x1 == fnv("m"); rank++, name[1]++)
            if (x2 == fnv(name))
                return answer(0, (uint64_t)rank << 8, (uint64_t)(uintptr_t)&byte);
        return answer(NOT_SUPPORTED, 0, 0);
    default:
        return answer(mutex_call(function, (int)(x1 >> 8)), 0, 0);
    }
}

static void *run(void *argument)
{
    struct actor *actor = argument;

    sem_wait(&actor->go);
    actor->body(actor);
    actor->ended = true;
    sem_post(&back);
    return NULL;
}

/* Lets a task run until it sleeps or ends. */
static void step(struct actor *actor)
{
    EXPECT(!actor->ended && (!actor->asleep || actor->woken > 0));
    sem_post(&actor->go);
    sem_wait(&back);
    if (actor->ended)
        EXPECT(pthread_join(actor->thread, NULL) == 0);
}

static bool runs(const struct actor *actor)
{
    return actor->started && !actor->ended && (!actor->asleep || actor->woken > 0);
}

/* Begins a task, and lets it run until it sleeps or ends. */
static void start(struct actor *actor, void (*body)(struct actor *))
{
    actor->body = body;
    actor->started = true;
    actor->ended = actor->asleep = false;
    actor->woken = 0;
    EXPECT(pthread_create(&actor->thread, NULL, run, actor) == 0);
    step(actor);
}

/* Six tasks on two vCPUs, of which the second has the higher priority. */
static void begin(void)
{
    static const struct { unsigned vcpu, priority; } places[TASKS] = {
        { 0, 5 }, { 0, 7 }, { 1, 1 }, { 1, 9 }, { 0, 2 }, { 1, 31 },
    };
    static const unsigned priorities[] = { 3, 8 };

    service_is_there = abandon_is_there = true;
    died = false;
    gcs_answer = 0;
    interrupted = queued = 0;
    holder = byte = 0;
    EXPECT(vmpcp_init(&port, priorities, 2) == VMPCP_OK);
    for (unsigned i = 0; i < TASKS; i++) {
        memset(&actors[i], 0, sizeof actors[i]);
        sem_init(&actors[i].go, 0, 0);
        EXPECT(vmpcp_task_add(&actors[i].task, &actors[i], places[i].vcpu, places[i].priority)
               == VMPCP_OK);
    }
}

static void test_beginnings(void)
{
    static const unsigned many[9] = { 0 };
    struct vmpcp_task task;
    struct vmpcp_inter mutex = { 0 };

    EXPECT(vmpcp_init(&port, many, 0) == VMPCP_INVALID);
    EXPECT(vmpcp_init(&port, many, 9) == VMPCP_INVALID);
    begin();
    EXPECT(vmpcp_vm.rank[0] == 0 && vmpcp_vm.rank[1] == 1);
    EXPECT(vmpcp_task_add(&task, NULL, 2, 0) == VMPCP_INVALID);
    EXPECT(vmpcp_task_add(&task, NULL, 0, 32) == VMPCP_INVALID);
    EXPECT(vmpcp_task_add(&task, NULL, 0, 5) == VMPCP_INVALID); /* another one has it */

    service_is_there = false;
    EXPECT(vmpcp_init(&port, many, 8) == VMPCP_NOT_SUPPORTED);
    EXPECT(vmpcp_vm.rank[0] == 7 && vmpcp_vm.rank[7] == 0);
    EXPECT(vmpcp_task_add(&task, NULL, 0, 5) == VMPCP_OK);
    EXPECT(vmpcp_inter_open(&mutex, &task, "m", "t0") == VMPCP_NOT_SUPPORTED);
    /* Mutexes of the VM work, and raise no vCPU. */
    int number = vmpcp_intra_open("x", VMPCP_VCPU_FIRST);
    EXPECT(vmpcp_intra_lock(number, &task) == VMPCP_OK && raised[0] == 0);
    EXPECT(vmpcp_intra_unlock(number, &task) == VMPCP_OK);
}

static struct vmpcp_inter uses[TASKS];

static void lock_inter(struct actor *actor)
{
    actor->answer = vmpcp_inter_lock(&uses[actor - actors]);
}

static void test_inter(void)
{
    begin();
    memset(uses, 0, sizeof uses);
    EXPECT(vmpcp_inter_open(&uses[0], &actors[0].task, "none", "t0") == VMPCP_NOT_SUPPORTED);
    EXPECT(vmpcp_inter_lock(&uses[0]) == VMPCP_INVALID);
    EXPECT(vmpcp_inter_open(&uses[0], &actors[0].task, "m", "t0") == VMPCP_OK);
    EXPECT(vmpcp_inter_open(&uses[0], &actors[0].task, "m", "t0") == VMPCP_INVALID);
    EXPECT(vmpcp_inter_open(&uses[1], &actors[1].task, "m", "t1") == VMPCP_OK);
    EXPECT(vmpcp_inter_open(&uses[4], &actors[4].task, "m", "t4") == VMPCP_OK);

    EXPECT(vmpcp_inter_unlock(&uses[1]) == VMPCP_INVALID);
    EXPECT(vmpcp_inter_lock(&uses[1]) == VMPCP_OK && actors[1].task.level == 32 + 7);
    EXPECT(vmpcp_inter_lock(&uses[1]) == VMPCP_INVALID);
    EXPECT(vmpcp_inter_close(&uses[1]) == VMPCP_INVALID);
    EXPECT(vmpcp_inter_trylock(&uses[0]) == VMPCP_BUSY && actors[0].task.level == 5);

    /* Two wait; the first is woken, the second is not. */
    start(&actors[4], lock_inter);
    start(&actors[0], lock_inter);
    EXPECT(actors[0].asleep && actors[4].asleep && actors[0].task.level == 32 + 5);
    vmpcp_inter_interrupt(0); /* of another mutex, or late */
    EXPECT(!runs(&actors[0]) && !runs(&actors[4]));
    EXPECT(vmpcp_inter_unlock(&uses[1]) == VMPCP_OK && actors[1].task.level == 7);
    vmpcp_inter_interrupt(1); /* of another vCPU */
    EXPECT(!runs(&actors[0]));
    vmpcp_inter_interrupt(0);
    EXPECT(runs(&actors[0]) && !runs(&actors[4]));
    step(&actors[0]);
    EXPECT(actors[0].ended && actors[0].answer == VMPCP_OK && uses[0].queued != 0 &&
           uses[1].queued == 0);

    /* The holder dies with its vCPU in another VM, as far as the next one can tell. A task that
     * is woken too early sleeps again. */
    actors[4].woken = 1;
    step(&actors[4]);
    EXPECT(actors[4].asleep);
    uses[0].holds = false;
    holder = 4 + 1;
    queued = 0;
    byte = 0x80 | (4 + 1);
    vmpcp_inter_interrupt(0);
    step(&actors[4]);
    EXPECT(actors[4].ended && actors[4].answer == VMPCP_OWNER_DIED);
    EXPECT(vmpcp_inter_unlock(&uses[4]) == VMPCP_OK && actors[4].task.level == 2);
    EXPECT(vmpcp_inter_close(&uses[4]) == VMPCP_OK);
    EXPECT(vmpcp_inter_close(&uses[4]) == VMPCP_INVALID);
    EXPECT(vmpcp_inter_lock(&uses[4]) == VMPCP_INVALID);
}

/* A task dies with a mutex, and its vCPU goes on. */
static void test_abandoned(void)
{
    begin();
    memset(uses, 0, sizeof uses);
    EXPECT(vmpcp_inter_open(&uses[0], &actors[0].task, "m", "t0") == VMPCP_OK);
    EXPECT(vmpcp_inter_open(&uses[1], &actors[1].task, "m", "t1") == VMPCP_OK);
    EXPECT(vmpcp_inter_abandon(NULL) == VMPCP_INVALID);
    EXPECT(vmpcp_inter_abandon(&uses[1]) == VMPCP_INVALID);
    EXPECT(vmpcp_inter_lock(&uses[1]) == VMPCP_OK);
    start(&actors[0], lock_inter);
    EXPECT(vmpcp_inter_abandon(&uses[0]) == VMPCP_INVALID); /* it waits */
    EXPECT(vmpcp_inter_abandon(&uses[1]) == VMPCP_OK && actors[1].task.level == 7);
    vmpcp_inter_interrupt(0);
    step(&actors[0]);
    EXPECT(actors[0].ended && actors[0].answer == VMPCP_OWNER_DIED);
    /* The next one to ask is told as well, and none after it. */
    EXPECT(vmpcp_inter_abandon(&uses[0]) == VMPCP_OK);
    EXPECT(vmpcp_inter_trylock(&uses[1]) == VMPCP_OWNER_DIED);
    EXPECT(vmpcp_inter_unlock(&uses[1]) == VMPCP_OK);
    EXPECT(vmpcp_inter_lock(&uses[0]) == VMPCP_OK);
    /* An older service knows no such call: the task still holds the mutex. */
    abandon_is_there = false;
    EXPECT(vmpcp_inter_abandon(&uses[0]) == VMPCP_NOT_SUPPORTED && actors[0].task.level == 32 + 5);
    EXPECT(vmpcp_inter_unlock(&uses[0]) == VMPCP_OK && actors[0].task.level == 5);
}

static int number;

static void lock_intra(struct actor *actor)
{
    actor->answer = vmpcp_intra_lock(number, &actor->task);
}

static void test_intra_names(void)
{
    char name[] = "a";

    begin();
    EXPECT(vmpcp_intra_open(NULL, VMPCP_VCPU_FIRST) == VMPCP_INVALID);
    EXPECT(vmpcp_intra_open("", VMPCP_VCPU_FIRST) == VMPCP_INVALID);
    EXPECT(vmpcp_intra_open("sixteen-letters-", VMPCP_VCPU_FIRST) == VMPCP_INVALID);
    EXPECT(vmpcp_intra_open("a", (enum vmpcp_order)2) == VMPCP_INVALID);
    for (int i = 0; i < (int)VMPCP_INTRA_MUTEXES; i++, name[0]++)
        EXPECT(vmpcp_intra_open(name, VMPCP_VCPU_FIRST) == i);
    EXPECT(vmpcp_intra_open(name, VMPCP_VCPU_FIRST) == VMPCP_FULL);
    EXPECT(vmpcp_intra_open("b", VMPCP_VCPU_FIRST) == 1);
    EXPECT(vmpcp_intra_open("b", VMPCP_TASK_FIRST) == VMPCP_INVALID);
    EXPECT(vmpcp_intra_destroy(1) == VMPCP_OK && vmpcp_intra_destroy(1) == VMPCP_OK);
    EXPECT(vmpcp_intra_destroy(1) == VMPCP_INVALID);
    EXPECT(vmpcp_intra_lock(1, &actors[0].task) == VMPCP_INVALID);
    EXPECT(vmpcp_intra_open("fifteen-letters", VMPCP_TASK_FIRST) == 1);
    for (int wrong = -2; wrong < 40; wrong += wrong == -1 ? 17 : 1) {
        EXPECT(vmpcp_intra_destroy(wrong) == VMPCP_INVALID);
        EXPECT(vmpcp_intra_lock(wrong, &actors[0].task) == VMPCP_INVALID);
        EXPECT(vmpcp_intra_unlock(wrong, &actors[0].task) == VMPCP_INVALID);
    }
}

/* Waits are ended in this order: actors by number. */
static void order_is(enum vmpcp_order order, const int *expected)
{
    bool raises = order == VMPCP_VCPU_FIRST;

    begin();
    number = vmpcp_intra_open("x", order);
    EXPECT(vmpcp_intra_lock(number, &actors[0].task) == VMPCP_OK && raised[0] == raises);
    EXPECT(vmpcp_intra_lock(number, &actors[0].task) == VMPCP_INVALID);
    EXPECT(vmpcp_intra_unlock(number, &actors[1].task) == VMPCP_INVALID);
    EXPECT(vmpcp_intra_trylock(number, &actors[1].task) == VMPCP_BUSY && actors[1].task.level == 7);
    EXPECT(vmpcp_intra_destroy(number) == VMPCP_INVALID);
    for (int i = 1; i < 5; i++)
        start(&actors[i], lock_intra);
    struct actor *has = &actors[0];
    for (int i = 0; i < 4; i++) {
        struct actor *next = &actors[expected[i]];
        interrupted = 0;
        EXPECT(vmpcp_intra_unlock(number, &has->task) == VMPCP_OK);
        EXPECT(has->task.level == has->task.priority);
        /* The next holder's vCPU is raised before it runs. */
        EXPECT(raised[next->task.vcpu] == raises && raised[1 - next->task.vcpu] == 0);
        if (next->task.vcpu != has->task.vcpu) {
            EXPECT(!runs(next) && interrupted == 1u << next->task.vcpu);
            vmpcp_intra_interrupt(next->task.vcpu);
        }
        for (int other = 1; other < 5; other++)
            EXPECT(runs(&actors[other]) == (&actors[other] == next));
        step(next);
        EXPECT(next->ended && next->answer == VMPCP_OK);
        has = next;
    }
    EXPECT(vmpcp_intra_unlock(number, &has->task) == VMPCP_OK);
    EXPECT(raised[0] == 0 && raised[1] == 0);
    EXPECT(vmpcp_intra_destroy(number) == VMPCP_OK);
}

/* A vCPU may be raised too often: then the next holder tries for itself, and nothing is lowered
 * that was not raised. */
static void test_refused(void)
{
    begin();
    number = vmpcp_intra_open("x", VMPCP_VCPU_FIRST);
    EXPECT(vmpcp_intra_lock(number, &actors[0].task) == VMPCP_OK);
    start(&actors[3], lock_intra);
    gcs_answer = BUSY;
    EXPECT(vmpcp_intra_unlock(number, &actors[0].task) == VMPCP_OK && raised[1] == 0);
    gcs_answer = 0;
    vmpcp_intra_interrupt(1);
    step(&actors[3]);
    EXPECT(actors[3].answer == VMPCP_OK && raised[1] == 1);
    EXPECT(vmpcp_intra_unlock(number, &actors[3].task) == VMPCP_OK && raised[1] == 0);
    EXPECT(vmpcp_start_gcs(0) == VMPCP_OK && raised[0] == 1 && vmpcp_finish_gcs(0) == VMPCP_OK);
    gcs_answer = BUSY;
    EXPECT(vmpcp_start_gcs(1) == VMPCP_BUSY);
    gcs_answer = -3;
    EXPECT(vmpcp_start_gcs(1) == VMPCP_INVALID);
    gcs_answer = NOT_SUPPORTED;
    EXPECT(vmpcp_start_gcs(1) == VMPCP_NOT_SUPPORTED);
    EXPECT(vmpcp_intra_lock(number, &actors[0].task) == VMPCP_OK);
    EXPECT(vmpcp_intra_unlock(number, &actors[0].task) == VMPCP_OK && raised[0] == 0);
}

/* Sections of several tasks of a vCPU lie within each other: it is raised for each that holds a mutex, and for
 * none that waits or has failed to lock one. */
static void test_raised_for_each(void)
{
    int other;

    begin();
    number = vmpcp_intra_open("x", VMPCP_VCPU_FIRST);
    other = vmpcp_intra_open("y", VMPCP_VCPU_FIRST);
    EXPECT(vmpcp_intra_lock(number, &actors[0].task) == VMPCP_OK && raised[0] == 1);
    EXPECT(vmpcp_intra_lock(other, &actors[1].task) == VMPCP_OK && raised[0] == 2);
    EXPECT(vmpcp_intra_trylock(number, &actors[1].task) == VMPCP_INVALID && raised[0] == 2);
    EXPECT(vmpcp_intra_trylock(number, &actors[3].task) == VMPCP_BUSY && raised[1] == 0);
    start(&actors[4], lock_intra);
    EXPECT(actors[4].asleep && raised[0] == 2);
    EXPECT(vmpcp_intra_unlock(other, &actors[1].task) == VMPCP_OK && raised[0] == 1);
    EXPECT(vmpcp_intra_unlock(number, &actors[0].task) == VMPCP_OK && raised[0] == 1);
    step(&actors[4]);
    EXPECT(vmpcp_intra_unlock(number, &actors[4].task) == VMPCP_OK && raised[0] == 0);
}

static struct vmpcp_local local, second;

static void lock_local(struct actor *actor)
{
    actor->answer = vmpcp_local_lock(&local, &actor->task);
}

static void lock_second(struct actor *actor)
{
    actor->answer = vmpcp_local_lock(&second, &actor->task);
}

/* Tasks 4, 0 and 1 are on vCPU 0, with priorities 2, 5 and 7. */
static void test_priority_ceiling(void)
{
    struct actor *low = &actors[4], *middle = &actors[0], *high = &actors[1];

    begin();
    EXPECT(vmpcp_local_open(&local, 0, 7, VMPCP_PRIORITY_CEILING) == VMPCP_OK);
    EXPECT(vmpcp_local_open(&second, 0, 5, VMPCP_PRIORITY_CEILING) == VMPCP_OK);
    EXPECT(vmpcp_local_lock(&local, &low->task) == VMPCP_OK && low->task.level == 2);
    /* What it wants is free, but it could then keep the highest task from the other. */
    start(middle, lock_second);
    EXPECT(middle->asleep && low->task.level == 5);
    start(high, lock_local);
    EXPECT(high->asleep && low->task.level == 7);
    /* Nothing is in the holder's own way. */
    EXPECT(vmpcp_local_lock(&second, &low->task) == VMPCP_OK);
    EXPECT(vmpcp_local_unlock(&second, &low->task) == VMPCP_OK && low->task.level == 7);
    EXPECT(vmpcp_local_unlock(&local, &low->task) == VMPCP_OK && low->task.level == 2);
    EXPECT(runs(high));
    step(high);
    EXPECT(high->ended && high->answer == VMPCP_OK);
    if (runs(middle))
        step(middle);
    EXPECT(middle->asleep && high->task.level == 7);
    EXPECT(vmpcp_local_unlock(&local, &high->task) == VMPCP_OK);
    EXPECT(runs(middle));
    step(middle);
    EXPECT(middle->ended && middle->answer == VMPCP_OK);
    /* Above the ceiling of all that others hold, a task locks at once. */
    EXPECT(vmpcp_local_lock(&local, &high->task) == VMPCP_OK);
    EXPECT(vmpcp_local_unlock(&local, &high->task) == VMPCP_OK);
    EXPECT(vmpcp_local_lock(&local, &middle->task) == VMPCP_OK);
    EXPECT(vmpcp_local_unlock(&local, &middle->task) == VMPCP_OK);
    EXPECT(vmpcp_local_unlock(&second, &middle->task) == VMPCP_OK);
}

static void test_highest_locker(void)
{
    struct actor *low = &actors[4];

    begin();
    EXPECT(vmpcp_local_open(&local, 0, 7, VMPCP_HIGHEST_LOCKER) == VMPCP_OK);
    EXPECT(vmpcp_local_lock(&local, &low->task) == VMPCP_OK && low->task.level == 7);
    EXPECT(vmpcp_local_unlock(&local, &low->task) == VMPCP_OK && low->task.level == 2);
}

static void test_local_misuse(void)
{
    struct vmpcp_task *task = &actors[0].task;

    begin();
    number = vmpcp_intra_open("x", VMPCP_VCPU_FIRST);
    EXPECT(vmpcp_local_open(&local, 2, 7, VMPCP_PRIORITY_CEILING) == VMPCP_INVALID);
    EXPECT(vmpcp_local_open(&local, 0, 32, VMPCP_PRIORITY_CEILING) == VMPCP_INVALID);
    EXPECT(vmpcp_local_open(&local, 0, 5, VMPCP_PRIORITY_CEILING) == VMPCP_OK);
    EXPECT(vmpcp_local_lock(&local, &actors[1].task) == VMPCP_INVALID); /* above the ceiling */
    EXPECT(vmpcp_local_lock(&local, &actors[2].task) == VMPCP_INVALID); /* of another vCPU */
    EXPECT(vmpcp_local_unlock(&local, task) == VMPCP_INVALID);
    EXPECT(vmpcp_local_lock(&local, task) == VMPCP_OK);
    EXPECT(vmpcp_local_lock(&local, task) == VMPCP_INVALID);
    /* Global and local sections are not nested. */
    EXPECT(vmpcp_intra_lock(number, task) == VMPCP_INVALID);
    EXPECT(vmpcp_local_unlock(&local, task) == VMPCP_OK);
    EXPECT(vmpcp_intra_lock(number, task) == VMPCP_OK);
    EXPECT(vmpcp_local_lock(&local, task) == VMPCP_INVALID);
    EXPECT(vmpcp_intra_unlock(number, task) == VMPCP_OK);
}

int main(void)
{
    sem_init(&back, 0, 0);
    test_beginnings();
    test_inter();
    test_abandoned();
    test_intra_names();
    /* The second vCPU's tasks before the first's; by their own priorities alone. */
    order_is(VMPCP_VCPU_FIRST, (const int[]){ 3, 2, 1, 4 });
    order_is(VMPCP_TASK_FIRST, (const int[]){ 3, 1, 4, 2 });
    test_refused();
    test_raised_for_each();
    test_priority_ceiling();
    test_highest_locker();
    test_local_misuse();
    puts("vmpcp tasks: ok");
    return 0;
}
