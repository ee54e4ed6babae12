// vmm IMAGE VCPUS PARAMETER...: runs the waker under KVM, as a real-time guest is tuned there: each vCPU
// is a thread of SCHED_FIFO, pinned to the CPU of its number, and its memory is locked. The PARAMETERs
// are those of guests/waker/src/platform.h behind the magic number, in their order.
//
// vmm --boot IMAGE MIB INITRAMFS ARGUMENT...: runs any other guest on one vCPU and so much memory, in the same
// way. The guest is told the ARGUMENTs in its device tree, and where the INITRAMFS is; "-": there is none.
//
// IMAGE has the header of an arm64 Image. The guest finds what it finds on QEMU's board, at the same addresses:
// RAM at 0x40000000, KVM's GICv3, and the data and flag registers of a UART, whose lines go to standard
// output. All that the guest does once it has begun, but for its lines, is done in the kernel: any other
// program that drives KVM would find the same latencies.
#include <fcntl.h>
#include <libfdt.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define RAM 0x40000000ull
#define MIB 20
#define WAKER_MIB 16
#define GICD 0x08000000ull
#define GICR 0x080a0000ull
#define UART 0x09000000ull
// Its flag register, and what that says: nothing is received, and all is sent.
#define UART_FR (UART + 0x18)
#define UART_FR_EMPTY 0x90

// The board's tree, to which is added what differs, in so much room at the end of RAM.
#define TREE "/peers/guest.dtb"
#define TREE_SIZE (2ull << 20)

#define PRIORITY 90
#define MAX_VCPUS 2

// Where the parameters are in the image, behind their magic number.
#define PARAMETERS 72
#define COUNT 9

static void check(int result, const char *what)
{
    if (result >= 0)
        return;
    perror(what);
    exit(1);
}

static void *map(size_t size, int flags, int fd)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
    check(memory == MAP_FAILED ? -1 : 0, "mmap");
    return memory;
}

struct guest {
    int vm;
    char *memory;
    uint64_t size;
    uint64_t entry, tree; // physical addresses; there may be no tree
};

// Reads a whole file into the guest's memory; returns how long it is.
static uint64_t load(const struct guest *guest, const char *path, uint64_t address)
{
    int fd = open(path, O_RDONLY);
    check(fd, path);
    struct stat about;
    check(fstat(fd, &about), path);
    uint64_t length = (uint64_t)about.st_size, room = guest->size - (address - RAM);
    if (length > room || read(fd, guest->memory + (address - RAM), room) != about.st_size) {
        fprintf(stderr, "%s: cannot be loaded\n", path);
        exit(1);
    }
    close(fd);
    return length;
}

// Puts the image where its header says (Linux, Documentation/arm64/booting.rst).
static void load_image(struct guest *guest, const char *path)
{
    uint64_t text_offset = 0;
    int fd = open(path, O_RDONLY);
    check(fd, path);
    check((int)pread(fd, &text_offset, sizeof text_offset, 8), path);
    close(fd);
    if (text_offset >= guest->size) {
        fprintf(stderr, "%s: this is no arm64 Image\n", path);
        exit(1);
    }
    guest->entry = RAM + text_offset;
    load(guest, path, guest->entry);
}

static void give_memory(struct guest *guest, uint64_t mib)
{
    guest->size = mib << MIB;
    guest->memory = map(guest->size, MAP_SHARED | MAP_ANONYMOUS, -1);
    struct kvm_userspace_memory_region region = { .guest_phys_addr = RAM,
                                                  .memory_size = guest->size,
                                                  .userspace_addr = (uint64_t)guest->memory };
    check(ioctl(guest->vm, KVM_SET_USER_MEMORY_REGION, &region), "KVM_SET_USER_MEMORY_REGION");
}

static void give_parameters(struct guest *guest, char **parameters)
{
    for (int i = 0; i < COUNT; i++) {
        uint64_t value = strtoull(parameters[i], NULL, 0);
        memcpy(guest->memory + PARAMETERS + i * sizeof value, &value, sizeof value);
    }
}

static void check_tree(int result)
{
    if (result >= 0)
        return;
    fprintf(stderr, TREE ": %s\n", fdt_strerror(result));
    exit(1);
}

static void set_words(void *tree, const char *path, const char *name, uint64_t first, uint64_t second)
{
    int node = fdt_path_offset(tree, path);
    check_tree(node);
    check_tree(fdt_setprop_u64(tree, node, name, first));
    if (second != 0)
        check_tree(fdt_appendprop_u64(tree, node, name, second));
}

// Writes the tree at the end of memory, and the initramfs before it.
static void give_tree(struct guest *guest, const char *initramfs, int count, char **arguments)
{
    char told[1024] = "";
    for (int i = 0; i < count; i++) {
        if (strlen(told) + strlen(arguments[i]) + 2 > sizeof told) {
            fprintf(stderr, "vmm: the arguments are too long\n");
            exit(1);
        }
        strcat(strcat(told, i == 0 ? "" : " "), arguments[i]);
    }
    guest->tree = RAM + guest->size - TREE_SIZE;
    void *tree = guest->memory + (guest->tree - RAM);
    load(guest, TREE, guest->tree);
    check_tree(fdt_open_into(tree, tree, TREE_SIZE));
    set_words(tree, "/memory@40000000", "reg", RAM, guest->size);
    check_tree(fdt_setprop_string(tree, fdt_path_offset(tree, "/chosen"), "bootargs", told));
    if (strcmp(initramfs, "-") == 0)
        return;
    struct stat about;
    check(stat(initramfs, &about), initramfs);
    uint64_t start = (guest->tree - (uint64_t)about.st_size) & ~0xfffull;
    uint64_t end = start + load(guest, initramfs, start);
    set_words(tree, "/chosen", "linux,initrd-start", start, 0);
    set_words(tree, "/chosen", "linux,initrd-end", end, 0);
}

static void set_attribute(int device, uint32_t group, uint64_t attribute, uint64_t *value)
{
    struct kvm_device_attr set = { .group = group, .attr = attribute, .addr = (uint64_t)value };
    check(ioctl(device, KVM_SET_DEVICE_ATTR, &set), "KVM_SET_DEVICE_ATTR");
}

static void make_gic(int vm)
{
    struct kvm_create_device device = { .type = KVM_DEV_TYPE_ARM_VGIC_V3 };
    check(ioctl(vm, KVM_CREATE_DEVICE, &device), "KVM_CREATE_DEVICE");
    uint64_t distributor = GICD, redistributor = GICR;
    set_attribute(device.fd, KVM_DEV_ARM_VGIC_GRP_ADDR, KVM_VGIC_V3_ADDR_TYPE_DIST, &distributor);
    set_attribute(device.fd, KVM_DEV_ARM_VGIC_GRP_ADDR, KVM_VGIC_V3_ADDR_TYPE_REDIST, &redistributor);
    set_attribute(device.fd, KVM_DEV_ARM_VGIC_GRP_CTRL, KVM_DEV_ARM_VGIC_CTRL_INIT, NULL);
}

static void set_register(int vcpu, uint64_t offset, uint64_t value)
{
    struct kvm_one_reg set = { .id = KVM_REG_ARM64 | KVM_REG_SIZE_U64 | KVM_REG_ARM_CORE | offset,
                               .addr = (uint64_t)&value };
    check(ioctl(vcpu, KVM_SET_ONE_REG, &set), "KVM_SET_ONE_REG");
}

// All but the first wait until the guest starts them.
static int make_vcpu(const struct guest *guest, int index)
{
    int vcpu = ioctl(guest->vm, KVM_CREATE_VCPU, index);
    check(vcpu, "KVM_CREATE_VCPU");
    struct kvm_vcpu_init kind;
    check(ioctl(guest->vm, KVM_ARM_PREFERRED_TARGET, &kind), "KVM_ARM_PREFERRED_TARGET");
    kind.features[0] |= 1u << KVM_ARM_VCPU_PSCI_0_2;
    if (index != 0)
        kind.features[0] |= 1u << KVM_ARM_VCPU_POWER_OFF;
    check(ioctl(vcpu, KVM_ARM_VCPU_INIT, &kind), "KVM_ARM_VCPU_INIT");
    set_register(vcpu, KVM_REG_ARM_CORE_REG(regs.pc), guest->entry);
    set_register(vcpu, KVM_REG_ARM_CORE_REG(regs.regs[0]), guest->tree);
    return vcpu;
}

// Concerns the calling thread.
static void become_realtime(int cpu)
{
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    check(sched_setaffinity(0, sizeof only, &only), "sched_setaffinity");
    struct sched_param priority = { .sched_priority = PRIORITY };
    check(sched_setscheduler(0, SCHED_FIFO, &priority), "sched_setscheduler");
}

// Carries out an access to the UART; a line is written at its end.
static void access_uart(struct kvm_run *run)
{
    static char line[256];
    static size_t length;
    if (!run->mmio.is_write) {
        memset(run->mmio.data, 0, sizeof run->mmio.data);
        if (run->mmio.phys_addr == UART_FR)
            run->mmio.data[0] = UART_FR_EMPTY;
        return;
    }
    if (run->mmio.phys_addr != UART)
        return;
    line[length++] = (char)run->mmio.data[0];
    if (line[length - 1] == '\n' || length == sizeof line) {
        check((int)write(STDOUT_FILENO, line, length), "write");
        length = 0;
    }
}

struct vcpu {
    int fd, index;
    struct kvm_run *run;
};

// Runs a vCPU until the guest switches its machine off.
static void *run_vcpu(void *argument)
{
    struct vcpu *vcpu = argument;
    become_realtime(vcpu->index);
    for (;;) {
        check(ioctl(vcpu->fd, KVM_RUN, 0), "KVM_RUN");
        if (vcpu->run->exit_reason == KVM_EXIT_SYSTEM_EVENT)
            exit(0);
        uint64_t place = vcpu->run->mmio.phys_addr;
        if (vcpu->run->exit_reason != KVM_EXIT_MMIO || place < UART || place >= UART + 0x1000) {
            fprintf(stderr, "vmm: exit %u at %#lx\n", vcpu->run->exit_reason, (unsigned long)place);
            exit(1);
        }
        // Only the guest's first core tells something.
        access_uart(vcpu->run);
    }
}

static void explain(void)
{
    fprintf(stderr, "usage: vmm IMAGE VCPUS PARAMETER... (%d of them)\n"
                    "       vmm --boot IMAGE MIB INITRAMFS ARGUMENT...\n", COUNT);
    exit(2);
}

// Prepares what the command line says; returns how many vCPUs there are.
static int prepare(struct guest *guest, int count, char **arguments)
{
    if (count >= 5 && strcmp(arguments[1], "--boot") == 0) {
        int mib = atoi(arguments[3]);
        if (mib < 8 || mib > 1024)
            explain();
        give_memory(guest, (uint64_t)mib);
        load_image(guest, arguments[2]);
        give_tree(guest, arguments[4], count - 5, arguments + 5);
        return 1;
    }
    int vcpus = count == 3 + COUNT ? atoi(arguments[2]) : 0;
    if (vcpus < 1 || vcpus > MAX_VCPUS)
        explain();
    give_memory(guest, WAKER_MIB);
    load_image(guest, arguments[1]);
    give_parameters(guest, arguments + 3);
    return vcpus;
}

int main(int count, char **arguments)
{
    int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
    check(kvm, "/dev/kvm");
    struct guest guest = { .vm = ioctl(kvm, KVM_CREATE_VM, 0) };
    check(guest.vm, "KVM_CREATE_VM");
    int vcpus = prepare(&guest, count, arguments);
    int size = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
    check(size, "KVM_GET_VCPU_MMAP_SIZE");
    struct vcpu all[MAX_VCPUS];
    for (int i = 0; i < vcpus; i++) {
        int fd = make_vcpu(&guest, i);
        all[i] = (struct vcpu){ .fd = fd, .index = i, .run = map((size_t)size, MAP_SHARED, fd) };
    }
    make_gic(guest.vm);
    check(mlockall(MCL_CURRENT | MCL_FUTURE), "mlockall");
    for (int i = 1; i < vcpus; i++) {
        pthread_t thread;
        check(-pthread_create(&thread, NULL, run_vcpu, &all[i]), "pthread_create");
    }
    run_vcpu(&all[0]);
}
