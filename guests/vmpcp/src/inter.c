/* Mutexes of the hypervisor (docs/src/design/sections.md). It raises the vCPUs of holders itself;
 * what is left to do here is the task's own level, and to sleep. */
#include "internal.h"

/* The tasks of each vCPU that use mutexes. Each list is changed and read on its own vCPU only;
 * changes are single stores, so that the handler of the interrupt finds it whole at any time. */
static struct vmpcp_inter *users[VMPCP_VCPUS];

void vmpcp_inter_forget(void)
{
    for (unsigned vcpu = 0; vcpu < VMPCP_VCPUS; vcpu++)
        users[vcpu] = NULL;
}

/* 64-bit FNV-1a. */
static uint64_t hash(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    return hash;
}

static int64_t call(const struct vmpcp_inter *mutex, uint32_t function)
{
    return (int64_t)vmpcp_call(function, mutex->handle, 0).x[0];
}

/* What the hypervisor says of the mutex: 0, or the holder's rank and one, and bit 7 if the holder
 * before died. What the mutex protects is read after it, never before. */
static uint8_t state(const struct vmpcp_inter *mutex)
{
    return __atomic_load_n(mutex->byte, __ATOMIC_ACQUIRE);
}

static bool is_granted(const struct vmpcp_inter *mutex)
{
    return (state(mutex) & 0x7f) == (mutex->handle >> 8 & 0xff) + 1;
}

/* What points to an open mutex of a vCPU; it points to NULL if that is not open. */
static struct vmpcp_inter **link_to(const struct vmpcp_inter *mutex, unsigned vcpu)
{
    struct vmpcp_inter **link = &users[vcpu];

    while (*link != NULL && *link != mutex)
        link = &(*link)->next;
    return link;
}

int vmpcp_inter_open(struct vmpcp_inter *mutex, struct vmpcp_task *self, const char *name,
                     const char *task_name)
{
    struct vmpcp_answer answer;

    if (!vmpcp_is_task(self) || *link_to(mutex, self->vcpu) != NULL)
        return VMPCP_INVALID;
    if (!vmpcp_vm.has_service)
        return VMPCP_NOT_SUPPORTED;
    answer = vmpcp_call(MUTEX_OPEN, hash(name), hash(task_name));
    if (answer.x[0] > 1)
        return VMPCP_NOT_SUPPORTED;
    *mutex = (struct vmpcp_inter){
        .task = self,
        .handle = answer.x[1],
        .byte = (const uint8_t *)(uintptr_t)answer.x[2],
    };
    vmpcp_vm.port->enter();
    mutex->next = users[self->vcpu];
    __atomic_store_n(&users[self->vcpu], mutex, __ATOMIC_RELEASE);
    vmpcp_vm.port->leave();
    return VMPCP_OK;
}

int vmpcp_inter_close(struct vmpcp_inter *mutex)
{
    /* The hypervisor refuses if the task holds it or waits for it. */
    if (mutex == NULL || mutex->task == NULL || call(mutex, MUTEX_CLOSE) != 0)
        return VMPCP_INVALID;
    vmpcp_vm.port->enter();
    __atomic_store_n(link_to(mutex, mutex->task->vcpu), mutex->next, __ATOMIC_RELEASE);
    vmpcp_vm.port->leave();
    mutex->task = NULL;
    return VMPCP_OK;
}

static int lock(struct vmpcp_inter *mutex, uint32_t function)
{
    int64_t answer;
    bool owner_died;

    if (mutex == NULL || mutex->task == NULL || !vmpcp_begin_global(mutex->task))
        return VMPCP_INVALID;
    answer = call(mutex, function);
    owner_died = answer == OWNER_DIED;
    mutex->queued = answer == QUEUED ? vmpcp_counter() : 0;
    if (answer == QUEUED) {
        /* Before the byte is looked at: a grant that comes in between wakes the task. */
        __atomic_store_n(&mutex->waits, true, __ATOMIC_SEQ_CST);
        while (!is_granted(mutex))
            vmpcp_vm.port->sleep(mutex->task);
        __atomic_store_n(&mutex->waits, false, __ATOMIC_RELAXED);
        owner_died = (state(mutex) & 0x80) != 0;
    } else if (answer != HELD && answer != OWNER_DIED) {
        vmpcp_end_global(mutex->task);
        return answer == BUSY ? VMPCP_BUSY : VMPCP_INVALID;
    }
    mutex->holds = true;
    return owner_died ? VMPCP_OWNER_DIED : VMPCP_OK;
}

int vmpcp_inter_lock(struct vmpcp_inter *mutex)
{
    return lock(mutex, MUTEX_LOCK);
}

int vmpcp_inter_trylock(struct vmpcp_inter *mutex)
{
    return lock(mutex, MUTEX_TRYLOCK);
}

static int give_back(struct vmpcp_inter *mutex, uint32_t function)
{
    int64_t answer;

    if (mutex == NULL || mutex->task == NULL || !mutex->holds)
        return VMPCP_INVALID;
    mutex->holds = false;
    answer = call(mutex, function);
    if (answer == NOT_SUPPORTED) {
        mutex->holds = true;
        return VMPCP_NOT_SUPPORTED;
    }
    /* Whatever else it says, the task does not hold it any more. */
    vmpcp_end_global(mutex->task);
    return answer == 0 ? VMPCP_OK : VMPCP_INVALID;
}

int vmpcp_inter_unlock(struct vmpcp_inter *mutex)
{
    return give_back(mutex, MUTEX_UNLOCK);
}

int vmpcp_inter_abandon(struct vmpcp_inter *mutex)
{
    return give_back(mutex, MUTEX_ABANDON);
}

void vmpcp_inter_interrupt(unsigned vcpu)
{
    struct vmpcp_inter *user = __atomic_load_n(&users[vcpu], __ATOMIC_ACQUIRE);

    for (; user != NULL; user = __atomic_load_n(&user->next, __ATOMIC_ACQUIRE))
        if (__atomic_load_n(&user->waits, __ATOMIC_RELAXED) && is_granted(user))
            vmpcp_vm.port->wake(user->task, true);
}
