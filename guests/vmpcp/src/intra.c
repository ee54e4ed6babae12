/* Mutexes of one VM, whose tasks are on several vCPUs (RTSS 2014, Section V-B). */
#include "internal.h"
#include "queue.h"

struct mutex {
    /* Held for a few steps, with all other tasks of the vCPU kept out, and under vMPCP by a raised vCPU
     * only: tasks of other vCPUs spin meanwhile, so nothing that has no bound may keep the holder. */
    bool guard;
    char name[VMPCP_NAME + 1];
    enum vmpcp_order order;
    unsigned opened;             /* 0: there is no such mutex */
    struct vmpcp_task *holder;
    struct vmpcp_queue waiting;
};

static struct mutex mutexes[VMPCP_INTRA_MUTEXES];
/* Keeps names unique while one is added. */
static bool names_guard;
/* Tasks of each vCPU, by priority, that another vCPU has granted a mutex. */
static uint32_t granted[VMPCP_VCPUS];

void vmpcp_intra_forget(void)
{
    for (unsigned i = 0; i < VMPCP_INTRA_MUTEXES; i++)
        mutexes[i] = (struct mutex){ .opened = 0 };
    for (unsigned vcpu = 0; vcpu < VMPCP_VCPUS; vcpu++)
        granted[vcpu] = 0;
    names_guard = false;
}

static void enter(bool *guard)
{
    vmpcp_vm.port->enter();
    while (__atomic_exchange_n(guard, true, __ATOMIC_ACQUIRE)) {
    }
}

static void leave(bool *guard)
{
    __atomic_store_n(guard, false, __ATOMIC_RELEASE);
    vmpcp_vm.port->leave();
}

static bool same(const char *a, const char *b)
{
    for (; *a == *b; a++, b++)
        if (*a == '\0')
            return true;
    return false;
}

/* Its length; 0 if it is too long or there is none. */
static unsigned length_of(const char *name)
{
    unsigned length = 0;

    while (name != NULL && name[length] != '\0')
        if (++length > VMPCP_NAME)
            return 0;
    return length;
}

/* The number of the mutex of that name, or of a free one. */
static int find(const char *name)
{
    int free = VMPCP_FULL;

    for (int i = VMPCP_INTRA_MUTEXES - 1; i >= 0; i--)
        if (mutexes[i].opened == 0)
            free = i;
        else if (same(mutexes[i].name, name))
            return i;
    return free;
}

int vmpcp_intra_open(const char *name, enum vmpcp_order order)
{
    int number;

    if (length_of(name) == 0 || (order != VMPCP_VCPU_FIRST && order != VMPCP_TASK_FIRST))
        return VMPCP_INVALID;
    enter(&names_guard);
    number = find(name);
    if (number >= 0 && mutexes[number].opened == 0) {
        struct mutex *mutex = &mutexes[number];
        *mutex = (struct mutex){ .order = order, .opened = 1 };
        for (unsigned i = 0; name[i] != '\0'; i++)
            mutex->name[i] = name[i];
    } else if (number >= 0 && mutexes[number].order != order) {
        number = VMPCP_INVALID;
    } else if (number >= 0) {
        mutexes[number].opened++;
    }
    leave(&names_guard);
    return number;
}

/* The mutex of that number; NULL if there is none. */
static struct mutex *of(int number)
{
    if (number < 0 || number >= (int)VMPCP_INTRA_MUTEXES || mutexes[number].opened == 0)
        return NULL;
    return &mutexes[number];
}

int vmpcp_intra_destroy(int number)
{
    int answer = VMPCP_INVALID;
    struct mutex *mutex;

    enter(&names_guard);
    mutex = of(number);
    /* For a mutex without a holder no task waits either. */
    if (mutex != NULL && (mutex->opened > 1 || mutex->holder == NULL)) {
        mutex->opened--;
        answer = VMPCP_OK;
    }
    leave(&names_guard);
    return answer;
}

static void enqueue(struct mutex *mutex, const struct vmpcp_task *task)
{
    unsigned vcpu = vmpcp_vm.rank[task->vcpu];

    if (mutex->order == VMPCP_VCPU_FIRST)
        vmpcp_queue_add(&mutex->waiting, vcpu, task->priority);
    else
        vmpcp_queue_add(&mutex->waiting, task->priority, vcpu);
}

/* The task that is next; NULL if none waits. */
static struct vmpcp_task *dequeue(struct mutex *mutex)
{
    unsigned first, second, vcpu = 0;

    if (!vmpcp_queue_take(&mutex->waiting, &first, &second))
        return NULL;
    bool vcpu_first = mutex->order == VMPCP_VCPU_FIRST;
    while (vmpcp_vm.rank[vcpu] != (vcpu_first ? first : second))
        vcpu++;
    return vmpcp_vm.tasks[vcpu][vcpu_first ? second : first];
}

static int lock(int number, struct vmpcp_task *self, bool wait)
{
    struct mutex *mutex = of(number);
    bool holds, raised;

    if (mutex == NULL || !vmpcp_begin_global(self))
        return VMPCP_INVALID;
    self->granted = false;
    self->raised = false;
    raised = mutex->order == VMPCP_VCPU_FIRST && vmpcp_start_gcs(self->vcpu) == VMPCP_OK;
    enter(&mutex->guard);
    holds = mutex->holder == NULL;
    if (holds) {
        mutex->holder = self;
        self->raised = raised;
    } else if (wait) {
        enqueue(mutex, self);
    }
    leave(&mutex->guard);
    /* Not by `self->raised`: that is by now what the task that passes the mutex on has raised. */
    if (!holds && raised)
        vmpcp_finish_gcs(self->vcpu);
    if (!holds && !wait) {
        vmpcp_end_global(self);
        return VMPCP_BUSY;
    }
    while (!holds && !__atomic_load_n(&self->granted, __ATOMIC_ACQUIRE))
        vmpcp_vm.port->sleep(self);
    /* The task that passes a mutex on raises the next holder's vCPU, unless that is refused. */
    if (!holds && mutex->order == VMPCP_VCPU_FIRST && !self->raised)
        vmpcp_raise_vcpu(self);
    return VMPCP_OK;
}

int vmpcp_intra_lock(int number, struct vmpcp_task *self)
{
    return lock(number, self, true);
}

int vmpcp_intra_trylock(int number, struct vmpcp_task *self)
{
    return lock(number, self, false);
}

/* Gives the mutex, which is its own already, to a task that waits. */
static void grant(const struct mutex *mutex, struct vmpcp_task *next, const struct vmpcp_task *self)
{
    /* It may be preempted or without budget: it cannot call for itself. */
    if (mutex->order == VMPCP_VCPU_FIRST)
        vmpcp_raise_vcpu(next);
    __atomic_store_n(&next->granted, true, __ATOMIC_RELEASE);
    if (next->vcpu == self->vcpu) {
        vmpcp_vm.port->enter();
        vmpcp_vm.port->wake(next, false);
        vmpcp_vm.port->leave();
        return;
    }
    __atomic_fetch_or(&granted[next->vcpu], UINT32_C(1) << next->priority, __ATOMIC_RELEASE);
    vmpcp_vm.port->interrupt(next->vcpu);
}

int vmpcp_intra_unlock(int number, struct vmpcp_task *self)
{
    struct mutex *mutex = of(number);
    struct vmpcp_task *next;

    if (mutex == NULL || !vmpcp_is_task(self) || mutex->holder != self)
        return VMPCP_INVALID;
    /* The vCPU is still raised. */
    enter(&mutex->guard);
    next = dequeue(mutex);
    mutex->holder = next;
    leave(&mutex->guard);
    if (next != NULL)
        grant(mutex, next, self);
    vmpcp_lower_vcpu(self);
    vmpcp_end_global(self);
    return VMPCP_OK;
}

void vmpcp_intra_interrupt(unsigned vcpu)
{
    uint32_t tasks = __atomic_exchange_n(&granted[vcpu], 0, __ATOMIC_ACQUIRE);

    while (tasks != 0) {
        unsigned priority = 31u - (unsigned)__builtin_clz(tasks);
        tasks &= ~(UINT32_C(1) << priority);
        vmpcp_vm.port->wake(vmpcp_vm.tasks[vcpu][priority], true);
    }
}
