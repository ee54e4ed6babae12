/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Mutexes of the vMPCP protocol for Linux programs, by /dev/vmpcp. docs/src/sharing.md tells how to
 * use them.
 *
 * `device` is what vmpcp_open answers, `id` what one of the three functions behind it does. All
 * functions answer 0 or more, or one of errno's numbers, negative. */
#ifndef VMPCP_H
#define VMPCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmpcp_ioctl.h"

/* Opens the device. A program needs it once; what it holds is released when it ends. A thread that
 * closes any descriptor of it loses what it holds by it, as with locks of fcntl. */
int vmpcp_open(void);

/* Uses a mutex that VMs share, for a task that the description declares for the vCPU that the
 * calling thread is bound to. -ENOENT: the description has no such mutex and task for it. -EINVAL:
 * the thread is bound to no CPU. -EBUSY: another open file has it. */
int vmpcp_inter_mutex(int device, const char *mutex, const char *task);
/* Uses a mutex of this VM, and makes it if need be. -EINVAL: it is there, with another order.
 * -ENOSPC: there are 256 already; those that a task died with stay until another one was told. */
int vmpcp_intra_mutex(int device, const char *name, enum vmpcp_order order);
/* Ends the use. A mutex of this VM is gone when its last use ends, unless a task died with it and
 * none was told yet. -EBUSY: it is held. */
int vmpcp_close(int device, int id);

/* Locks a mutex, and raises the calling thread above all that hold none, and its vCPU. Waits if it
 * must, until a signal kills the process.
 *
 * 0 and -EOWNERDEAD: the thread holds it; the second says that the task that held it before, in
 * whichever VM, died with it, so that what it protects may be in disorder. -EDEADLK: the thread
 * holds a mutex already. -EXDEV: it is bound to another CPU than the one of the task. -ESTALE: that
 * CPU was switched off, so the mutex has to be opened again. -EBUSY: another thread uses the same
 * identifier. */
int vmpcp_lock(int device, int id);
/* Likewise, but -EBUSY where the thread would wait. */
int vmpcp_trylock(int device, int id);
/* Gives it back. -EPERM: the thread does not hold it. */
int vmpcp_unlock(int device, int id);
/* When a mutex that VMs share was locked last through this file, by the counter (CNTVCT_EL0): the
 * thread was in its queue by then. 0: it had not to wait. */
int vmpcp_queued(int device, int id, uint64_t *since);

/* Raises a vCPU of this VM, or ends that: calls of EL2 for programs that have mutexes of their own.
 * -EOPNOTSUPP: the description gives it no global critical sections. -EBUSY: it was raised too
 * often in its period. -EPERM: this file has not raised it. */
int vmpcp_start_gcs(int device, unsigned vcpu);
int vmpcp_finish_gcs(int device, unsigned vcpu);

/* Maps a shared memory by its name in the description. NULL, with errno set, if there is none. */
void *vmpcp_map(int device, const char *name, size_t *bytes, bool *read_only);
/* Maps the report area of this VM, docs/src/guests.md. NULL, with errno set, if it has none. */
void *vmpcp_report(int device, size_t *bytes);

int vmpcp_info(int device, struct vmpcp_info *info);
/* A word that EL2 counts of a vCPU of this VM. */
int vmpcp_counter(int device, unsigned vcpu, unsigned word, uint64_t *value);

#endif
