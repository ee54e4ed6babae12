// vmm IMAGE VCPUS PARAMETER...: runs the waker under KVM, as a real-time guest is tuned there: each vCPU
// is a thread of SCHED_FIFO, pinned to the CPU of its number, and its memory is locked. The PARAMETERs
// are those of guests/waker/src/platform.h behind the magic number, in their order.
//
// The guest finds what it finds on QEMU's board, at the same addresses: RAM at 0x40000000, KVM's GICv3,
// and the data and flag registers of a UART, whose lines go to standard output. All that the guest does
// once it has begun, but for its lines, is done in the kernel: any other program that drives KVM would
// find the same latencies.
#include <fcntl.h>
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
#define RAM_SIZE (16ull << 20)
#define GICD 0x08000000ull
#define GICR 0x080a0000ull
#define UART 0x09000000ull

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

static void load(const char *path, void *memory)
{
    int fd = open(path, O_RDONLY);
    check(fd, path);
    struct stat about;
    check(fstat(fd, &about), path);
    if ((uint64_t)about.st_size > RAM_SIZE || read(fd, memory, RAM_SIZE) != about.st_size) {
        fprintf(stderr, "%s: cannot be loaded\n", path);
        exit(1);
    }
    close(fd);
}

static void give_memory(int vm, const char *image, char **parameters)
{
    char *memory = map(RAM_SIZE, MAP_SHARED | MAP_ANONYMOUS, -1);
    load(image, memory);
    for (int i = 0; i < COUNT; i++) {
        uint64_t value = strtoull(parameters[i], NULL, 0);
        memcpy(memory + PARAMETERS + i * sizeof value, &value, sizeof value);
    }
    struct kvm_userspace_memory_region region = { .guest_phys_addr = RAM,
                                                  .memory_size = RAM_SIZE,
                                                  .userspace_addr = (uint64_t)memory };
    check(ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region), "KVM_SET_USER_MEMORY_REGION");
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

// All but the first wait until the guest starts them.
static int make_vcpu(int vm, int index)
{
    int vcpu = ioctl(vm, KVM_CREATE_VCPU, index);
    check(vcpu, "KVM_CREATE_VCPU");
    struct kvm_vcpu_init kind;
    check(ioctl(vm, KVM_ARM_PREFERRED_TARGET, &kind), "KVM_ARM_PREFERRED_TARGET");
    kind.features[0] |= 1u << KVM_ARM_VCPU_PSCI_0_2;
    if (index != 0)
        kind.features[0] |= 1u << KVM_ARM_VCPU_POWER_OFF;
    check(ioctl(vcpu, KVM_ARM_VCPU_INIT, &kind), "KVM_ARM_VCPU_INIT");
    uint64_t entry = RAM;
    struct kvm_one_reg pc = { .id = KVM_REG_ARM64 | KVM_REG_SIZE_U64 | KVM_REG_ARM_CORE |
                                    KVM_REG_ARM_CORE_REG(regs.pc),
                              .addr = (uint64_t)&entry };
    check(ioctl(vcpu, KVM_SET_ONE_REG, &pc), "KVM_SET_ONE_REG");
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
    static char line[128];
    static size_t length;
    if (!run->mmio.is_write) {
        memset(run->mmio.data, 0, sizeof run->mmio.data);
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

// Runs a vCPU for ever.
static void *run_vcpu(void *argument)
{
    struct vcpu *vcpu = argument;
    become_realtime(vcpu->index);
    for (;;) {
        check(ioctl(vcpu->fd, KVM_RUN, 0), "KVM_RUN");
        uint64_t place = vcpu->run->mmio.phys_addr;
        if (vcpu->run->exit_reason != KVM_EXIT_MMIO || place < UART || place >= UART + 0x1000) {
            fprintf(stderr, "vmm: exit %u at %#lx\n", vcpu->run->exit_reason, (unsigned long)place);
            exit(1);
        }
        // Only the guest's first core tells something.
        access_uart(vcpu->run);
    }
}

int main(int count, char **arguments)
{
    int vcpus = count == 3 + COUNT ? atoi(arguments[2]) : 0;
    if (vcpus < 1 || vcpus > MAX_VCPUS) {
        fprintf(stderr, "usage: vmm IMAGE VCPUS PARAMETER... (%d of them)\n", COUNT);
        return 2;
    }
    int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
    check(kvm, "/dev/kvm");
    int vm = ioctl(kvm, KVM_CREATE_VM, 0);
    check(vm, "KVM_CREATE_VM");
    give_memory(vm, arguments[1], arguments + 3);
    int size = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
    check(size, "KVM_GET_VCPU_MMAP_SIZE");
    struct vcpu all[MAX_VCPUS];
    for (int i = 0; i < vcpus; i++) {
        int fd = make_vcpu(vm, i);
        all[i] = (struct vcpu){ .fd = fd, .index = i, .run = map((size_t)size, MAP_SHARED, fd) };
    }
    make_gic(vm);
    check(mlockall(MCL_CURRENT | MCL_FUTURE), "mlockall");
    for (int i = 1; i < vcpus; i++) {
        pthread_t thread;
        check(-pthread_create(&thread, NULL, run_vcpu, &all[i]), "pthread_create");
    }
    run_vcpu(&all[0]);
}
