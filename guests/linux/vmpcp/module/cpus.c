// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* CPUs: the interrupt that says that a mutex was granted, and calls that a certain vCPU must make. */
#include <linux/cpuhotplug.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/of.h>
#include <linux/of_irq.h>
#include <linux/percpu.h>
#include <linux/smp.h>

#include "module.h"

static DEFINE_PER_CPU(unsigned int, vcpu_of);
/* A percpu interrupt wants a value of each CPU, and tells them apart by it. */
static DEFINE_PER_CPU(int, cookie);
static int interrupt; /* Linux's number of it; 0: the device tree names none */
static int online_state, dead_state; /* of CPU hotplug */

static irqreturn_t granted(int irq, void *data)
{
    inter_granted();
    return IRQ_HANDLED;
}

static int online(unsigned int cpu)
{
    this_cpu_write(vcpu_of, service_own_vcpu());
    if (interrupt)
        enable_percpu_irq(interrupt, irq_get_trigger_type(interrupt));
    return 0;
}

static int offline(unsigned int cpu)
{
    if (interrupt)
        disable_percpu_irq(interrupt);
    return 0;
}

/* The CPU is off. While it goes, it may still turn back: then EL2 has taken nothing. */
static int dead(unsigned int cpu)
{
    inter_lose_all(cpu);
    return 0;
}

static int find_interrupt(void)
{
    struct device_node *node = of_find_compatible_node(NULL, NULL, "cassata,service-1.0");
    int found = of_irq_get_byname(node, "mutex");

    of_node_put(node);
    return found > 0 ? found : 0;
}

int cpus_begin(void)
{
    int error;

    interrupt = find_interrupt();
    if (interrupt) {
        error = request_percpu_irq(interrupt, granted, "vmpcp", &cookie);
        if (error)
            return error;
    }
    dead_state = error = cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN, "vmpcp:dead", NULL, dead);
    if (error < 0)
        goto no_dead;
    online_state = error = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "vmpcp:online", online, offline);
    if (error < 0)
        goto no_online;
    return 0;

no_online:
    cpuhp_remove_state_nocalls(dead_state);
no_dead:
    if (interrupt)
        free_percpu_irq(interrupt, &cookie);
    return error;
}

void cpus_end(void)
{
    cpuhp_remove_state(online_state);
    cpuhp_remove_state_nocalls(dead_state);
    if (interrupt)
        free_percpu_irq(interrupt, &cookie);
}

bool cpus_have_interrupt(void)
{
    return interrupt;
}

int cpus_of_current(void)
{
    /* What a task may use is declared for its vCPU. */
    return current->nr_cpus_allowed == 1 ? cpumask_first(current->cpus_ptr) : -EINVAL;
}

unsigned int cpus_vcpu(int cpu)
{
    return per_cpu(vcpu_of, cpu);
}

static void finish_here(void *answer)
{
    *(long *)answer = service_call(CALL_FINISH_GCS, this_cpu_read(vcpu_of), 0);
}

long cpus_finish_gcs(unsigned int vcpu)
{
    long answer;
    int cpu;

    for_each_online_cpu(cpu) {
        if (cpus_vcpu(cpu) == vcpu && smp_call_function_single(cpu, finish_here, &answer, 1) == 0)
            return answer;
    }
    /* It is off: EL2 knows only of what its siblings have begun. */
    return service_call(CALL_FINISH_GCS, vcpu, 0);
}
