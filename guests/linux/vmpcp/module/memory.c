// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Memory that VMs share, as the device tree names it. */
#include <linux/mm.h>
#include <linux/of.h>
#include <linux/of_address.h>
#include <linux/string.h>
#include <linux/version.h>

#include "module.h"

#define COMPATIBLE "cassata,shared-memory"

static int describe(struct device_node *node, struct vmpcp_memory *memory)
{
    struct resource range;

    if (of_address_to_resource(node, 0, &range))
        return -EINVAL;
    memory->offset = range.start;
    memory->size = resource_size(&range);
    memory->read_only = of_property_read_bool(node, "read-only");
    return 0;
}

int memory_find(struct vmpcp_memory *memory)
{
    struct device_node *node;
    const char *label;

    for_each_compatible_node(node, NULL, COMPATIBLE) {
        if (!of_property_read_string(node, "label", &label) && !strcmp(label, memory->label)) {
            int error = describe(node, memory);

            of_node_put(node);
            return error;
        }
    }
    return -ENOENT;
}

/* True if the bytes are all of one shared memory, which is filled in. */
static bool is_shared(u64 from, u64 bytes, struct vmpcp_memory *memory)
{
    struct device_node *node;

    for_each_compatible_node(node, NULL, COMPATIBLE) {
        if (!describe(node, memory) && from >= memory->offset &&
            from - memory->offset <= memory->size &&
            bytes <= memory->size - (from - memory->offset)) {
            of_node_put(node);
            return true;
        }
    }
    return false;
}

static void never_writable(struct vm_area_struct *vma)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
    vm_flags_clear(vma, VM_MAYWRITE);
#else
    vma->vm_flags &= ~VM_MAYWRITE;
#endif
}

int memory_map(struct vm_area_struct *vma)
{
    struct vmpcp_memory memory;
    u64 bytes = vma->vm_end - vma->vm_start;

    if (!is_shared((u64)vma->vm_pgoff << PAGE_SHIFT, bytes, &memory))
        return -ENXIO;
    /* A copy of what other VMs write would be of no use. */
    if (!(vma->vm_flags & VM_SHARED))
        return -EINVAL;
    if (memory.read_only) {
        if (vma->vm_flags & VM_WRITE)
            return -EACCES;
        never_writable(vma);
    }
    /* Normal memory, write-back, as all VMs map it. */
    return remap_pfn_range(vma, vma->vm_start, vma->vm_pgoff, bytes, vma->vm_page_prot);
}
