// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Marks a CPU as real-time for the hypervisor while a process asks for that: one that has written the
 * CPU's number to /dev/cassata_mark, until it closes the file or dies. docs/src/guests.md has an example. */
#include <linux/arm-smccc.h>
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/smp.h>
#include <linux/uaccess.h>

#include "cassata_service.h"

/* The Cassata service, docs/src/design/calls.md. */
enum { CALL_MARK_RT = 0xc6000026 };

/* What a file that marks no CPU has instead of one. */
#define NO_CPU ((void *)-1L)

/* How many files mark each CPU. */
static unsigned int marks[NR_CPUS];
/* Guards `marks` and what files have; taken with CPUs held, as the callback below is called so. */
static DEFINE_MUTEX(mark_mutex);
static int hotplug_state;

/* Tells the hypervisor of the calling CPU. */
static long mark_own(bool on)
{
    struct arm_smccc_res result;

    arm_smccc_1_1_hvc(CALL_MARK_RT, on, &result);
    return (int)result.a0;
}

static void mark_here(void *answer)
{
    *(long *)answer = mark_own(*(long *)answer);
}

/* Returns what the hypervisor answers, or that the CPU is off: then it is marked when it is on again. */
static long mark(unsigned int cpu, bool on)
{
    long answer = on;
    int error = smp_call_function_single(cpu, mark_here, &answer, true);

    return error ? error : answer;
}

/* The hypervisor has forgotten the mark of a CPU that was off. */
static int mark_again(unsigned int cpu)
{
    mutex_lock(&mark_mutex);
    if (marks[cpu])
        mark_own(true);
    mutex_unlock(&mark_mutex);
    return 0;
}

/* Ends what a file marks. */
static void unmark(struct file *file)
{
    unsigned long cpu = (unsigned long)file->private_data;

    if (file->private_data == NO_CPU)
        return;
    file->private_data = NO_CPU;
    if (!--marks[cpu])
        mark(cpu, false);
}

static int mark_open(struct inode *inode, struct file *file)
{
    file->private_data = NO_CPU;
    return 0;
}

static int mark_release(struct inode *inode, struct file *file)
{
    cpus_read_lock();
    mutex_lock(&mark_mutex);
    unmark(file);
    mutex_unlock(&mark_mutex);
    cpus_read_unlock();
    return 0;
}

static long mark_instead(struct file *file, unsigned int cpu)
{
    long answer = 0;

    unmark(file);
    if (!marks[cpu])
        answer = mark(cpu, true);
    if (answer)
        return answer == -1 ? -EOPNOTSUPP : answer;
    marks[cpu]++;
    file->private_data = (void *)(unsigned long)cpu;
    return 0;
}

static ssize_t mark_write(struct file *file, const char __user *text, size_t size, loff_t *at)
{
    unsigned int cpu;
    long error = kstrtouint_from_user(text, size, 10, &cpu);

    if (error)
        return error;
    if (cpu >= nr_cpu_ids || !cpu_possible(cpu))
        return -EINVAL;
    cpus_read_lock();
    mutex_lock(&mark_mutex);
    error = mark_instead(file, cpu);
    mutex_unlock(&mark_mutex);
    cpus_read_unlock();
    return error ? error : size;
}

static const struct file_operations operations = {
    .owner = THIS_MODULE,
    .open = mark_open,
    .write = mark_write,
    .release = mark_release,
};

static struct miscdevice device = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = "cassata_mark",
    .fops = &operations,
};

static int __init mark_begin(void)
{
    int error;

    if (!service_is_described("cassata,service-1.5")) {
        pr_err("cassata_mark: no Cassata service 1.5 here: the device tree has no node of it\n");
        return -ENODEV;
    }
    hotplug_state = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "cassata_mark:online", mark_again,
                                              NULL);
    if (hotplug_state < 0)
        return hotplug_state;
    error = misc_register(&device);
    if (error)
        cpuhp_remove_state_nocalls(hotplug_state);
    return error;
}

static void __exit mark_end(void)
{
    misc_deregister(&device);
    cpuhp_remove_state_nocalls(hotplug_state);
}

module_init(mark_begin);
module_exit(mark_end);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Marks CPUs as real-time for the hypervisor");
