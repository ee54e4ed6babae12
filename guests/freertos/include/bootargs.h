/* What the device tree holds: a flattened one (Devicetree Specification 0.4, chapter 5). The
 * functions never read outside the tree, however broken it is. */
#ifndef BOOTARGS_H
#define BOOTARGS_H

#include <stdbool.h>
#include <stdint.h>

/* The bootargs of /chosen; "" when there is no tree or it has none. The text lies in the tree. */
const char *bootargs_find(const void *tree);

/* Memory that VMs share. */
struct shared_memory {
    uint64_t address, size; /* size 0: there is none */
    bool read_only;
};

/* The shared memory of that name: a node below the root, with #address-cells and #size-cells 2
 * there. */
struct shared_memory shared_memory_find(const void *tree, const char *label);

/* An end of a link to another VM. */
struct link_end {
    uint64_t registers, own, peer; /* addresses; registers 0: there is none */
    uint64_t half_size;
    uint32_t intid;                /* of the doorbell */
};

/* The end of the link of that name. */
struct link_end link_end_find(const void *tree, const char *label);

#endif
