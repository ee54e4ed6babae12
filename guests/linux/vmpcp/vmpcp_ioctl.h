/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What programs and the module agree on: requests to /dev/vmpcp. See vmpcp.h for functions that
 * make them. All answer 0, or -1 with errno set. */
#ifndef VMPCP_IOCTL_H
#define VMPCP_IOCTL_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Bytes of a name, with the zero at its end. */
#define VMPCP_NAME_BYTES 64
/* Mutexes that one open file may use; their identifiers are smaller. */
#define VMPCP_MOST_MUTEXES 32

/* In which order tasks that wait for a mutex of this VM are served. */
enum vmpcp_order {
    VMPCP_VCPU_FIRST = 0, /* the vCPU's priority, then the task's; raises the holder's vCPU (vMPCP) */
    VMPCP_TASK_FIRST = 1, /* the task's priority; raises no vCPU (MPCP) */
};

/* A mutex that VMs share, for a task that the description declares on the vCPU of the caller. */
struct vmpcp_inter {
    char mutex[VMPCP_NAME_BYTES];
    char task[VMPCP_NAME_BYTES];
    __u32 id;     /* answer */
    __u32 others; /* answer: 1 if another task uses it already */
};

/* A mutex of this VM, which comes into being when it is opened first. */
struct vmpcp_intra {
    char name[VMPCP_NAME_BYTES];
    __u32 order; /* enum vmpcp_order; as it was opened first */
    __u32 id;    /* answer */
};

/* A shared memory of this VM. */
struct vmpcp_memory {
    char label[VMPCP_NAME_BYTES];
    __u64 offset; /* answer: where it begins, for mmap */
    __u64 size;   /* answer: bytes */
    __u32 read_only;
    __u32 reserved;
};

/* Where the report area of this VM is, which programs fill and the host reads. */
struct vmpcp_report {
    __u64 offset; /* answer: where it begins, for mmap */
    __u64 size;   /* answer: bytes */
};

/* A word that EL2 counts of a vCPU of this VM, see docs/src/design/status.md. */
struct vmpcp_counter {
    __u32 vcpu;
    __u32 word;
    __u64 value; /* answer */
};

/* Since when a task stood in the queue of a mutex that VMs share. */
struct vmpcp_queued {
    __u32 id;
    __u32 reserved;
    __u64 since; /* answer: by the counter (CNTVCT_EL0), when it was locked last; 0: it had not to wait */
};

struct vmpcp_info {
    __u32 major, minor; /* revision of the service */
    __u32 interrupt;    /* 1 if mutexes that VMs share can be waited for */
    __u32 reserved;
};

#define VMPCP_INFO _IOR('v', 0, struct vmpcp_info)
#define VMPCP_OPEN_INTER _IOWR('v', 1, struct vmpcp_inter)
#define VMPCP_OPEN_INTRA _IOWR('v', 2, struct vmpcp_intra)
/* The argument of these is the identifier. */
#define VMPCP_CLOSE _IO('v', 3)
#define VMPCP_LOCK _IO('v', 4)
#define VMPCP_TRYLOCK _IO('v', 5)
#define VMPCP_UNLOCK _IO('v', 6)
/* The argument of these is the index of a vCPU of this VM. */
#define VMPCP_START_GCS _IO('v', 7)
#define VMPCP_FINISH_GCS _IO('v', 8)
#define VMPCP_MEMORY _IOWR('v', 9, struct vmpcp_memory)
#define VMPCP_COUNTER _IOWR('v', 10, struct vmpcp_counter)
#define VMPCP_REPORT _IOR('v', 11, struct vmpcp_report)
#define VMPCP_QUEUED _IOWR('v', 12, struct vmpcp_queued)

#endif
