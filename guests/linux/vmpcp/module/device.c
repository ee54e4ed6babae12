// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* /dev/vmpcp: programs use mutexes that keep to the vMPCP protocol (Kim, Wang, Rajkumar, RTSS
 * 2014), together with EL2 where it concerns vCPUs. docs/src/sharing.md shows how. */
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>

#include "module.h"

#define MOST_VCPUS 16

/* A mutex that a program uses: one of both, or none. */
struct use {
    struct claim *claim;
    struct intra *intra;
    unsigned int calls; /* requests that are under way */
    bool is_closing;    /* one of them ends it: there may be no other */
};

/* An open file. */
struct session {
    spinlock_t lock;
    struct use uses[VMPCP_MOST_MUTEXES];
    atomic_t started[MOST_VCPUS]; /* START_GCS without FINISH_GCS */
};

static struct vmpcp_info service;

static int session_open(struct inode *inode, struct file *file)
{
    struct session *session = kzalloc(sizeof *session, GFP_KERNEL);

    if (!session)
        return -ENOMEM;
    spin_lock_init(&session->lock);
    file->private_data = session;
    return 0;
}

static bool is_used(const struct use *use)
{
    return use->claim || use->intra;
}

/* Keeps a mutex from being closed while a request is under way. */
static struct use *begin(struct session *session, unsigned long id)
{
    struct use *use = NULL;

    if (id >= VMPCP_MOST_MUTEXES)
        return NULL;
    spin_lock(&session->lock);
    if (is_used(&session->uses[id]) && !session->uses[id].is_closing) {
        use = &session->uses[id];
        use->calls++;
    }
    spin_unlock(&session->lock);
    return use;
}

static void end(struct session *session, struct use *use)
{
    spin_lock(&session->lock);
    use->calls--;
    spin_unlock(&session->lock);
}

/* Returns the identifier, or an error if there are too many. */
static int add(struct session *session, struct use use)
{
    int id;

    spin_lock(&session->lock);
    for (id = 0; id < VMPCP_MOST_MUTEXES; id++) {
        if (!is_used(&session->uses[id]))
            break;
    }
    if (id < VMPCP_MOST_MUTEXES)
        session->uses[id] = use;
    spin_unlock(&session->lock);
    return id < VMPCP_MOST_MUTEXES ? id : -EMFILE;
}

static int close_use(struct session *session, struct use use)
{
    return use.claim ? inter_close(use.claim) : intra_close(use.intra, session);
}

static long close_mutex(struct session *session, unsigned long id)
{
    struct use *use = begin(session, id);
    int error = 0;

    if (!use)
        return -EINVAL;
    spin_lock(&session->lock);
    if (use->calls > 1)
        error = -EBUSY;
    else
        use->is_closing = true;
    spin_unlock(&session->lock);
    if (!error)
        error = close_use(session, *use);
    spin_lock(&session->lock);
    if (!error)
        *use = (struct use){};
    else if (use->calls-- == 1)
        use->is_closing = false;
    spin_unlock(&session->lock);
    return error;
}

/* Names are not trusted to end. */
static bool is_name(char name[VMPCP_NAME_BYTES])
{
    return name[0] && strnlen(name, VMPCP_NAME_BYTES) < VMPCP_NAME_BYTES;
}

static long open_inter(struct session *session, struct vmpcp_inter __user *argument)
{
    struct vmpcp_inter open;
    struct use use = {};
    int id;

    if (copy_from_user(&open, argument, sizeof open))
        return -EFAULT;
    if (!is_name(open.mutex) || !is_name(open.task))
        return -EINVAL;
    id = inter_open(&open, session, &use.claim);
    if (id)
        return id;
    id = add(session, use);
    open.id = id;
    if (id < 0 || copy_to_user(argument, &open, sizeof open)) {
        if (id < 0)
            close_use(session, use);
        else
            close_mutex(session, id);
        return id < 0 ? id : -EFAULT;
    }
    return 0;
}

static long open_intra(struct session *session, struct vmpcp_intra __user *argument)
{
    struct vmpcp_intra open;
    struct use use = {};
    int id;

    if (copy_from_user(&open, argument, sizeof open))
        return -EFAULT;
    if (!is_name(open.name))
        return -EINVAL;
    id = intra_open(&open, &use.intra);
    if (id)
        return id;
    id = add(session, use);
    if (id < 0) {
        close_use(session, use);
        return id;
    }
    return put_user((u32)id, &argument->id);
}

static long use_mutex(struct session *session, unsigned int request, unsigned long id)
{
    struct use *use = begin(session, id);
    bool may_wait = request == VMPCP_LOCK;
    long answer;

    if (!use)
        return -EINVAL;
    if (request == VMPCP_UNLOCK)
        answer = use->claim ? inter_unlock(use->claim) : intra_unlock(use->intra);
    else if (use->claim)
        answer = inter_lock(use->claim, session, may_wait);
    else
        answer = intra_lock(use->intra, session, may_wait);
    end(session, use);
    return answer;
}

static long read_queued(struct session *session, struct vmpcp_queued __user *argument)
{
    struct vmpcp_queued queued;
    struct use *use;
    bool is_inter;

    if (copy_from_user(&queued, argument, sizeof queued))
        return -EFAULT;
    use = begin(session, queued.id);
    if (!use)
        return -EINVAL;
    is_inter = use->claim;
    if (is_inter)
        queued.since = inter_queued(use->claim);
    end(session, use);
    if (!is_inter)
        return -EINVAL;
    return copy_to_user(argument, &queued, sizeof queued) ? -EFAULT : 0;
}

static long error_of(long answer)
{
    switch (answer) {
    case 0:
        return 0;
    case ANSWER_BUSY:
        return -EBUSY;
    case ANSWER_NOT_SUPPORTED:
        return -EOPNOTSUPP;
    default:
        return -EINVAL;
    }
}

static long start_gcs(struct session *session, unsigned long vcpu)
{
    long answer;

    if (vcpu >= MOST_VCPUS)
        return -EINVAL;
    answer = service_call(CALL_START_GCS, vcpu, 0);
    if (answer == 0)
        atomic_inc(&session->started[vcpu]);
    return error_of(answer);
}

static long finish_gcs(struct session *session, unsigned long vcpu)
{
    if (vcpu >= MOST_VCPUS)
        return -EINVAL;
    /* One less than none would be another session's. If EL2 knows of none, the vCPU was switched
     * off meanwhile, so there is nothing left to finish. */
    if (atomic_dec_if_positive(&session->started[vcpu]) < 0)
        return -EPERM;
    return error_of(cpus_finish_gcs(vcpu));
}

static long find_memory(struct vmpcp_memory __user *argument)
{
    struct vmpcp_memory memory;
    int error;

    if (copy_from_user(&memory, argument, sizeof memory))
        return -EFAULT;
    if (!is_name(memory.label))
        return -EINVAL;
    error = memory_find(&memory);
    if (error)
        return error;
    return copy_to_user(argument, &memory, sizeof memory) ? -EFAULT : 0;
}

static long find_report(struct vmpcp_report __user *argument)
{
    struct vmpcp_report report;
    int error = memory_report(&report);

    if (error)
        return error;
    return copy_to_user(argument, &report, sizeof report) ? -EFAULT : 0;
}

static long read_counter(struct vmpcp_counter __user *argument)
{
    struct vmpcp_counter counter;
    int error;

    if (copy_from_user(&counter, argument, sizeof counter))
        return -EFAULT;
    error = service_counter(&counter);
    if (error)
        return error;
    return copy_to_user(argument, &counter, sizeof counter) ? -EFAULT : 0;
}

static long session_ioctl(struct file *file, unsigned int request, unsigned long argument)
{
    struct session *session = file->private_data;
    void __user *memory = (void __user *)argument;

    switch (request) {
    case VMPCP_INFO:
        return copy_to_user(memory, &service, sizeof service) ? -EFAULT : 0;
    case VMPCP_OPEN_INTER:
        return open_inter(session, memory);
    case VMPCP_OPEN_INTRA:
        return open_intra(session, memory);
    case VMPCP_CLOSE:
        return close_mutex(session, argument);
    case VMPCP_LOCK:
    case VMPCP_TRYLOCK:
    case VMPCP_UNLOCK:
        return use_mutex(session, request, argument);
    case VMPCP_START_GCS:
        return start_gcs(session, argument);
    case VMPCP_FINISH_GCS:
        return finish_gcs(session, argument);
    case VMPCP_MEMORY:
        return find_memory(memory);
    case VMPCP_COUNTER:
        return read_counter(memory);
    case VMPCP_REPORT:
        return find_report(memory);
    case VMPCP_QUEUED:
        return read_queued(session, memory);
    default:
        return -ENOTTY;
    }
}

static int session_mmap(struct file *file, struct vm_area_struct *vma)
{
    return memory_map(vma);
}

/* A process closes the file or ends, but may have forked: the file stays open in its children, and
 * what the caller and dead tasks hold is released here. Other tasks that live keep theirs, also
 * those that had the process's files until they called unshare. */
static int session_flush(struct file *file, fl_owner_t files)
{
    section_release_all(file->private_data, false);
    return 0;
}

static int session_release(struct inode *inode, struct file *file)
{
    struct session *session = file->private_data;
    unsigned int at;

    section_release_all(session, true);
    for (at = 0; at < VMPCP_MOST_MUTEXES; at++) {
        if (is_used(&session->uses[at]))
            close_use(session, session->uses[at]);
    }
    for (at = 0; at < MOST_VCPUS; at++) {
        while (atomic_dec_if_positive(&session->started[at]) >= 0)
            cpus_finish_gcs(at);
    }
    kfree(session);
    return 0;
}

static const struct file_operations operations = {
    .owner = THIS_MODULE,
    .open = session_open,
    .unlocked_ioctl = session_ioctl,
    .mmap = session_mmap,
    .flush = session_flush,
    .release = session_release,
};

static struct miscdevice device = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = "vmpcp",
    .fops = &operations,
    .mode = 0600,
};

static int __init vmpcp_begin(void)
{
    int error = service_find(&service);

    if (error)
        return error;
    error = inter_begin();
    if (error)
        return error;
    error = cpus_begin();
    if (error)
        goto no_cpus;
    service.interrupt = cpus_have_interrupt();
    error = misc_register(&device);
    if (error)
        goto no_device;
    return 0;

no_device:
    cpus_end();
no_cpus:
    inter_end();
    return error;
}

static void __exit vmpcp_end(void)
{
    misc_deregister(&device);
    cpus_end();
    inter_end();
    intra_end();
}

module_init(vmpcp_begin);
module_exit(vmpcp_end);
MODULE_DESCRIPTION("Mutexes of Cassata's vMPCP");
MODULE_LICENSE("GPL");
