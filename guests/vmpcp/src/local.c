/* Resources of one vCPU: the priority ceiling protocol (Sha, Rajkumar, Lehoczky 1990), or highest
 * locker. */
#include "internal.h"

/* Of each vCPU: the resources that are held, and the priorities of tasks that wait for one. */
static struct vmpcp_local *held[VMPCP_VCPUS];
static uint32_t waiting[VMPCP_VCPUS];

void vmpcp_local_forget(void)
{
    for (unsigned vcpu = 0; vcpu < VMPCP_VCPUS; vcpu++) {
        held[vcpu] = NULL;
        waiting[vcpu] = 0;
    }
}

int vmpcp_local_open(struct vmpcp_local *resource, unsigned vcpu, unsigned ceiling,
                     enum vmpcp_protocol protocol)
{
    if (vcpu >= vmpcp_vm.vcpus || ceiling >= VMPCP_PRIORITIES
        || (protocol != VMPCP_PRIORITY_CEILING && protocol != VMPCP_HIGHEST_LOCKER))
        return VMPCP_INVALID;
    *resource = (struct vmpcp_local){ .vcpu = vcpu, .ceiling = ceiling, .protocol = protocol };
    return VMPCP_OK;
}

/* The resource that keeps a task from locking any: that with the highest ceiling of those that
 * others hold, unless the task's priority is above it. */
static struct vmpcp_local *obstacle(const struct vmpcp_task *task)
{
    struct vmpcp_local *highest = NULL;

    for (struct vmpcp_local *one = held[task->vcpu]; one != NULL; one = one->next)
        if (one->holder != task && one->ceiling >= task->priority
            && (highest == NULL || one->ceiling > highest->ceiling))
            highest = one;
    return highest;
}

static void inherit(struct vmpcp_task *task, unsigned level)
{
    if (task->inherited < level)
        task->inherited = level;
}

static unsigned level_of(const struct vmpcp_task *task)
{
    return task->inherited > task->priority ? task->inherited : task->priority;
}

/* Lets every task of a vCPU run at the level that its resources and those that wait give it. */
static void settle(unsigned vcpu)
{
    struct vmpcp_task **tasks = vmpcp_vm.tasks[vcpu];

    for (unsigned i = 0; i < VMPCP_PRIORITIES; i++)
        if (tasks[i] != NULL)
            tasks[i]->inherited = 0;
    for (struct vmpcp_local *one = held[vcpu]; one != NULL; one = one->next)
        if (one->protocol == VMPCP_HIGHEST_LOCKER)
            inherit(one->holder, one->ceiling);
    /* From the highest task down: a task that waits passes on what it inherits itself, which
     * comes from tasks above it. */
    for (unsigned i = VMPCP_PRIORITIES; i-- > 0;)
        if (waiting[vcpu] >> i & 1) {
            struct vmpcp_local *in_the_way = obstacle(tasks[i]);
            if (in_the_way != NULL)
                inherit(in_the_way->holder, level_of(tasks[i]));
        }
    for (unsigned i = 0; i < VMPCP_PRIORITIES; i++)
        if (tasks[i] != NULL)
            vmpcp_update(tasks[i]);
}

int vmpcp_local_lock(struct vmpcp_local *resource, struct vmpcp_task *self)
{
    const struct vmpcp_port *port = vmpcp_vm.port;

    if (!vmpcp_is_task(self) || self->vcpu != resource->vcpu || self->global
        || self->priority > resource->ceiling || resource->holder == self)
        return VMPCP_INVALID;
    port->enter();
    while (obstacle(self) != NULL) {
        waiting[self->vcpu] |= UINT32_C(1) << self->priority;
        settle(self->vcpu);
        port->leave();
        port->sleep(self);
        port->enter();
        waiting[self->vcpu] &= ~(UINT32_C(1) << self->priority);
    }
    resource->holder = self;
    resource->next = held[self->vcpu];
    held[self->vcpu] = resource;
    self->locals++;
    settle(self->vcpu);
    port->leave();
    return VMPCP_OK;
}

int vmpcp_local_unlock(struct vmpcp_local *resource, struct vmpcp_task *self)
{
    const struct vmpcp_port *port = vmpcp_vm.port;
    struct vmpcp_local **link;

    if (!vmpcp_is_task(self) || self->vcpu != resource->vcpu || resource->holder != self)
        return VMPCP_INVALID;
    port->enter();
    for (link = &held[self->vcpu]; *link != resource;)
        link = &(*link)->next;
    *link = resource->next;
    resource->holder = NULL;
    self->locals--;
    settle(self->vcpu);
    for (unsigned i = VMPCP_PRIORITIES; i-- > 0;)
        if (waiting[self->vcpu] >> i & 1 && obstacle(vmpcp_vm.tasks[self->vcpu][i]) == NULL)
            port->wake(vmpcp_vm.tasks[self->vcpu][i], false);
    port->leave();
    return VMPCP_OK;
}
