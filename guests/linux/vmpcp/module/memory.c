// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Memory that VMs share, as the device tree names it, and the report area. */
#include <linux/mm.h>
#include <linux/of.h>
#include <linux/of_address.h>
#include <linux/string.h>
#include <linux/version.h>

#include "module.h"

#define COMPATIBLE "cassata,shared-memory"
#define REPORT "cassata,report"

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

int memory_report(struct vmpcp_report *report)
{
    struct device_node *node = of_find_compatible_node(NULL, NULL, REPORT);
    struct vmpcp_memory memory;
    int error = node ? describe(node, &memory) : -ENOENT;

    of_node_put(node);
    if (!error)
        *report = (struct vmpcp_report){ .offset = memory.offset, .size = memory.size };
    return error;
}

/* True if the bytes are all of one piece of memory whose nodes are `compatible`, which is filled
 * in. */
static bool is_of(const char *compatible, u64 from, u64 bytes, struct vmpcp_memory *memory)
{
    struct device_node *node;

    for_each_compatible_node(node, NULL, compatible) {
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
    u64 from = (u64)vma->vm_pgoff << PAGE_SHIFT, bytes = vma->vm_end - vma->vm_start;

    if (!is_of(COMPATIBLE, from, bytes, &memory) && !is_of(REPORT, from, bytes, &memory))
        return -ENXIO;
    /* A copy of what other VMs write, or the host reads, would be of no use. */
    if (!(vma->vm_flags & VM_SHARED))
        return -EINVAL;
    if (memory.read_only) {
        if (vma->vm_flags & VM_WRITE)
            return -EACCES;
        never_writable(vma);
    }
    /* Normal memory, write-back, as all VMs and the host map it. */
    return remap_pfn_range(vma, vma->vm_start, vma->vm_pgoff, bytes, vma->vm_page_prot);
}
