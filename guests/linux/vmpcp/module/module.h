/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the files of the module know of each other. */
#ifndef VMPCP_MODULE_H
#define VMPCP_MODULE_H

#include <linux/fs.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/types.h>

#include "../vmpcp_ioctl.h"

/* service.c: calls of EL2, and which vCPU each CPU is. */

/* Function identifiers and answers, docs/src/design/calls.md. */
#define CALL_UID 0x8600ff01u
#define CALL_REVISION 0x8600ff03u
#define CALL_COUNTER 0xc6000002u
#define CALL_START_GCS 0xc6000010u
#define CALL_FINISH_GCS 0xc6000011u
#define CALL_MUTEX_OPEN 0xc6000012u
#define CALL_MUTEX_CLOSE 0xc6000013u
#define CALL_MUTEX_LOCK 0xc6000014u
#define CALL_MUTEX_TRYLOCK 0xc6000015u
#define CALL_MUTEX_UNLOCK 0xc6000016u
#define CALL_MUTEX_ABANDON 0xc6000017u
#define ANSWER_HELD 0
#define ANSWER_QUEUED 1
#define ANSWER_OWNER_DIED 2
#define ANSWER_BUSY 3
#define ANSWER_NOT_SUPPORTED (-1)

/* Finds the service. 0, or -ENODEV after one line in the log. */
int service_find(struct vmpcp_info *info);
long service_call(u32 function, u64 first, u64 second);
/* MUTEX_OPEN, which has three results. */
long service_open(u64 mutex, u64 task, u64 *handle, u64 *byte);
int service_counter(struct vmpcp_counter *counter);
/* Which vCPU of the VM the calling CPU is; each CPU asks for itself. */
unsigned int service_own_vcpu(void);

/* cpus.c: interrupts and what is done on a certain CPU. */

int cpus_begin(void);
void cpus_end(void);
bool cpus_have_interrupt(void);
/* The CPU to which the calling task is bound, or -EINVAL. */
int cpus_of_current(void);
unsigned int cpus_vcpu(int cpu);
/* FINISH_GCS, called on the CPU that is this vCPU: there EL2 ends what the vCPU itself has begun or
 * what siblings have for it, elsewhere the latter only. */
long cpus_finish_gcs(unsigned int vcpu);

/* sections.c: tasks that hold a mutex. */

/* How a task was scheduled before it was raised. */
struct rank_of_task {
    int policy, nice;
    unsigned int priority; /* of SCHED_FIFO and SCHED_RR, 1 to 99; else 0 */
    bool reset_on_fork;
};

struct session;

/* Mutexes of both kinds are opened, closed and taken from tasks under it. */
extern struct mutex opening;

/* A task that holds a mutex. */
struct section {
    struct list_head link; /* among all of them */
    struct task_struct *task;
    struct session *session;
    struct rank_of_task own;
    void (*release)(struct section *); /* gives the mutex back when the section has been ended */
};

/* Raises the calling task for a mutex that it is about to lock, and fills `section`. Fails if it
 * holds another one: sections do not nest (RTSS 2014, Section II). */
int section_prepare(struct section *section, struct session *session);
/* Gives the task its own priority again. */
void section_lower(const struct section *section);
/* Begins a section: `held` is the mutex's, and becomes what was prepared. */
void section_enter(struct section *held, const struct section *prepared);
/* Ends the calling task's section, and tells what it was: only when the mutex is given back should
 * the caller be lowered. False if the section is not the caller's. */
bool section_leave(struct section *held, struct section *was);
/* Releases what tasks hold that locked it by this session: `all` of them, or the caller and those
 * that died. */
void section_release_all(const struct session *session, bool all);

/* inter.c and claims.c: mutexes that VMs share. */

struct claim;

int inter_open(struct vmpcp_inter *open, struct session *session, struct claim **claim);
int inter_close(struct claim *claim);
int inter_lock(struct claim *claim, struct session *session, bool may_wait);
int inter_unlock(struct claim *claim);
/* When its task was in the queue, the last time that it was locked; 0: it had not to wait. */
u64 inter_queued(const struct claim *claim);
/* The interrupt, on its CPU. */
void inter_granted(void);
/* The CPU is off: EL2 has taken back what its vCPU held. */
void inter_lose_all(int cpu);
int inter_begin(void);
void inter_end(void);

/* intra.c: mutexes of this VM. */

struct intra;

int intra_open(struct vmpcp_intra *open, struct intra **intra);
int intra_close(struct intra *intra, const struct session *session);
int intra_lock(struct intra *intra, struct session *session, bool may_wait);
int intra_unlock(struct intra *intra);
void intra_end(void);

/* memory.c: memory that VMs share, and the report area. */

int memory_find(struct vmpcp_memory *memory);
/* -ENOENT: the VM has none. */
int memory_report(struct vmpcp_report *report);
int memory_map(struct vm_area_struct *vma);

#endif
