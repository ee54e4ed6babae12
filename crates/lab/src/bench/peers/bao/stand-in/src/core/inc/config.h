// The fields of a configuration that `cassata bench peers` sets, with the names that Bao's documentation has
// for them. Everything else is the stand-in's own.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t paddr_t;
typedef uint64_t vaddr_t;
typedef uint64_t cpumap_t;
typedef uint32_t irqid_t;

// Puts a file into the image.
#define VM_IMAGE(name, file)                                                                              \
    extern const uint8_t name##_first[], name##_last[];                                                  \
    __asm__(".section .vm_images, \"a\"\n.balign 4096\n.global " #name "_first, " #name "_last\n" #name  \
            "_first:\n.incbin \"" file "\"\n" #name "_last:\n.previous\n");
#define VM_IMAGE_BUILTIN(name, base) { .base_addr = base, .first = name##_first, .last = name##_last }

struct vm_mem_region {
    paddr_t base;
    size_t size;
    bool place_phys;
    paddr_t phys;
};

struct vm_dev_region {
    paddr_t pa;
    vaddr_t va;
    size_t size;
    size_t interrupt_num;
    irqid_t *interrupts;
};

struct vm_config {
    struct {
        vaddr_t base_addr;
        const uint8_t *first, *last;
    } image;
    vaddr_t entry;
    cpumap_t cpu_affinity;
    struct {
        size_t cpu_num;
        size_t region_num;
        struct vm_mem_region *regions;
        size_t dev_num;
        struct vm_dev_region *devs;
        struct {
            struct {
                paddr_t gicd_addr, gicr_addr;
            } gic;
        } arch;
    } platform;
};

extern struct config {
    size_t vmlist_size;
    struct vm_config *vmlist;
} config;
