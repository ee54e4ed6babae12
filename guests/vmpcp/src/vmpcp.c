/* What all parts rest on: the service below, the tasks, and the levels that they run at. */
#include "internal.h"

static const uint32_t SERVICE_UID[4] = { 0xd27c4d1e, 0x534c2b0f, 0x6373509a, 0x61746173 };

struct vmpcp_vm vmpcp_vm;

/* Whether the service below has critical sections and mutexes: revision 1.1 or a later 1.x. */
static bool service_is_there(void)
{
    struct vmpcp_answer answer = vmpcp_call(CALL_UID, 0, 0);

    for (int word = 0; word < 4; word++)
        if ((uint32_t)answer.x[word] != SERVICE_UID[word])
            return false;
    answer = vmpcp_call(CALL_REVISION, 0, 0);
    return (uint32_t)answer.x[0] == 1 && (uint32_t)answer.x[1] >= 1;
}

int vmpcp_init(const struct vmpcp_port *port, const unsigned priorities[], unsigned vcpus)
{
    if (vcpus == 0 || vcpus > VMPCP_VCPUS)
        return VMPCP_INVALID;
    vmpcp_vm = (struct vmpcp_vm){ .port = port, .vcpus = vcpus };
    for (unsigned one = 0; one < vcpus; one++)
        for (unsigned other = 0; other < vcpus; other++)
            vmpcp_vm.rank[one] += priorities[one] > priorities[other]
                || (priorities[one] == priorities[other] && one < other);
    vmpcp_inter_forget();
    vmpcp_intra_forget();
    vmpcp_local_forget();
    vmpcp_vm.has_service = service_is_there();
    return vmpcp_vm.has_service ? VMPCP_OK : VMPCP_NOT_SUPPORTED;
}

int vmpcp_task_add(struct vmpcp_task *task, void *os, unsigned vcpu, unsigned priority)
{
    if (vcpu >= vmpcp_vm.vcpus || priority >= VMPCP_PRIORITIES)
        return VMPCP_INVALID;
    if (vmpcp_vm.tasks[vcpu][priority] != NULL)
        return VMPCP_INVALID;
    *task = (struct vmpcp_task){ .os = os, .vcpu = vcpu, .priority = priority, .level = priority };
    vmpcp_vm.tasks[vcpu][priority] = task;
    return VMPCP_OK;
}

bool vmpcp_is_task(const struct vmpcp_task *task)
{
    return task != NULL && task->vcpu < vmpcp_vm.vcpus && task->priority < VMPCP_PRIORITIES
        && vmpcp_vm.tasks[task->vcpu][task->priority] == task;
}

void vmpcp_update(struct vmpcp_task *task)
{
    unsigned level = task->inherited > task->priority ? task->inherited : task->priority;

    /* Above all tasks that hold nothing, and in their own order among each other. */
    if (task->global)
        level = VMPCP_PRIORITIES + task->priority;
    if (level == task->level)
        return;
    task->level = level;
    vmpcp_vm.port->set_priority(task, level);
}

/* Sets whether a task is in a global section, and its level. */
static void set_global(struct vmpcp_task *self, bool global)
{
    vmpcp_vm.port->enter();
    self->global = global;
    vmpcp_update(self);
    vmpcp_vm.port->leave();
}

bool vmpcp_begin_global(struct vmpcp_task *self)
{
    /* Sections are not nested: the bounds (RTSS 2014, Section II) are of such tasks only. */
    if (!vmpcp_is_task(self) || self->global || self->locals > 0)
        return false;
    set_global(self, true);
    return true;
}

void vmpcp_end_global(struct vmpcp_task *self)
{
    set_global(self, false);
}

static int call_gcs(uint32_t function, unsigned vcpu)
{
    if (!vmpcp_vm.has_service)
        return VMPCP_NOT_SUPPORTED;
    switch ((int64_t)vmpcp_call(function, vcpu, 0).x[0]) {
    case 0:
        return VMPCP_OK;
    case BUSY:
        return VMPCP_BUSY;
    case NOT_SUPPORTED:
        return VMPCP_NOT_SUPPORTED;
    default:
        return VMPCP_INVALID;
    }
}

int vmpcp_start_gcs(unsigned vcpu)
{
    return call_gcs(START_GCS, vcpu);
}

int vmpcp_finish_gcs(unsigned vcpu)
{
    return call_gcs(FINISH_GCS, vcpu);
}

void vmpcp_raise_vcpu(struct vmpcp_task *task)
{
    /* If it answers no, the description allows no section here or too few: the task goes on
     * without, and must not lower what was not raised. */
    task->raised = vmpcp_start_gcs(task->vcpu) == VMPCP_OK;
}

void vmpcp_lower_vcpu(struct vmpcp_task *self)
{
    if (!self->raised)
        return;
    self->raised = false;
    vmpcp_finish_gcs(self->vcpu);
}
