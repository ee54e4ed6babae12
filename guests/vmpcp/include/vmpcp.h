/* Resources that tasks share, by vMPCP (RTSS 2014): a library for FreeRTOS and bare metal.
 *
 *   vmpcp_inter_*   mutexes of the hypervisor, which tasks of several VMs use
 *   vmpcp_intra_*   mutexes of one VM, whose tasks are on several vCPUs
 *   vmpcp_local_*   resources of one vCPU
 *
 * C11, no headers but those that every compiler brings. All memory is static; nothing is
 * allocated. README.md says how to use it, and what an operating system has to provide. */
#ifndef VMPCP_H
#define VMPCP_H

#include <stdbool.h>
#include <stdint.h>

/* vCPUs of a VM. */
#define VMPCP_VCPUS 8u
/* Priorities of tasks: 0 to 31, larger is higher. */
#define VMPCP_PRIORITIES 32u
/* Levels that a task runs at: its priority or that of a local resource; and from
 * VMPCP_PRIORITIES on the same again, for tasks that hold what other vCPUs wait for. */
#define VMPCP_LEVELS (2 * VMPCP_PRIORITIES)
/* Mutexes of one VM, at the same time. */
#define VMPCP_INTRA_MUTEXES 16u
/* Longest name of one of them, without its zero. */
#define VMPCP_NAME 15u

/* Answers. All functions below that answer an int answer one of these. */
enum {
    VMPCP_OK = 0,
    VMPCP_OWNER_DIED = 1,     /* done, and the holder before died: what it left may be in disorder */
    VMPCP_BUSY = 2,           /* another task has it */
    VMPCP_INVALID = -1,       /* not now, not by this task, or out of range */
    VMPCP_NOT_SUPPORTED = -2, /* no such service below, or the description names no such thing */
    VMPCP_FULL = -3,          /* no room for one more */
};

/* A task. Its memory belongs to the caller; vmpcp_task_add fills it in. */
struct vmpcp_task {
    void *os;                 /* how the port knows it */
    unsigned vcpu, priority;
    unsigned level;           /* what the port was told last */
    unsigned inherited;       /* of tasks that wait for a local resource it holds */
    unsigned locals;          /* local resources that it holds */
    bool global;              /* it has, or waits for, what other vCPUs use */
    bool raised;              /* START_GCS was called for its section */
    bool granted;             /* the mutex that it waits for is its own */
};

/* What the operating system does for the library. A port may be called on all vCPUs. */
struct vmpcp_port {
    /* Keeps all other tasks of this vCPU from running until `leave`. Not nested. A task that
     * `set_priority` or `wake` would let run may run then. */
    void (*enter)(void);
    void (*leave)(void);
    /* Sets the priority of a task of this vCPU to a level, 0 to VMPCP_LEVELS - 1. */
    void (*set_priority)(struct vmpcp_task *task, unsigned level);
    /* Lets the calling task sleep until it is woken; returns at once if it was woken since it
     * slept last. It may return too early, too. */
    void (*sleep)(struct vmpcp_task *self);
    /* Wakes a task of this vCPU. */
    void (*wake)(struct vmpcp_task *task, bool from_interrupt);
    /* Interrupts another vCPU, whose handler calls vmpcp_intra_interrupt. NULL if there is none. */
    void (*interrupt)(unsigned vcpu);
};

/* Begins. `priorities` are those of the VM's `vcpus` vCPUs in the system's description; among
 * equal ones the vCPU of the lower index is served first. Once, before all else. Answers
 * VMPCP_OK; VMPCP_NOT_SUPPORTED if there is no service below, and then no vCPU is raised, and
 * there are no mutexes between VMs; VMPCP_INVALID for too many vCPUs. */
int vmpcp_init(const struct vmpcp_port *port, const unsigned priorities[], unsigned vcpus);

/* Makes a task known. No two tasks of a vCPU have one priority. */
int vmpcp_task_add(struct vmpcp_task *task, void *os, unsigned vcpu, unsigned priority);

/* Raises a vCPU of this VM to its ceiling, and lowers it again: what the mutexes below do by
 * themselves. Answers VMPCP_OK; VMPCP_NOT_SUPPORTED if the description gives the vCPU no global
 * critical sections; VMPCP_BUSY if other vCPUs have raised it too often in this period;
 * VMPCP_INVALID if it is no such vCPU, or is not raised. */
int vmpcp_start_gcs(unsigned vcpu);
int vmpcp_finish_gcs(unsigned vcpu);

/* A task's use of a mutex of the hypervisor. Its memory belongs to the caller and is zero at
 * first; it stays where it is while the mutex is open. */
struct vmpcp_inter {
    struct vmpcp_task *task;
    uint64_t handle;
    const uint8_t *byte;      /* of the stolen-time page: which task of this vCPU holds it */
    bool waits;
    uint64_t queued;          /* by the counter (CNTVCT_EL0): the last time that it was locked, the
                                 task was in the queue by then. 0: it had not to wait */
    bool holds;
    struct vmpcp_inter *next;
};

/* Opens a mutex by its name in the description (`gcs`), for the task of that name, on that task's
 * vCPU. The stolen-time page must be mapped at its guest-physical address, read-only, as Normal
 * memory. */
int vmpcp_inter_open(struct vmpcp_inter *mutex, struct vmpcp_task *self, const char *name,
                     const char *task_name);
int vmpcp_inter_close(struct vmpcp_inter *mutex);
/* Raises the calling task, and waits until it holds the mutex. Answers VMPCP_OK, or
 * VMPCP_OWNER_DIED, which is a success too. */
int vmpcp_inter_lock(struct vmpcp_inter *mutex);
/* The same, but answers VMPCP_BUSY where it would wait. */
int vmpcp_inter_trylock(struct vmpcp_inter *mutex);
int vmpcp_inter_unlock(struct vmpcp_inter *mutex);
/* Gives it back as from a task that died with it: the next one to hold it, in whichever VM, gets
 * VMPCP_OWNER_DIED. For an operating system that ends a task; called on that task's vCPU, by any
 * task, before the port forgets the one that ends. Answers VMPCP_INVALID if that does not hold the
 * mutex, and VMPCP_NOT_SUPPORTED if the service below is older than 1.2: then it still does. */
int vmpcp_inter_abandon(struct vmpcp_inter *mutex);
/* The handler of interrupt VMPCP_GRANT_INTID calls this. */
#define VMPCP_GRANT_INTID 22u
void vmpcp_inter_interrupt(unsigned vcpu);

/* In which order tasks that wait get a mutex. */
enum vmpcp_order {
    VMPCP_VCPU_FIRST, /* vMPCP: by vCPU, then by task; holders raise their vCPUs */
    VMPCP_TASK_FIRST, /* MPCP, the baseline, which knows of no hypervisor: by task, then by vCPU */
};

/* Creates a mutex of this VM, or attaches to the one of that name. Answers its number, 0 or more,
 * or an error: VMPCP_INVALID for a bad name, or if it has another order. */
int vmpcp_intra_open(const char *name, enum vmpcp_order order);
/* Takes back one vmpcp_intra_open; the last one destroys the mutex. */
int vmpcp_intra_destroy(int mutex);
int vmpcp_intra_lock(int mutex, struct vmpcp_task *self);
int vmpcp_intra_trylock(int mutex, struct vmpcp_task *self);
int vmpcp_intra_unlock(int mutex, struct vmpcp_task *self);
/* The handler of the port's `interrupt` calls this. */
void vmpcp_intra_interrupt(unsigned vcpu);

/* How a local resource is shared. */
enum vmpcp_protocol {
    VMPCP_PRIORITY_CEILING, /* a holder inherits the priority of a task that waits for it */
    VMPCP_HIGHEST_LOCKER,   /* a holder has the resource's ceiling from the beginning */
};

/* A local resource. Its memory belongs to the caller. */
struct vmpcp_local {
    unsigned vcpu, ceiling;
    enum vmpcp_protocol protocol;
    struct vmpcp_task *holder;
    struct vmpcp_local *next;
};

/* Makes a resource of a vCPU. `ceiling` is the highest priority of a task that uses it. */
int vmpcp_local_open(struct vmpcp_local *resource, unsigned vcpu, unsigned ceiling,
                     enum vmpcp_protocol protocol);
/* Sections of local resources may be nested, but not with those of mutexes. */
int vmpcp_local_lock(struct vmpcp_local *resource, struct vmpcp_task *self);
int vmpcp_local_unlock(struct vmpcp_local *resource, struct vmpcp_task *self);

#endif
