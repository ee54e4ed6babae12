// tune VCPUS SCHEDULER VALUE...: pins each vCPU of the real-time domain, the only one that Xen has
// started besides the first, to the core of its number, and sets what Xen's documentation has for it,
// through Xen's own library:
//
//   tune VCPUS credit2 WEIGHT          the most that credit2 takes is 65535
//   tune VCPUS credit WEIGHT
//   tune VCPUS rtds PERIOD_US BUDGET_US
//
// A WEIGHT of 0 leaves the scheduler's parameters as they are.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xenctrl.h>

#define DOMAIN 1

static int pin(xc_interface *xen, int vcpu)
{
    xc_cpumap_t hard = xc_cpumap_alloc(xen), soft = xc_cpumap_alloc(xen);
    if (!hard || !soft)
        return -1;
    hard[0] = (uint8_t)(1u << vcpu);
    soft[0] = (uint8_t)(1u << vcpu);
    return xc_vcpu_setaffinity(xen, DOMAIN, vcpu, hard, soft,
                               XEN_VCPUAFFINITY_HARD | XEN_VCPUAFFINITY_SOFT);
}

static int set_credit2(xc_interface *xen, unsigned weight)
{
    struct xen_domctl_sched_credit2 set;
    if (weight == 0)
        return 0;
    if (xc_sched_credit2_domain_get(xen, DOMAIN, &set) != 0)
        return -1;
    set.weight = (uint16_t)weight;
    return xc_sched_credit2_domain_set(xen, DOMAIN, &set);
}

static int set_credit(xc_interface *xen, unsigned weight)
{
    struct xen_domctl_sched_credit set;
    if (weight == 0)
        return 0;
    if (xc_sched_credit_domain_get(xen, DOMAIN, &set) != 0)
        return -1;
    set.weight = (uint16_t)weight;
    return xc_sched_credit_domain_set(xen, DOMAIN, &set);
}

static int set_rtds(xc_interface *xen, int vcpus, unsigned period_us, unsigned budget_us)
{
    for (int vcpu = 0; vcpu < vcpus; vcpu++) {
        struct xen_domctl_schedparam_vcpu set = { .vcpuid = (uint32_t)vcpu };
        set.u.rtds.period = period_us;
        set.u.rtds.budget = budget_us;
        if (xc_sched_rtds_vcpu_set(xen, DOMAIN, &set, 1) != 0)
            return -1;
    }
    return 0;
}

static void explain(void)
{
    fprintf(stderr, "usage: tune VCPUS credit2|credit WEIGHT, or tune VCPUS rtds PERIOD_US BUDGET_US\n");
    exit(2);
}

static int set(xc_interface *xen, int vcpus, int count, char **words)
{
    unsigned first = (unsigned)atoi(words[1]), second = count > 2 ? (unsigned)atoi(words[2]) : 0;
    if (count == 2 && strcmp(words[0], "credit2") == 0)
        return set_credit2(xen, first);
    if (count == 2 && strcmp(words[0], "credit") == 0)
        return set_credit(xen, first);
    if (count == 3 && strcmp(words[0], "rtds") == 0)
        return set_rtds(xen, vcpus, first, second);
    explain();
    return -1;
}

int main(int count, char **words)
{
    int vcpus = count >= 4 ? atoi(words[1]) : 0;
    if (vcpus < 1 || vcpus > 8)
        explain();
    xc_interface *xen = xc_interface_open(NULL, NULL, 0);
    int failed = !xen;
    for (int vcpu = 0; !failed && vcpu < vcpus; vcpu++)
        failed = pin(xen, vcpu) != 0;
    if (failed || set(xen, vcpus, count - 2, words + 2) != 0) {
        perror("tune");
        return 1;
    }
    return 0;
}
