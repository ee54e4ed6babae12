/* What the parts of the library share. */
#ifndef VMPCP_INTERNAL_H
#define VMPCP_INTERNAL_H

#include <stddef.h>

#include "vmpcp.h"

/* crates/abi/src/service.rs in C. */
#define CALL_UID       0x8600ff01u
#define CALL_REVISION  0x8600ff03u
#define START_GCS      0xc6000010u
#define FINISH_GCS     0xc6000011u
#define MUTEX_OPEN     0xc6000012u
#define MUTEX_CLOSE    0xc6000013u
#define MUTEX_LOCK     0xc6000014u
#define MUTEX_TRYLOCK  0xc6000015u
#define MUTEX_UNLOCK   0xc6000016u
#define MUTEX_ABANDON  0xc6000017u

/* Answers of MUTEX_LOCK and MUTEX_TRYLOCK. */
#define HELD       0
#define QUEUED     1
#define OWNER_DIED 2
#define BUSY       3
/* Answer of a call that is not known, or not for this vCPU. */
#define NOT_SUPPORTED (-1)

/* X0 to X3 after a call. */
struct vmpcp_answer {
    uint64_t x[4];
};

/* Calls the hypervisor, with these in X1 and X2 (call.c; the tests have their own). */
struct vmpcp_answer vmpcp_call(uint32_t function, uint64_t x1, uint64_t x2);

/* The virtual counter, CNTVCT_EL0 (call.c; the tests have their own). */
uint64_t vmpcp_counter(void);

/* What vmpcp_init has found, and the tasks: by vCPU and priority. */
struct vmpcp_vm {
    const struct vmpcp_port *port;
    bool has_service;
    unsigned vcpus;
    /* How many vCPUs of the VM each one comes before. */
    unsigned rank[VMPCP_VCPUS];
    struct vmpcp_task *tasks[VMPCP_VCPUS][VMPCP_PRIORITIES];
};

extern struct vmpcp_vm vmpcp_vm;

/* Whether it is a task that was made known. */
bool vmpcp_is_task(const struct vmpcp_task *task);

/* Lets a task run at the level that its state asks for. Between `enter` and `leave`. */
void vmpcp_update(struct vmpcp_task *task);

/* A task begins or ends a section that other vCPUs wait for; false if it may not begin one. */
bool vmpcp_begin_global(struct vmpcp_task *self);
void vmpcp_end_global(struct vmpcp_task *self);

/* Raises the vCPU of a task, and lowers it again. */
void vmpcp_raise_vcpu(struct vmpcp_task *task);
void vmpcp_lower_vcpu(struct vmpcp_task *self);

/* The parts forget all that they know; vmpcp_init calls them. */
void vmpcp_inter_forget(void);
void vmpcp_intra_forget(void);
void vmpcp_local_forget(void);

#endif
