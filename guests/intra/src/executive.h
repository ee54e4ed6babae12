/* Tasks on several vCPUs, and the port of guests/vmpcp for them. Each vCPU runs that of its own tasks
 * which is ready and has the highest level. */
#ifndef EXECUTIVE_H
#define EXECUTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "vmpcp.h"

#define VCPUS 3u
#define TASKS_OF_VCPU 2u
#define STACK_BYTES 8192u

struct worker {
    struct vmpcp_task task;   /* as the library knows it; its level is the one it runs at */
    uint64_t *stack;          /* where it goes on, while it does not run */
    enum { READY, SLEEPS, DELAYED, ENDED } state;
    bool woken;               /* since it slept last */
    uint64_t release;         /* the instant until which it is DELAYED */
    void (*asleep)(struct worker *); /* is called before it sleeps */
    void (*body)(struct worker *);
    _Alignas(16) uint8_t memory[STACK_BYTES];
};

extern const struct vmpcp_port executive_port;

/* Makes a task of a vCPU that is not yet on, released at an instant. `number` is below
 * TASKS_OF_VCPU. */
void executive_add(struct worker *worker, unsigned vcpu, unsigned number, uint64_t release);
/* Runs the tasks of this vCPU for ever; the last of all tasks to end switches the machine off. */
_Noreturn void executive_run(void);
/* Lets the calling task wait for an instant. */
void executive_delay_until(struct worker *self, uint64_t release);

/* What main.c provides: the last task of a vCPU has ended. */
void vcpu_has_ended(unsigned vcpu);

#endif
