/* The hypervisor takes its core from a vCPU that is not raised, after any step of a task there, and gives
 * it back last of all. Tasks of other vCPUs must come to their ends meanwhile: none may spin until then.
 * The library is compiled so that it calls `__sanitizer_cov_trace_pc` in each basic block: a step.
 *
 * Each task is a thread, and one runs at a time. */
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include "expect.h"
#include "internal.h"

/* Steps of a task that goes on. One that makes more spins. */
#define LONGEST 10000u
#define VCPUS 2u

enum state { NEW, RUNS, ASLEEP, DEPLETED, SPINS, ENDED };

struct actor {
    struct vmpcp_task task;
    void (*body)(struct actor *);
    pthread_t thread;
    sem_t go;
    enum state state;
    bool woken;
    unsigned steps;
};

/* `first` is on vCPU 0, the others on vCPU 1. */
static struct actor actors[3], *const first = actors, *const second = actors + 1, *const third = actors + 2;
static _Thread_local struct actor *self;
static sem_t back;
static int mutex;
static bool inside[VCPUS];
static unsigned interrupted, spun;

/* The hypervisor. The budget of vCPU 0 ends with this step of `first`; then it runs while it is raised. */
static unsigned budget;
static bool replenished, was_depleted, refuses;
static int raised[VCPUS];

/* Lets the test go on, until it lets the calling task do so. */
static void stop(enum state why)
{
    self->state = why;
    sem_post(&back);
    sem_wait(&self->go);
    self->state = RUNS;
}

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    if (self == NULL)
        return;
    self->steps++;
    if (self == first && !replenished && self->steps >= budget && raised[0] == 0) {
        was_depleted = true;
        stop(DEPLETED);
    } else if (self->steps % LONGEST == 0) {
        spun++;
        stop(SPINS);
    }
}

struct vmpcp_answer vmpcp_call(uint32_t function, uint64_t x1, uint64_t x2)
{
    (void)x2;
    switch (function) {
    case CALL_UID:
        return (struct vmpcp_answer){ { 0xd27c4d1e, 0x534c2b0f, 0x6373509a, 0x61746173 } };
    case CALL_REVISION:
        return (struct vmpcp_answer){ { 1, 2 } };
    case START_GCS:
        if (refuses)
            return (struct vmpcp_answer){ { (uint64_t)NOT_SUPPORTED } };
        raised[x1]++;
        return (struct vmpcp_answer){ { 0 } };
    case FINISH_GCS:
        EXPECT(--raised[x1] >= 0);
        return (struct vmpcp_answer){ { 0 } };
    default:
        EXPECT(!"another call");
        return (struct vmpcp_answer){ { 0 } };
    }
}

uint64_t vmpcp_counter(void)
{
    return 0;
}

static void enter(void)
{
    EXPECT(!inside[self->task.vcpu]);
    inside[self->task.vcpu] = true;
}

static void leave(void)
{
    EXPECT(inside[self->task.vcpu]);
    inside[self->task.vcpu] = false;
}

static void set_priority(struct vmpcp_task *task, unsigned level)
{
    (void)task;
    (void)level;
}

static void sleep_until_woken(struct vmpcp_task *task)
{
    EXPECT(task == &self->task);
    if (!self->woken)
        stop(ASLEEP);
    self->woken = false;
}

static void wake(struct vmpcp_task *task, bool from_interrupt)
{
    struct actor *actor = task->os;

    (void)from_interrupt;
    actor->woken = true;
}

static void interrupt(unsigned vcpu)
{
    interrupted |= 1u << vcpu;
}

static const struct vmpcp_port port = { enter, leave, set_priority, sleep_until_woken, wake, interrupt };

static void *run(void *argument)
{
    self = argument;
    sem_wait(&self->go);
    self->state = RUNS;
    self->body(self);
    self->state = ENDED;
    sem_post(&back);
    return NULL;
}

/* Lets a task run until it stops. */
static void step(struct actor *actor)
{
    sem_post(&actor->go);
    sem_wait(&back);
    if (actor->state == ENDED)
        EXPECT(pthread_join(actor->thread, NULL) == 0);
}

static void start(struct actor *actor, void (*body)(struct actor *))
{
    actor->body = body;
    actor->state = NEW;
    EXPECT(pthread_create(&actor->thread, NULL, run, actor) == 0);
}

/* A vCPU without its core takes no interrupt. */
static void deliver_interrupts(void)
{
    for (unsigned vcpu = 0; vcpu < VCPUS; vcpu++)
        if (interrupted >> vcpu & 1 && !inside[vcpu]
            && !(vcpu == 0 && first->state == DEPLETED && raised[0] == 0 && !replenished)) {
            interrupted &= ~(1u << vcpu);
            vmpcp_intra_interrupt(vcpu);
        }
}

static bool can_run(const struct actor *actor)
{
    /* Another task of its vCPU spins, and keeps it out. */
    if (inside[actor->task.vcpu] && actor->state != DEPLETED)
        return false;
    switch (actor->state) {
    case NEW:
        return actor->body != NULL;
    case ASLEEP:
        return actor->woken;
    case DEPLETED:
        return raised[0] > 0;
    default:
        return false;
    }
}

/* Lets the others come as far as they can, then `first`, and gives that budget only if nothing else can go
 * on. */
static void finish(void)
{
    for (;;) {
        struct actor *next = NULL;

        deliver_interrupts();
        for (unsigned i = 0; i < 3; i++)
            if (can_run(&actors[i]))
                next = &actors[i];
        if (next != NULL) {
            step(next);
            continue;
        }
        if (first->state != DEPLETED)
            break;
        replenished = true;
        step(first);
        for (unsigned i = 1; i < 3; i++)
            if (actors[i].state == SPINS)
                step(&actors[i]);
    }
    for (unsigned i = 0; i < 3; i++)
        EXPECT(actors[i].body == NULL || actors[i].state == ENDED);
    EXPECT(raised[0] == 0 && raised[1] == 0 && interrupted == 0);
    EXPECT(!inside[0] && !inside[1]);
}

static void use(struct actor *actor)
{
    EXPECT(vmpcp_intra_lock(mutex, &actor->task) == VMPCP_OK);
    EXPECT(vmpcp_intra_unlock(mutex, &actor->task) == VMPCP_OK);
}

static void try(struct actor *actor)
{
    int answer = vmpcp_intra_trylock(mutex, &actor->task);

    EXPECT(answer == VMPCP_OK || answer == VMPCP_BUSY);
    if (answer == VMPCP_OK)
        EXPECT(vmpcp_intra_unlock(mutex, &actor->task) == VMPCP_OK);
}

/* Holds the mutex until it is woken. */
static void hold(struct actor *actor)
{
    EXPECT(vmpcp_intra_lock(mutex, &actor->task) == VMPCP_OK);
    stop(ASLEEP);
    actor->woken = false;
    EXPECT(vmpcp_intra_unlock(mutex, &actor->task) == VMPCP_OK);
}

/* What the tasks do: each is let run in turn until it stops, and then what remains is finished. */
static void free_mutex(void)
{
    start(first, use);
    start(second, use);
    step(first);
}

static void first_waits(void)
{
    start(second, hold);
    step(second);
    start(first, use);
    start(third, try);
    step(first);
    second->woken = true;
}

static void first_tries(void)
{
    start(second, hold);
    step(second);
    start(first, try);
    start(third, use);
    step(first);
    second->woken = true;
}

static void first_gives_it_to_another(void)
{
    unsigned until = budget;

    budget = UINT32_MAX;
    start(first, hold);
    step(first);
    start(second, use);
    start(third, use);
    step(second);
    budget = first->steps + until;
    first->woken = true;
    step(first);
}

/* Does so with each budget that is too small, and returns how often a task spun. */
static unsigned with_each_budget(void (*story)(void), enum vmpcp_order order)
{
    static const unsigned priorities[VCPUS] = { 3, 8 };
    static const struct { unsigned vcpu, priority; } places[3] = { { 0, 5 }, { 1, 7 }, { 1, 2 } };

    spun = budget = 0;
    do {
        unsigned was = budget + 1;

        EXPECT(was < 1000);
        memset(actors, 0, sizeof actors);
        EXPECT(vmpcp_init(&port, priorities, VCPUS) == VMPCP_OK);
        for (unsigned i = 0; i < 3; i++) {
            sem_init(&actors[i].go, 0, 0);
            EXPECT(vmpcp_task_add(&actors[i].task, &actors[i], places[i].vcpu, places[i].priority)
                   == VMPCP_OK);
        }
        budget = was;
        replenished = was_depleted = false;
        self = third; /* for `enter` */
        mutex = vmpcp_intra_open("x", order);
        self = NULL;
        story();
        finish();
        budget = was;
    } while (was_depleted);
    return spun;
}

int main(void)
{
    void (*const stories[])(void) = {
        free_mutex, first_waits, first_tries, first_gives_it_to_another,
    };
    unsigned unaware = 0, refused = 0;

    sem_init(&back, 0, 0);
    for (unsigned i = 0; i < sizeof stories / sizeof *stories; i++)
        EXPECT(with_each_budget(stories[i], VMPCP_VCPU_FIRST) == 0);
    /* MPCP raises no vCPU, and a vCPU that may not be raised is none: then they spin. */
    for (unsigned i = 0; i < sizeof stories / sizeof *stories; i++)
        unaware += with_each_budget(stories[i], VMPCP_TASK_FIRST);
    refuses = true;
    for (unsigned i = 0; i < sizeof stories / sizeof *stories; i++)
        refused += with_each_budget(stories[i], VMPCP_VCPU_FIRST);
    EXPECT(unaware > 0 && refused > 0);
    puts("vmpcp depleted: ok");
    return 0;
}
