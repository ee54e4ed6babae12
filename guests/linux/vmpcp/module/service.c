// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* The Cassata service, docs/src/design/calls.md. */
#include <linux/arm-smccc.h>
#include <linux/module.h>

#include <asm/cputype.h>

#include "cassata_service.h"
#include "module.h"

long service_call(u32 function, u64 first, u64 second)
{
    struct arm_smccc_res result;

    arm_smccc_1_1_hvc(function, first, second, 0UL, &result);
    return result.a0;
}

long service_open(u64 mutex, u64 task, u64 *handle, u64 *byte)
{
    struct arm_smccc_res result;

    arm_smccc_1_1_hvc(CALL_MUTEX_OPEN, mutex, task, 0UL, &result);
    *handle = result.a1;
    *byte = result.a2;
    return result.a0;
}

int service_counter(struct vmpcp_counter *counter)
{
    struct arm_smccc_res result;

    arm_smccc_1_1_hvc(CALL_COUNTER, (u64)counter->vcpu, (u64)counter->word, 0UL, &result);
    counter->value = result.a1;
    return (long)result.a0 == 0 ? 0 : -ENOENT;
}

unsigned int service_own_vcpu(void)
{
    /* vCPU n has affinity 0.0.0.n. */
    return read_cpuid_mpidr() & 0xff;
}

int service_find(struct vmpcp_info *info)
{
    static const u32 uid[] = { 0xd27c4d1e, 0x534c2b0f, 0x6373509a, 0x61746173 };
    struct arm_smccc_res result;

    if (!service_is_described("cassata,service-1.0")) {
        pr_err("vmpcp: no Cassata service here: the device tree has no node of it\n");
        return -ENODEV;
    }
    arm_smccc_1_1_hvc(CALL_UID, 0UL, 0UL, 0UL, &result);
    if ((u32)result.a0 != uid[0] || (u32)result.a1 != uid[1] || (u32)result.a2 != uid[2] ||
        (u32)result.a3 != uid[3]) {
        pr_err("vmpcp: no Cassata service here: another hypervisor answers\n");
        return -ENODEV;
    }
    arm_smccc_1_1_hvc(CALL_REVISION, 0UL, 0UL, 0UL, &result);
    info->major = result.a0;
    info->minor = result.a1;
    if (info->major != 1 || info->minor < 2) {
        pr_err("vmpcp: the Cassata service has revision %u.%u, and mutexes need 1.2\n",
               info->major, info->minor);
        return -ENODEV;
    }
    return 0;
}
